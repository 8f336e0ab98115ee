"""Notifications over HTTP: whose they are, reading and archiving them, and the workspace log."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role, Scope
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.notifications.queries import notification
from models.people.users import app_user
from models.people.workspaces import add_member, workspace_member
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.spaces import MakeSpace, Space


async def notified(
    space: Space, count: int = 1, user_id: UUID | None = None, **facts: Any
) -> list[str]:
    """The ids of new notifications, newest first."""
    for number in range(count):
        notice = Notice(
            kind=NotificationKind.SYSTEM, title=f"Number {number}", key=uuid4().hex, **facts
        )
        async with space.database.transaction() as work:
            await notify(work, space.id, [user_id or space.user_id], notice)
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(notification.c.id)
            .where(
                notification.c.workspace_id == space.id,
                notification.c.user_id == (user_id or space.user_id),
            )
            .order_by(notification.c.created_at.desc(), notification.c.id.desc())
            .limit(count)
        )
    return [str(row.id) for row in rows]


def own(space: Space) -> str:
    return f"{space.path}/notifications"


async def listed(client: Client, path: str, **query: str) -> list[str]:
    return [one["id"] for one in read(await client.get(path, params=query))["notifications"]]


async def mark(client: Client, path: str, **body: Any) -> Json:
    answer: Json = read(await client.post(f"{path}/read", json=body))
    return answer


MARKS = ("notification.read", "notification.archived")


async def events(client: Client, space: Space, **query: str) -> list[Json]:
    """What the log says of notifications that were marked."""
    answer = await client.get(f"{space.path}/events", params={"limit": "100", **query})
    return [one for one in read(answer)["events"] if one["type"] in MARKS]


INBOX = "/v1/notifications"


async def test_one_shows_what_it_is_about(client: Client, space: Space) -> None:
    run_id = uuid4()
    (id_,) = await notified(space, body="Words", run_id=run_id, actor_user_id=space.user_id)
    (shown,) = read(await client.get(own(space)))["notifications"]
    created = shown.pop("createdAt")
    assert created.endswith("Z")
    assert shown == {
        "id": id_,
        "workspaceId": str(space.id),
        "userId": str(space.user_id),
        "kind": "system",
        "title": "Number 0",
        "body": "Words",
        "runId": str(run_id),
        "actorUserId": str(space.user_id),
        "data": {},
    }


async def test_they_are_listed_newest_first_page_by_page(client: Client, space: Space) -> None:
    ids = await notified(space, 7)
    assert await listed(client, own(space)) == await listed(client, INBOX) == ids
    found: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = read(await client.get(own(space), params=query))
        found += [one["id"] for one in page["notifications"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert found == ids
    wrong = {"cursor": query["cursor"], "unreadOnly": "true"}
    assert refused(await client.get(own(space), params=wrong)) == (400, "validation_error")


@pytest.mark.parametrize(
    "query",
    [{"limit": "x"}, {"limit": "0"}, {"unreadOnly": "1"}, {"unreadOnly": "True"}, {"a": "b"}],
)
async def test_bad_queries_are_refused(client: Client, space: Space, query: dict[str, str]) -> None:
    for path in (own(space), INBOX):
        assert refused(await client.get(path, params=query)) == (400, "validation_error")


async def test_only_the_unread_are_listed_if_asked_for(client: Client, space: Space) -> None:
    ids = await notified(space, 3)
    await mark(client, own(space), notificationId=ids[1])
    assert await listed(client, own(space), unreadOnly="true") == [ids[0], ids[2]]
    assert await listed(client, own(space), unreadOnly="false") == ids
    assert await listed(client, INBOX, unreadOnly="true") == [ids[0], ids[2]]


async def test_a_member_does_not_see_notifications_of_others(
    client: Client, space: Space, foreign: Space
) -> None:
    user_id, token = await space.member(Role.GUEST)
    (theirs,) = await notified(space, user_id=user_id)
    (mine,) = await notified(space)
    guest = client.with_token(token)
    assert await listed(client, own(space)) == [mine]
    assert await listed(guest, own(space)) == await listed(guest, INBOX) == [theirs]
    stranger = client.with_token(foreign.token)
    assert refused(await stranger.get(own(space))) == (404, "not_found")
    assert await listed(stranger, INBOX) == []
    for path in (own(space), INBOX):
        answer = await client.post(f"{path}/read", json={"notificationId": theirs})
        assert refused(answer) == (404, "not_found")
    assert await mark(client, own(space), notificationIds=[theirs, mine]) | {"readAt": ""} == {
        "notificationIds": [mine],
        "readAt": "",
    }
    assert await listed(guest, own(space), unreadOnly="true") == [theirs]


async def test_reading_is_remembered_and_logged_once(client: Client, space: Space) -> None:
    ids = await notified(space, 3)
    first = await mark(client, own(space), notificationIds=ids[:2])
    assert sorted(first["notificationIds"]) == sorted(ids[:2])
    again = await mark(client, own(space), notificationIds=ids[:2])
    assert again == first
    more = await mark(client, own(space), notificationIds=ids)
    assert sorted(more["notificationIds"]) == sorted(ids)
    assert more["readAt"] > first["readAt"]
    shown = read(await client.get(own(space)))["notifications"]
    assert [one["readAt"] for one in shown] == [first["readAt"]] * 2 + [more["readAt"]]
    logged = await events(client, space)
    assert [one["type"] for one in logged] == ["notification.read"] * 2
    named = [one["data"]["notificationIds"] for one in logged]
    assert sorted(id_ for group in named for id_ in group) == sorted(ids)
    assert logged[0]["actor"] == {"type": "api_key", "userId": str(space.user_id)}
    assert logged[0]["at"] == first["readAt"]


async def test_all_of_a_workspace_are_read_at_once(client: Client, space: Space) -> None:
    ids = await notified(space, 3)
    await mark(client, own(space), notificationId=ids[0])
    # Ids beside `all` change nothing of it.
    answer = await mark(client, own(space), all=True, notificationId=ids[0])
    assert sorted(answer["notificationIds"]) == sorted(ids[1:])
    unknown = {"notificationIds": [str(UUID(int=7))]}
    archived = await client.post(f"{INBOX}/archive", json={"allRead": True, **unknown})
    assert sorted(archived.json()["data"]["notificationIds"]) == sorted(ids)
    assert (await mark(client, own(space), all=True))["notificationIds"] == []
    assert len(await events(client, space)) == 3


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"all": False},
        {"notificationIds": []},
        {"notificationId": None},
        {"notificationId": ""},
        {"notificationIds": [7]},
        {"notificationIds": [str(UUID(int=7))] * 501},
        {"allRead": True},
        {"all": "true"},
    ],
    ids=lambda body: str(body)[:40],
)
async def test_a_body_that_does_not_say_which_is_refused(
    client: Client, space: Space, body: Json
) -> None:
    for path in (own(space), INBOX):
        answer = await client.post(f"{path}/read", json=body)
        assert refused(answer) == (400, "validation_error")
    archive = {
        "allRead" if key == "all" else "all" if key == "allRead" else key: value
        for key, value in body.items()
    }
    answer = await client.post(f"{INBOX}/archive", json=archive)
    assert refused(answer) == (400, "validation_error")


@pytest.mark.parametrize("unknown", ["01a217a2-3558-7bb6-8dbe-3de66c90f3da", "no-id"])
async def test_one_unknown_id_is_not_found_and_among_others_left_out(
    client: Client, space: Space, unknown: str
) -> None:
    (id_,) = await notified(space)
    for path in (own(space), INBOX):
        for body in ({"notificationId": unknown}, {"notificationIds": [unknown, unknown]}):
            assert refused(await client.post(f"{path}/read", json=body)) == (404, "not_found")
    answer = await client.post(f"{INBOX}/archive", json={"notificationId": unknown})
    assert refused(answer) == (404, "not_found")
    named = await mark(client, own(space), notificationIds=[unknown, id_])
    assert named["notificationIds"] == [id_]


async def test_a_read_notification_can_be_archived(client: Client, space: Space) -> None:
    ids = await notified(space, 4)
    await mark(client, INBOX, notificationIds=ids[:3])
    archive = f"{INBOX}/archive"
    first = read(await client.post(archive, json={"notificationIds": [ids[0], ids[3]]}))
    assert first["notificationIds"] == [ids[0]]
    assert await listed(client, own(space)) == await listed(client, INBOX) == ids[1:]
    assert (
        read(await client.post(archive, json={"notificationId": ids[3]}))["notificationIds"] == []
    )
    rest = read(await client.post(archive, json={"allRead": True}))
    assert sorted(rest["notificationIds"]) == sorted(ids[1:3])
    assert await listed(client, own(space)) == [ids[3]]
    assert await listed(client, own(space), includeArchived="true") == ids
    again = read(await client.post(archive, json={"notificationId": ids[0]}))
    assert again == first
    logged = [one for one in await events(client, space) if one["type"] != "notification.read"]
    assert [one["type"] for one in logged] == ["notification.archived"] * 2
    assert [one["data"]["notificationIds"] for one in logged] == [[ids[0]], sorted(ids[1:3])]


@pytest.mark.long
async def test_everybody_in_a_large_workspace_is_notified(space: Space) -> None:
    """More people than one statement has parameters for."""
    ids = [new_id() for _ in range(6_000)]
    person = {"issuer": "many", "created_at": utc_now(), "updated_at": utc_now()}
    member = {"workspace_id": space.id, "role": Role.VIEWER, "created_at": utc_now()}
    notice = Notice(kind=NotificationKind.SYSTEM, title="All", key="all")
    async with space.database.engine.connect() as connection:
        transaction = await connection.begin()
        work = UnitOfWork(connection)
        await work.execute(
            insert(app_user), [{"id": one, "subject": str(one), **person} for one in ids]
        )
        await work.execute(insert(workspace_member), [{"user_id": one, **member} for one in ids])
        for _ in range(2):
            assert await notify(work, space.id, ids, notice) == ids
        written = select(func.count()).where(notification.c.workspace_id == space.id)
        assert await work.scalar(written) == len(ids)
        await transaction.rollback()


async def test_marks_at_the_same_time_are_logged_once(client: Client, space: Space) -> None:
    ids = await notified(space, 3)
    await asyncio.gather(
        *(mark(client, own(space), notificationIds=ids) for _ in range(5)),
        *(mark(client, INBOX, all=True) for _ in range(5)),
    )
    logged = await events(client, space)
    named = [id_ for one in logged for id_ in one["data"]["notificationIds"]]
    assert sorted(named) == sorted(ids)


async def test_an_inbox_spans_workspaces_or_is_restricted_to_one(
    client: Client, workspace: MakeSpace, issuer: DevelopmentIssuer, space: Space
) -> None:
    other = await workspace()
    async with other.database.transaction() as work:
        await add_member(work, other.id, space.user_id, Role.VIEWER)
    (here,), (there,) = await notified(space), await notified(other, user_id=space.user_id)
    person = client.with_token(issuer.mint(space.email, "Test"))
    assert await listed(person, INBOX) == [there, here]
    assert await listed(client, INBOX) == [here]
    assert await listed(person, INBOX, workspaceId=str(other.id)) == [there]
    restricted = {"workspaceId": str(space.id)}
    answer = await person.post(f"{INBOX}/read", json={"all": True}, params=restricted)
    assert read(answer)["notificationIds"] == [here]
    answer = await person.post(f"{INBOX}/read", json={"all": True})
    assert read(answer)["notificationIds"] == [there]
    answer = await person.post(f"{INBOX}/archive", json={"allRead": True})
    assert sorted(read(answer)["notificationIds"]) == sorted([here, there])
    assert [len(await events(person, one)) for one in (space, other)] == [2, 2]


async def test_a_workspace_that_is_not_the_callers_is_not_found(
    client: Client, foreign: Space
) -> None:
    for workspace_id in (foreign.id, uuid4()):
        query = {"workspaceId": str(workspace_id)}
        for answer in (
            await client.get(INBOX, params=query),
            await client.post(f"{INBOX}/read", json={"all": True}, params=query),
            await client.post(f"{INBOX}/archive", json={"allRead": True}, params=query),
        ):
            assert refused(answer) == (404, "not_found")
    bad = {"workspaceId": "nonsense"}
    answer = await client.post(f"{INBOX}/read", json={"all": True}, params=bad)
    assert refused(answer) == (400, "validation_error")


async def test_a_key_needs_the_scope(client: Client, space: Space) -> None:
    await notified(space)
    scopes = [scope for scope in Scope if scope is not Scope.WORKSPACE_READ]
    key = client.with_token(await space.key(scopes))
    assert refused(await key.get(own(space))) == (403, "denied")
    assert refused(await key.post(f"{own(space)}/read", json={"all": True})) == (403, "denied")
    query = {"workspaceId": str(space.id)}
    answer = await key.post(f"{INBOX}/read", json={"all": True}, params=query)
    assert refused(answer) == (403, "denied")
    assert await listed(key, INBOX) == []


async def test_a_replayed_call_is_answered_the_same(client: Client, space: Space) -> None:
    ids = await notified(space, 2)
    headers = {"Idempotency-Key": uuid4().hex}
    query = {"workspaceId": str(space.id)}
    for path in (f"{own(space)}/read", f"{INBOX}/read?workspaceId={space.id}"):
        answers = [await client.post(path, json={"all": True}, headers=headers) for _ in range(2)]
        assert len({answer.content for answer in answers}) == 1
        assert answers[1].headers["idempotency-replayed"] == "true"
    headers = {"Idempotency-Key": uuid4().hex}
    archived = [
        await client.post(f"{INBOX}/archive", json={"allRead": True}, params=query, headers=headers)
        for _ in range(2)
    ]
    assert len({answer.content for answer in archived}) == 1
    assert sorted(read(archived[0])["notificationIds"]) == sorted(ids)


async def test_the_log_is_followed_by_its_sequence(client: Client, space: Space) -> None:
    ids = await notified(space, 5)
    for id_ in ids:
        await mark(client, own(space), notificationId=id_)
    logged = await events(client, space)
    assert [one["data"]["notificationIds"] for one in logged] == [[id_] for id_ in ids]
    seqs = [one["seq"] for one in logged]
    assert seqs == sorted(seqs)
    assert await events(client, space, since=str(seqs[2])) == logged[3:]
    assert await events(client, space, since=str(seqs[-1])) == []
    query = {"limit": "2", "since": str(seqs[0] - 1)}
    page = read(await client.get(f"{space.path}/events", params=query))
    further = {"limit": "10", "since": query["since"], "cursor": page["cursor"]}
    assert page["events"] + await events(client, space, **further) == logged
    _, token = await space.member(Role.ADMIN)
    assert await events(client.with_token(token), space) == []
    for since in ("-1", "x", "1.5", str(2**63)):
        answer = await client.get(f"{space.path}/events", params={"since": since})
        assert refused(answer) == (400, "validation_error")


async def test_the_signing_secret_is_one_and_for_those_who_manage(
    client: Client, space: Space, foreign: Space
) -> None:
    path = f"{space.path}/webhook-signing-secret"
    answers = await asyncio.gather(*(client.get(path) for _ in range(5)))
    assert len({answer.content for answer in answers}) == 1
    assert read(answers[0])["secret"].startswith("whsec_")
    theirs = await client.with_token(foreign.token).get(f"{foreign.path}/webhook-signing-secret")
    assert read(theirs) != read(answers[0])
    _, token = await space.member(Role.EDITOR)
    assert refused(await client.with_token(token).get(path)) == (403, "denied")
    reading = client.with_token(await space.key([Scope.WEBHOOKS_READ]))
    assert refused(await reading.get(path)) == (403, "denied")


@pytest.mark.parametrize(
    ("kind", "data", "page"),
    [
        (NotificationKind.APPROVAL_REQUEST, {}, "/runs/{run}"),
        (NotificationKind.AUTOMATION_FAILED, {}, "/runs/{run}"),
        (NotificationKind.DATA_SOURCE_FAILED, {}, "/data-source-runs/{run}"),
        (NotificationKind.IMPORT_FINISHED, {}, "/data-source-runs/{run}"),
        (NotificationKind.LEGACY_IMPORT, {}, "/legacy-imports/{run}"),
        (NotificationKind.LEGACY_IMPORT, {"workspaceId": "its own"}, "/workspaces/{space}"),
        (
            NotificationKind.SYSTEM,
            {"webhookEndpointId": "its own"},
            "/workspaces/{space}/settings/webhooks/its own",
        ),
        (NotificationKind.SYSTEM, {}, None),
    ],
)
async def test_notifications_have_the_address_of_their_page(
    client: Client, space: Space, kind: NotificationKind, data: Json, page: str | None
) -> None:
    run_id = uuid4()
    notice = Notice(kind=kind, title="Look", run_id=run_id, data=data)
    async with space.database.transaction() as work:
        await notify(work, space.id, [space.user_id], notice)
    (body,) = read(await client.get(own(space)))["notifications"]
    (same,) = read(await client.get("/v1/notifications"))["notifications"]
    assert body == same
    if page is None:
        assert "pageUrl" not in body
    else:
        path = page.format(run=run_id, space=space.id)
        assert body["pageUrl"] == f"https://platform.test{path}"
