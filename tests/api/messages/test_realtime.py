"""Realtime connections: who opens one, and what it is sent, over real sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import func, select, text, update
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from api.realtime.feeds import connection_url
from api.realtime.hub import End
from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Principal, PrincipalType, Role
from models.messages.realtime import UnusableTicketError, realtime_ticket, redeem
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from runtime.configuration.settings import Settings
from runtime.crypto import fingerprint
from runtime.postgresql.notifier import LOG_CHANNEL
from tests.support.client import Client, Contract
from tests.support.feeds import listening, ticket
from tests.support.patience import ENOUGH
from tests.support.server import Server, serving
from tests.support.silence import WEBSOCKET, rest_of, silent_client
from tests.support.spaces import Space

Json = dict[str, Any]


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    async with serving(settings, WORKSPACE_RATE_LIMIT_KEY="0") as server:
        yield server


@pytest_asyncio.fixture
async def session(space: Space, issuer: DevelopmentIssuer) -> str:
    """The owner's session."""
    return await space.session(space.user_id, issuer)


@asynccontextmanager
async def calling(server: Server, token: str) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=ENOUGH) as caller:
        yield caller


async def read(answer: httpx2.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()["data"]


async def folder(caller: httpx2.AsyncClient, title: str, **options: Any) -> str:
    """A new folder's id."""
    body = {"kind": "folder", "title": title, **options}
    made: str = (await read(await caller.post("/v1/items", json=body)))["item"]["id"]
    return made


# ---- tickets


async def test_a_ticket_opens_one_connection(server: Server, space: Space, session: str) -> None:
    url = (await ticket(server, space, session))["url"]
    async with connect(url):
        with pytest.raises(InvalidStatus) as refused:
            await connect(url)
    assert refused.value.response.status_code == 401


async def test_the_url_is_not_made_from_what_the_request_says(
    client: Client, space: Space, session: str
) -> None:
    answer = await client.with_token(session).post(f"{space.path}/realtime/ticket")
    minted = await read(answer)
    assert minted["url"] == f"wss://platform.test/v1/realtime?ticket={minted['ticket']}"
    assert connection_url("http://a.test:81/b", "x") == "ws://a.test:81/b/v1/realtime?ticket=x"
    assert connection_url(None, "x") == "/v1/realtime?ticket=x"


async def test_of_many_at_once_one_redeems(server: Server, space: Space, session: str) -> None:
    minted = await ticket(server, space, session)

    async def use() -> bool:
        try:
            async with space.database.transaction() as work:
                await redeem(work, minted["ticket"])
        except UnusableTicketError:
            return False
        return True

    assert sum(await asyncio.gather(*(use() for _ in range(12)))) == 1


@pytest.mark.parametrize(("age", "opens"), [(29.0, True), (31.0, False)])
async def test_a_ticket_lasts_half_a_minute(
    server: Server, space: Space, session: str, age: float, opens: bool
) -> None:
    minted = await ticket(server, space, session)
    async with space.database.transaction() as work:
        digest = fingerprint(minted["ticket"].encode())
        column = realtime_ticket.c.expires_at
        older = update(realtime_ticket).where(realtime_ticket.c.digest == digest)
        await work.execute(older.values(expires_at=column - timedelta(seconds=age)))
    if opens:
        async with connect(minted["url"]):
            return
    with pytest.raises(InvalidStatus) as refused:
        await connect(minted["url"])
    assert refused.value.response.status_code == 401


async def test_keys_and_strangers_get_no_ticket(
    app: FastAPI, contract: Contract, client: Client, foreign: Space, session: str
) -> None:
    path = f"{foreign.path}/realtime/ticket"
    own = Client(app, contract, foreign.token)
    assert (await own.post(path)).json()["error"] == "denied"
    assert (await client.with_token(session).post(path)).json()["error"] == "not_found"
    assert (await client.with_token(None).post(path)).status_code == 401


async def test_without_its_store_no_ticket_is_minted(
    client: Client, space: Space, session: str
) -> None:
    mint = client.with_token(session).post
    async with space.database.transaction() as work:
        await work.execute(text("ALTER TABLE realtime_ticket RENAME TO taken_away"))
    try:
        answer = await mint(f"{space.path}/realtime/ticket")
    finally:
        async with space.database.transaction() as work:
            await work.execute(text("ALTER TABLE taken_away RENAME TO realtime_ticket"))
    assert (answer.status_code, answer.json()["_tag"]) == (502, "ApiUpstreamError")
    assert (await mint(f"{space.path}/realtime/ticket")).status_code == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 401), ("?ticket=x", 401), ("?ticket=x&since=-1", 400), ("?ticket=x&more=1", 400)],
)
async def test_errors_are_answered_before_the_feed_opens(
    server: Server, query: str, status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{server.url.replace('http', 'ws')}/v1/realtime{query}")
    assert refused.value.response.status_code == status
    with pytest.raises(InvalidStatus) as elsewhere:
        await connect(f"{server.url.replace('http', 'ws')}/v1/elsewhere{query}")
    assert elsewhere.value.response.status_code == 404


# ---- what is sent


async def test_a_change_reaches_who_listens(server: Server, space: Space, session: str) -> None:
    async with listening(server, space, session) as listener, calling(server, space.token) as owner:
        made = await folder(owner, "Plans")
        event = await listener.until("item.created", itemId=made)
        assert event["actor"] == {"type": "api_key", "userId": str(space.user_id)}
        path = f"{space.path}/databases"
        database = await read(await owner.post(path, json={"label": "Tasks"}))
        await listener.until("database.created", databaseId=database["id"])
        path = f"/v1/databases/{database['id']}/records"
        record = await read(await owner.post(path, json={"title": "One"}))
        await listener.until("record.created", recordId=record["id"])
        await owner.patch(f"/v1/records/{record['id']}", json={"title": "Two"})
        await listener.until("record.updated", recordId=record["id"])
        seqs = [event["seq"] for event in listener.events]
        assert seqs == sorted(set(seqs))


async def test_events_can_be_listened_to_by_http(
    server: Server, space: Space, session: str
) -> None:
    url = (await ticket(server, space, session))["url"].replace("ws://", "http://")
    async with (
        calling(server, space.token) as owner,
        owner.stream("GET", url, headers={"Last-Event-ID": "0"}) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        made = await folder(owner, "Plans")
        async with asyncio.timeout(ENOUGH):
            async for line in answer.aiter_lines():
                if made in line:
                    assert line.startswith('data: {"seq":')
                    return


@pytest.mark.long
async def test_the_feed_is_the_log_over_restarts(
    settings: Settings, space: Space, issuer: DevelopmentIssuer
) -> None:
    session = await space.session(space.user_id, issuer)
    received: list[Json] = []
    for turn in range(3):
        async with serving(settings) as server, calling(server, space.token) as owner:
            since = received[-1]["seq"] if received else 0
            async with listening(server, space, session, since) as listener:
                bodies = [folder(owner, f"{turn}-{number}") for number in range(6)]
                *_, last = sorted(await asyncio.gather(*bodies))
                # The last turn reads to the end; the others lose what they had not read yet.
                while turn == 2 or len(listener.events) < 4:
                    event = await listener.next()
                    if turn == 2 and event.get("data", {}).get("itemId") == last:
                        break
                received += listener.events
            # The block of the server ends by SIGKILL.
    async with space.database.reading() as work:
        rows = await work.rows(
            text("SELECT seq FROM workspace_event WHERE workspace_id = :id ORDER BY seq"),
            {"id": space.id},
        )
    logged = [row.seq for row in rows]
    assert [event["seq"] for event in received] == logged[: len(received)]
    assert len(received) >= len(logged) - 6


async def test_without_notifications_the_log_is_polled(
    server: Server, space: Space, session: str
) -> None:
    async with listening(server, space, session) as listener:
        async with space.database.transaction() as work:
            hung_up = text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN %'"
            )
            assert len(await work.rows(hung_up)) >= 1
        for number in range(3):
            await log_unheard(space, {"number": number})
        for number in range(3):
            await listener.until("workspace.updated", number=number)
    seqs = [event["seq"] for event in listener.events]
    assert seqs == sorted(set(seqs))


# ---- who may see what


@pytest.mark.long
async def test_events_of_restricted_items_reach_only_their_members(
    server: Server, space: Space, issuer: DevelopmentIssuer
) -> None:
    user_id, _ = await space.member(Role.EDITOR)
    guest_id, _ = await space.member(Role.GUEST)
    tokens = [await space.session(one, issuer) for one in (user_id, guest_id)]
    async with (
        listening(server, space, tokens[0]) as editor,
        listening(server, space, tokens[1]) as guest,
        calling(server, space.token) as owner,
    ):
        closed = await folder(owner, "Closed")
        await editor.until("item.created", itemId=closed)
        await grant(owner, closed, "restricted", guest_id)
        inner = await folder(owner, "Inner", parentItemId=closed)
        await guest.until("item.created", itemId=inner)
        shown = await folder(owner, "Shown")
        await editor.until("item.created", itemId=shown)
        await grant(owner, closed, "restricted", user_id)
        last = await folder(owner, "Last", parentItemId=closed)
        await editor.until("item.created", itemId=last)
        await space.remove(guest_id)
        with pytest.raises(ConnectionClosed) as ended:
            await guest.until("item.created", itemId=last)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == End.WITHDRAWN
    seen = {event["data"].get("itemId") for event in editor.events}
    assert inner not in seen
    of_guest = [event for event in guest.events if event["type"] != "notification.created"]
    assert {event["data"].get("itemId") for event in of_guest} <= {closed, inner}


async def grant(
    owner: httpx2.AsyncClient, item_id: str, mode: str, user_id: UUID, level: str = "view"
) -> None:
    grants = [{"userId": str(user_id), "level": level}]
    body = {"accessMode": mode, "grants": grants}
    await read(await owner.put(f"/v1/items/{item_id}/access", json=body))


async def test_the_list_shows_what_the_feed_would(client: Client, space: Space) -> None:
    _, token = await space.member(Role.EDITOR)
    closed = await folder(client, "Closed")
    body = {"accessMode": "restricted", "grants": []}
    await client.put(f"/v1/items/{closed}/access", json=body)
    shown = await folder(client, "Shown")
    path, query = f"{space.path}/events", {"limit": "100"}
    answer = await client.with_token(token).get(path, params=query)
    named = {event["data"].get("itemId") for event in answer.json()["data"]["events"]}
    assert shown in named
    assert closed not in named


@pytest.mark.long
async def test_members_know_who_else_is_there(
    settings: Settings, server: Server, space: Space, issuer: DevelopmentIssuer
) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    sessions = [await space.session(one, issuer) for one in (space.user_id, user_id)]
    async with listening(server, space, sessions[0]) as owner, serving(settings) as another:
        assert (await owner.present()) == {str(space.user_id)}
        async with listening(another, space, sessions[1]) as viewer:
            assert (await owner.present()) == {str(space.user_id), str(user_id)}
            assert (await viewer.present()) == {str(space.user_id), str(user_id)}
        assert (await owner.present()) == {str(space.user_id)}


# ---- clients that do not behave

SILENCE_MEGABYTES = 12
"""What is sent while a client does not read."""


async def test_a_client_that_sends_a_message_is_disconnected(
    server: Server, space: Space, session: str
) -> None:
    async with listening(server, space, session) as listener:
        await listener.socket.send("hello")
        with pytest.raises(ConnectionClosed):
            await listener.next()


@pytest.mark.long
@pytest.mark.parametrize("how", [WEBSOCKET, ()], ids=["websocket", "event-stream"])
async def test_a_client_that_reads_nothing_is_disconnected_and_others_continue(
    server: Server, space: Space, session: str, issuer: DevelopmentIssuer, how: Sequence[str]
) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    theirs = await space.session(user_id, issuer)
    urls = [(await ticket(server, space, theirs))["url"] for _ in range(3)]
    async with listening(server, space, session) as reader:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(silent_client(url, *how)) for url in urls]
            while await reader.present() != {str(space.user_id), str(user_id)}:
                pass
            for _ in range(SILENCE_MEGABYTES * 2):
                await log_half_a_megabyte(space)
                for _ in range(10):
                    await reader.until("workspace.updated")
            received = [await asyncio.to_thread(rest_of, each) for each in silent]
        seqs = [event["seq"] for event in reader.events]
    for each in received:
        assert len(each) < SILENCE_MEGABYTES * 1_000_000
        assert not each.endswith(b"\r\n0\r\n\r\n"), "an answer that ends needs a client that reads"
    async with space.database.reading() as work:
        named = {"id": space.id, "first": seqs[0], "last": seqs[-1]}
        between = text(
            "SELECT seq FROM workspace_event WHERE workspace_id = :id"
            " AND seq BETWEEN :first AND :last ORDER BY seq"
        )
        assert [row.seq for row in await work.rows(between, named)] == seqs


async def log_half_a_megabyte(space: Space) -> None:
    """Ten events of a log, of which the server is notified."""
    await log_unheard(space, {"words": "x" * 50_000}, count=10)
    async with space.database.transaction() as work:
        await work.execute(select(func.pg_notify(LOG_CHANNEL, str(space.id))))


async def log_unheard(space: Space, data: Json, count: int = 1) -> None:
    """Events of a log, without a notification."""
    somebody = Principal(type=PrincipalType.SYSTEM, id=space.id, user_id=space.id)
    async with space.database.transaction() as work:
        for _ in range(count):
            await append_event(work, somebody, space.id, EventType.WORKSPACE_UPDATED, data)
