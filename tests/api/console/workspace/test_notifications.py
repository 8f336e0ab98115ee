"""Notifications and their preferences by their pages."""

from typing import Any
from uuid import uuid4

from models.core.access.rules import Role
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from tests.support.client import Client
from tests.support.settings_pages import (
    HOSTILE,
    Visit,
    assert_inert,
    next_of,
    posted,
    sent,
    settings_of,
)
from tests.support.spaces import Space
from tests.support.visitor import Visitor


def inbox_of(space: Space, *parts: str) -> str:
    return "/".join((space.path.removeprefix("/v1"), "notifications", *parts))


async def tell(space: Space, *titles: str, **values: Any) -> None:
    """Notify the owner."""
    async with space.database.transaction() as work:
        for title in titles:
            notice = Notice(kind=NotificationKind.SYSTEM, title=title, **values)
            await notify(work, space.id, [space.user_id], notice)


async def ids_of(client: Client, space: Space) -> dict[str, str]:
    listed = await client.get(f"{space.path}/notifications?includeArchived=true")
    return {one["title"]: one["id"] for one in listed.json()["data"]["notifications"]}


async def test_a_bell_counts_what_is_unread(owner: Visitor, visit: Visit, space: Space) -> None:
    home = space.path.removeprefix("/v1")
    assert "unread</" not in (await owner.get(home)).text
    assert 'class="count" aria-label' not in (await owner.get(home)).text
    await tell(space, "One", "Two")
    assert 'aria-label="2 unread">2</b>' in (await owner.get(home)).text
    viewer = await visit(Role.VIEWER)
    assert 'class="count" aria-label' not in (await viewer.get(home)).text
    await tell(space, *(f"Number {number}" for number in range(110)))
    assert 'aria-label="100 unread">99+</b>' in (await owner.get(home)).text


async def test_one_is_read_and_archived(owner: Visitor, space: Space, client: Client) -> None:
    await tell(space, HOSTILE, "Other", body=HOSTILE)
    page, here = inbox_of(space), await ids_of(client, space)
    assert_inert(await owner.get(page))
    target = await sent(owner, page, f"{page}/read", notificationIds=here["Other"], show="unread")
    assert target == f"{page}?show=unread"
    unread = (await owner.get(page)).text
    assert "Other" not in unread
    assert "Other" in (await owner.get(page, params={"show": "inbox"})).text
    # What is unread cannot be archived; it stays.
    for name in (HOSTILE, "Other"):
        await sent(owner, page, f"{page}/archive", notificationIds=here[name], show="inbox")
    inbox = (await owner.get(page, params={"show": "inbox"})).text
    assert "Other" not in inbox
    assert "{{7*7}}" in inbox
    assert "Other" in (await owner.get(page, params={"show": "all"})).text


async def test_notifications_of_one_subject_are_one_line(
    owner: Visitor, space: Space, client: Client
) -> None:
    """They lead to their subject, and are read and archived together."""
    record_id, run_id, other = uuid4(), uuid4(), uuid4()
    notices = [
        *(Notice(kind=NotificationKind.MENTION, title=f"Mention {n}", record_id=record_id)
          for n in range(3)),
        Notice(kind=NotificationKind.AUTOMATION_FAILED, title="It failed", run_id=run_id),
        Notice(kind=NotificationKind.COMMENT, title="A comment", record_id=other),
        Notice(
            kind=NotificationKind.AUTOMATION_FAILED,
            title="Breaker open",
            data={"automationId": str(other)},
        ),
        *(Notice(kind=NotificationKind.SYSTEM, title="Maintenance") for _ in range(2)),
    ]  # fmt: skip
    async with space.database.transaction() as work:
        for notice in notices:
            await notify(work, space.id, [space.user_id], notice)
    page = inbox_of(space)
    shown = (await owner.get(page)).text
    assert shown.partition("card inbox")[2].count("<h2>") == 5
    for path in (
        f"/records/{record_id}",
        f"/runs/{run_id}",
        f"/workspaces/{space.id}/automations/{other}",
    ):
        assert shown.count(f'href="{path}"') == 1, path
    assert (">Mention 2</a>" in shown, "2 earlier" in shown) == (True, True)
    here = await ids_of(client, space)
    together = ",".join(here[f"Mention {n}"] for n in range(3))
    for action in ("read", "archive"):
        await sent(owner, page, f"{page}/{action}", notificationIds=together, show="inbox")
    assert "Mention" not in (await owner.get(page, params={"show": "inbox"})).text
    assert "It failed" in (await owner.get(page)).text


async def test_all_are_read_and_archived(owner: Visitor, space: Space) -> None:
    await tell(space, *(f"Number {number}." for number in range(35)))
    page = inbox_of(space)
    first = await owner.get(page)
    following = next_of(first)
    assert following is not None
    assert "show=unread" in following
    assert "Number 0." in (await owner.get(following)).text
    await sent(owner, page, f"{page}/read", show="unread")
    assert "All caught up" in (await owner.get(page)).text
    await sent(owner, page, f"{page}/archive", show="inbox")
    assert "No notifications" in (await owner.get(page, params={"show": "inbox"})).text


async def test_a_failed_automation_leads_to_its_run(owner: Visitor, space: Space) -> None:
    run_id = uuid4()
    async with space.database.transaction() as work:
        for kind in (NotificationKind.AUTOMATION_FAILED, NotificationKind.LEGACY_IMPORT):
            notice = Notice(kind=kind, title=kind.value, run_id=run_id)
            await notify(work, space.id, [space.user_id], notice)
    assert (await owner.get(inbox_of(space))).text.count(f'href="/runs/{run_id}"') == 1


async def test_notifications_are_ones_own(
    visit: Visit, stranger: Visitor, owner: Visitor, space: Space, foreign: Space, client: Client
) -> None:
    await tell(space, "For the owner")
    page, (only,) = inbox_of(space), (await ids_of(client, space)).values()
    viewer = await visit(Role.VIEWER)
    assert "For the owner" not in (await viewer.get(page)).text
    assert (
        await posted(viewer, page, f"{page}/read", {"notificationIds": only})
    ).status_code == 404
    assert (await stranger.get(page)).status_code == 404
    theirs = inbox_of(foreign)
    answer = await posted(stranger, theirs, f"{theirs}/read", {"notificationIds": only})
    assert answer.status_code == 404
    for show in ("https://evil.test", "archive"):
        answer = await posted(owner, page, f"{page}/read", {"show": show})
        assert answer.status_code == 400
    assert "For the owner" in (await owner.get(page)).text


async def test_preferences_are_replaced(owner: Visitor, space: Space, client: Client) -> None:
    page = settings_of(space, "notifications")
    shown = await owner.get(page)
    assert 'name="mention.mail" checked' in shown.text
    assert 'name="comment.mail" checked' not in shown.text
    target = await sent(owner, page, page, **{"comment.mail": "on", "share.inApp": "on"})
    assert target == f"{page}?notice=saved"
    session_of_key = await client.get("/v1/me/notification-preferences")
    stored = session_of_key.json()["data"]["preferences"]
    assert stored["comment"] == {"inApp": False, "push": False, "mail": True}
    assert stored["share"] == {"inApp": True, "push": False, "mail": False}
    assert stored["mention"] == {"inApp": False, "push": False, "mail": False}
    assert 'name="comment.mail" checked' in (await owner.get(page)).text
