"""The same call again: one run for ever within its window, however many copies come at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from sqlalchemy import func, select, update
from temporalio.testing import ActivityEnvironment

from activities.maintenance.sweeps import Expired, RetentionActivities
from models.automation.automation_runs.tables import automation_run
from models.automation.inbox.store import inbox_outcome
from models.automation.webhooks.commands import webhook_receipt
from runtime.clock import utc_now
from runtime.configuration.settings import Settings
from runtime.object_store import ObjectStore
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import outbox
from tests.support.automations import read, refusal
from tests.support.client import Client
from tests.support.engine import PERIODS
from tests.support.hooks import Json, make_hook, send, signed
from tests.support.patience import ENOUGH
from tests.support.server import serving
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=12)

COPIES = 50


@pytest.fixture
def stranger(client: Client) -> Client:
    """A client without any credential."""
    return client.with_token(None)


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[str]:
    """The URL of an API process."""
    async with serving(settings) as server:
        yield server.url


async def counted(space: Space, made: Json) -> tuple[int, int]:
    """The number of runs of the automation, and the number of them that are to be started."""
    runs = select(automation_run.c.id).where(automation_run.c.automation_id == made["id"])
    starts = select(func.count()).where(outbox.c.subject_id.in_(runs))
    async with space.database.transaction() as work:
        return len(await work.rows(runs)), int(await work.scalar(starts))


async def age(space: Space, made: Json, seconds: float) -> None:
    """Let so much time pass since the calls of an automation."""
    async with space.database.transaction() as work:
        await work.execute(
            update(webhook_receipt)
            .where(webhook_receipt.c.automation_id == made["id"])
            .values(expires_at=webhook_receipt.c.expires_at - timedelta(seconds=seconds))
        )


async def test_one_of_several_simultaneous_equal_calls_starts_a_run(
    client: Client, space: Space, server: str
) -> None:
    made = await make_hook(client, space)
    body = json.dumps({"n": 1}).encode()
    headers = {"Content-Type": "application/json", **signed(made["webhookSecret"], body)}
    limits = httpx2.Limits(max_connections=COPIES)
    async with httpx2.AsyncClient(
        base_url=server, trust_env=False, limits=limits, timeout=ENOUGH
    ) as http:
        calls = (
            http.post(made["webhookPath"], content=body, headers=headers) for _ in range(COPIES)
        )
        answers = await asyncio.gather(*calls)
    assert sorted(answer.status_code for answer in answers) == [200] * (COPIES - 1) + [202]
    told = [answer.json()["data"] for answer in answers]
    assert len({one["runId"] for one in told}) == 1
    assert [one["duplicate"] for one in told].count(False) == 1
    assert await counted(space, made) == (1, 1)


async def test_a_copy_names_the_run_and_how_far_it_is(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    first = read(await send(stranger, made, message_id="msg_1"), 202)
    again = read(await send(stranger, made, {"other": "body"}, message_id="msg_1"))
    assert again == {**first, "duplicate": True}
    async with space.database.transaction() as work:
        this = automation_run.c.id == first["runId"]
        await work.execute(update(automation_run).where(this).values(status="cancelled"))
    assert read(await send(stranger, made, message_id="msg_1"))["status"] == "cancelled"
    other = read(await send(stranger, made, message_id="msg_2"), 202)
    assert other["runId"] != first["runId"]


async def test_two_automations_know_nothing_of_each_others_calls(
    client: Client, space: Space, stranger: Client
) -> None:
    one, other = await make_hook(client, space), await make_hook(client, space)
    for made in (one, other):
        assert (await send(stranger, made, message_id="msg_1")).status_code == 202


async def test_a_key_is_free_again_after_its_window(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    first = read(await send(stranger, made, message_id="msg_1"), 202)
    await age(space, made, 86_300)
    assert read(await send(stranger, made, message_id="msg_1"))["runId"] == first["runId"]
    await age(space, made, 200)
    second = read(await send(stranger, made, message_id="msg_1"), 202)
    assert second["runId"] != first["runId"]
    assert read(await send(stranger, made, message_id="msg_1"))["runId"] == second["runId"]


async def test_receipts_past_their_window_are_purged(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    await send(stranger, made, message_id="msg_1")
    await age(space, made, 86_401)
    await send(stranger, made, message_id="msg_2")
    sweep = RetentionActivities(space.database, ObjectStore("memory://"), PERIODS)
    while await ActivityEnvironment().run(sweep.purge, Expired.REPLIES):
        pass
    async with space.database.transaction() as work:
        own = webhook_receipt.c.automation_id == made["id"]
        assert await work.scalar(select(func.count()).where(own)) == 1
    assert (await send(stranger, made, message_id="msg_2")).status_code == 200


async def test_an_old_message_is_refused_and_not_taken_for_a_copy(
    client: Client, space: Space, stranger: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was recorded on the wire is of no use once the tolerance has passed."""
    made = await make_hook(client, space, signature={"toleranceSeconds": 60})
    body = b"{}"
    headers = signed(made["webhookSecret"], body)
    assert (await stranger.post(made["webhookPath"], content=body, headers=headers)).is_success
    later = utc_now() + timedelta(seconds=62)
    monkeypatch.setattr("runtime.database.utc_now", lambda: later)
    again = await stranger.post(made["webhookPath"], content=body, headers=headers)
    assert refusal(again) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("dedupe", "first", "same", "different"),
    [
        (
            {"source": "header", "name": "X-Delivery"},
            {"headers": {"X-Delivery": "1"}, "json": {"n": 1}},
            {"headers": {"x-delivery": "1"}, "json": {"n": 2}},
            {"headers": {"X-Delivery": "2"}, "json": {"n": 1}},
        ),
        (
            {"source": "path", "name": "body.event.id"},
            {"json": {"event": {"id": 7}, "try": 1}},
            {"json": {"event": {"id": 7}, "try": 2}},
            {"json": {"event": {"id": "7"}, "try": 1}},
        ),
        (
            {"source": "path", "name": "event.id"},
            {"json": {"event": {"id": 7}, "try": 1}},
            {"json": {"event": {"id": 7}, "try": 2}},
            {"json": {"event": {"id": "7"}, "try": 1}},
        ),
        (
            {"source": "body_hash"},
            {"content": b'{"n": 1}'},
            {"content": b'{"n": 1}', "headers": {"X-Try": "2"}},
            {"content": b'{"n":1}'},
        ),
    ],
    ids=["header", "path", "path in the body", "body"],
)
async def test_deduplication_follows_the_trigger_config(
    client: Client,
    space: Space,
    stranger: Client,
    dedupe: Json,
    first: Json,
    same: Json,
    different: Json,
) -> None:
    made = await make_hook(client, space, auth="none", dedupe=dedupe)
    path = made["webhookPath"]
    run_id = read(await stranger.post(path, **first), 202)["runId"]
    assert read(await stranger.post(path, **same))["runId"] == run_id
    assert read(await stranger.post(path, **different), 202)["runId"] != run_id


@pytest.mark.parametrize("header", ["webhook-id", "Idempotency-Key"])
async def test_a_header_that_is_for_this_makes_two_calls_one(
    client: Client, space: Space, stranger: Client, header: str
) -> None:
    path = (await make_hook(client, space, auth="none"))["webhookPath"]
    first = read(await stranger.post(path, json={"n": 1}, headers={header: "1"}), 202)
    again = read(await stranger.post(path, json={"n": 1}, headers={header: "1"}))
    assert (again["runId"], again["duplicate"]) == (first["runId"], True)
    other = read(await stranger.post(path, json={"n": 1}, headers={header: "2"}), 202)
    assert other["runId"] != first["runId"]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"dedupe": {"source": "header", "name": "X-Delivery"}},
        {"dedupe": {"source": "path", "name": "body.id"}},
        {"dedupe": {"source": "path", "name": "$..id"}},
    ],
    ids=["none", "header", "path", "query"],
)
async def test_a_call_without_a_key_is_always_new(
    client: Client, space: Space, stranger: Client, config: Any
) -> None:
    made = await make_hook(client, space, auth="none", **config)
    for _ in range(2):
        assert (await stranger.post(made["webhookPath"], json={"n": 1})).status_code == 202
    assert await counted(space, made) == (2, 2)


async def test_a_refused_call_takes_no_key(client: Client, space: Space, stranger: Client) -> None:
    made = await make_hook(client, space, filter="trigger.body.n == 1")
    secret, path = made["webhookSecret"], made["webhookPath"]
    broken = signed(secret, b"{", message_id="msg_1")
    headers = {"Content-Type": "application/json", **broken}
    assert (await stranger.post(path, content=b"{", headers=headers)).status_code == 400
    assert "runId" not in read(await send(stranger, made, {"n": 2}, message_id="msg_1"), 202)
    assert read(await send(stranger, made, {"n": 1}, message_id="msg_1"), 202)["runId"]


async def test_a_skipped_call_takes_no_key(client: Client, space: Space, stranger: Client) -> None:
    made = await make_hook(client, space, concurrency={"limit": 1, "policy": "skip"})
    first = read(await send(stranger, made, message_id="msg_1"), 202)
    skipped = {"status": "skipped", "duplicate": False}
    assert read(await send(stranger, made, message_id="msg_2"), 202) == skipped
    async with space.database.transaction() as work:
        this = automation_run.c.id == first["runId"]
        await work.execute(update(automation_run).where(this).values(status="cancelled"))
    assert read(await send(stranger, made, message_id="msg_2"), 202)["status"] == "queued"


async def test_one_webhook_is_called_so_often_and_no_more(
    client: Client, space: Space, settings: Settings
) -> None:
    made, other = [await make_hook(client, space, auth="none") for _ in range(2)]
    limits = {"WORKSPACE_RATE_LIMIT_WEBHOOK": "0.01", "WORKSPACE_RATE_LIMIT_WEBHOOK_BURST": "3"}
    async with (
        serving(settings, **limits) as server,
        httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=ENOUGH) as http,
    ):
        answers = [await http.post(made["webhookPath"]) for _ in range(4)]
        assert [one.status_code for one in answers] == [202, 202, 202, 429]
        refused = answers[-1]
        assert refused.json()["_tag"] == "ApiRateLimited"
        assert 1 <= int(refused.headers["retry-after"]) <= 100
        assert refused.headers["x-ratelimit-remaining"] == "0"
        assert (await http.post(other["webhookPath"])).status_code == 202
    assert await counted(space, made) == (3, 3)


async def test_a_call_takes_two_statements(
    client: Client, space: Space, stranger: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finds the webhook, one writes receipt, run, start and event; a repeated one asks more."""
    made = await make_hook(client, space)
    run, asked = PreparedStatement._run, []

    async def noted(statement: PreparedStatement, *given: Any) -> Any:
        asked.append(statement)
        return await run(statement, *given)

    monkeypatch.setattr(PreparedStatement, "_run", noted)
    first = read(await send(stranger, made, message_id="msg_1"), 202)
    assert (len(asked), await counted(space, made)) == (2, (1, 1))
    assert read(await send(stranger, made, message_id="msg_1"))["runId"] == first["runId"]
    assert (len(asked), await counted(space, made)) == (7, (1, 1))
    outcome = inbox_outcome.c
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(outcome.outcome, outcome.run_id)
            .where(outcome.automation_id == made["id"])
            .order_by(outcome.received_at)
        )
    assert [row.outcome for row in rows] == ["run", "duplicate"]
    assert {str(row.run_id) for row in rows} == {first["runId"]}
