"""Links of mails: to the page that shows it, and to the one that decides an approval."""

import re
from uuid import uuid4

import pytest
from sqlalchemy import select

from models.automation.waits.approvals import decide_by_link, question_of
from models.automation.waits.commands import ResumeNode
from models.core.access.rules import Role
from models.core.base import Id
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.queries import Notification, notification
from tests.support.delivery_stories import ended, kept_in_temporal, mail, member, tell
from tests.support.engine import KEYS, PUBLIC_URL, Engine
from tests.support.post_office import PostOffice
from tests.support.waits import approval, waiting, ways

pytestmark = pytest.mark.takes(seconds=15)


async def letter(engine: Engine, office: PostOffice, told: Notification) -> str:
    """The text of the mail about a notification."""
    delivery_id = await mail(engine, told)
    assert (await ended(engine, delivery_id)).status == "delivered"
    (sent,) = [one for one in office.mails if str(delivery_id) in one.message["Message-ID"]]
    return str(sent.message.get_content())


async def request_to(engine: Engine, user_id: Id) -> Notification:
    """The request for approval that a person was told."""
    async with engine.database.reading() as work:
        own = select(notification).where(notification.c.user_id == user_id)
        (found,) = await work.rows(own, of=Notification)
    return found


async def test_a_mail_asks_and_its_link_decides(engine: Engine, post_office: PostOffice) -> None:
    boss = await member(engine, role=Role.VIEWER)
    place = await waiting(engine, approval(boss, title="Pay?", message="100 €"))
    told = await request_to(engine, boss)
    text = await letter(engine, post_office, told)
    assert text.startswith("100 €")
    assert f"{PUBLIC_URL}/runs/{place[1]}" in text.split()
    (token,) = re.findall(rf"{PUBLIC_URL}/approvals/(\S+)", text)
    async with engine.database.transaction() as work:
        question = await question_of(work, KEYS, token)
        assert (question.approval.title, question.actor.user_id) == ("Pay?", boss)
        await decide_by_link(work, question, ResumeNode(decision="approved"))
    run = await engine.ended(*place)
    assert (run.status, ways(run)) == ("succeeded", {"ask", "yes"})


@pytest.mark.long
async def test_neither_rows_nor_executions_have_a_link(
    engine: Engine, post_office: PostOffice
) -> None:
    boss = await member(engine)
    place = await waiting(engine, approval(boss))
    delivery_id = await mail(engine, await request_to(engine, boss))
    sent = await ended(engine, delivery_id)
    assert "decision_" not in f"{sent.input}{sent.error}"
    kept = await kept_in_temporal(engine, sent)
    assert str(delivery_id) in kept
    assert "decision_" not in kept
    assert len(post_office.mails) > 0
    await engine.cancel(*place)


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        (NotificationKind.AUTOMATION_FAILED, "/runs/"),
        (NotificationKind.DATA_SOURCE_FAILED, "/data-source-runs/"),
        (NotificationKind.IMPORT_FINISHED, "/data-source-runs/"),
        (NotificationKind.LEGACY_IMPORT, "/legacy-imports/"),
        (NotificationKind.COMMENT, None),
    ],
)
async def test_a_mail_leads_to_the_page_of_its_run(
    engine: Engine, post_office: PostOffice, kind: NotificationKind, page: str | None
) -> None:
    run_id = uuid4()
    told = await tell(engine, await member(engine), kind, title="Look", run_id=run_id)
    text = await letter(engine, post_office, told)
    links = re.findall(r"https://\S+", text)
    preferences = f"{PUBLIC_URL}/workspaces/{told.workspace_id}/settings/notifications"
    pages = [] if page is None else [f"{PUBLIC_URL}{page}{run_id}"]
    assert links == [*pages, preferences]
    assert "/approvals/" not in text
