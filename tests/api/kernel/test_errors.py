"""Every refusal in one shape, the framework's too (interface.md#error-codes)."""

import asyncio
import errno
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import uuid4

import psycopg
import pytest
import pytest_asyncio
from fastapi import FastAPI
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from api.app import create_app
from api.kernel.responses import as_refusal
from runtime.configuration.settings import Settings
from runtime.database import Database, libpq_url
from runtime.postgresql import sessions
from runtime.postgresql.sessions import BoundedConnection, DatabaseUnreachableError, Reach
from tests.support.client import Client, Contract
from tests.support.patience import ENOUGH, eventually
from tests.support.spaces import Space


@pytest.mark.parametrize(
    ("code", "status", "tag", "retry_after"),
    [
        ("not_found", 404, "ApiNotFound", None),
        ("validation_error", 400, "ApiValidationError", None),
        ("invalid", 400, "ApiInvalid", None),
        ("run_error", 409, "ApiRunError", None),
        ("conflict", 409, "ApiConflict", None),
        ("in_progress", 409, "ApiInProgress", "2"),
        ("conflicting_mutation", 422, "ApiConflictingMutation", None),
        ("unsupported", 422, "ApiUnsupported", None),
        ("denied", 403, "ApiDenied", None),
        ("upstream_error", 502, "ApiUpstreamError", None),
        ("rate_limited", 429, "ApiRateLimited", "1"),
        ("unavailable", 503, "ApiUnavailable", "2"),
    ],
)
async def test_every_class_has_its_shape(
    probes: Client, probe_path: str, code: str, status: int, tag: str, retry_after: str | None
) -> None:
    answer = await probes.post(probe_path, json={"name": "n", "raises": code})
    body = answer.json()
    keys = {"_tag", "error", "message", "status"}
    assert answer.status_code == status
    assert set(body) == keys | ({"details"} if code == "validation_error" else set())
    assert (body["_tag"], body["error"], body["status"]) == (tag, code, status)
    assert answer.headers.get("retry-after") == retry_after


async def test_a_bug_tells_nothing(
    probes: Client, probe_path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = await probes.post(probe_path, json={"name": "n", "raises": "bug"})
    assert answer.status_code == 500
    assert answer.json()["error"] == "internal_error"
    assert "secret" not in answer.text
    assert "KeyError" not in answer.text
    assert "unexpected_error" in "".join(capfd.readouterr())


@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/", "/v1/me/", "/v1/workspaces/", "/nope", "/v1/%00", "/docs/x", "//v1/me"],
)
async def test_unknown_paths_are_not_found(client: Client, path: str) -> None:
    answer = await client.get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 404
    assert answer.json()["_tag"] == "ApiNotFound"
    assert "location" not in answer.headers


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PROPFIND", "PUT", "POST"])
async def test_unknown_methods_are_not_allowed(client: Client, method: str) -> None:
    answer = await client.request(method, "/v1/me", headers={"X-HTTP-Method-Override": "GET"})
    assert answer.status_code == 405
    assert answer.json()["error"] == "method_not_allowed"
    assert answer.headers["allow"] == "GET, HEAD"
    assert (await client.request(method, "/nope")).status_code == 404


async def test_unknown_paths_are_reported_to_known_callers(client: Client, space: Space) -> None:
    unknown = (
        ("GET", "/v1/nope"),
        ("POST", "/v1/items/search"),
        ("GET", f"{space.path}/nope"),
        ("GET", f"/v1/items/{uuid4()}/duplicate/x"),
        ("GET", "/"),
    )
    unallowed = (
        ("PUT", "/v1/me"),
        ("PUT", f"/v1/items/{uuid4()}"),
        ("GET", f"/v1/items/{uuid4()}/move"),
    )
    for asked, status in ((unknown, 404), (unallowed, 405)):
        for method, path in asked:
            for token in (None, "svc_sk_typo", f"{space.token[:-1]}"):
                refused = await client.with_token(token).request(method, path)
                assert refused.status_code == 401, path
                assert refused.headers["www-authenticate"] == "Bearer"
            answer = await client.request(method, path, params={"a": "b"}, content=b"not json")
            assert answer.status_code == status, path
    assert (await client.with_token(None).put("/healthz")).status_code == 405


async def test_allow_names_every_method_of_a_path(client: Client, space: Space) -> None:
    answer = await client.put(f"{space.path}/api-keys")
    assert answer.headers["allow"] == "GET, HEAD, POST"
    assert answer.json()["message"].endswith("Allowed: GET, HEAD, POST.")


async def test_an_unknown_path_tells_its_neighbours_to_known_callers_alone(
    client: Client, space: Space
) -> None:
    path = f"{space.path}/databases/{uuid4()}/records"
    assert "/v1/" not in (await client.with_token(None).get(path)).text
    answer = await client.get(path)
    assert answer.status_code == 404
    assert "/v1/databases/{databaseId}/records (GET, POST)" in answer.json()["message"]


async def test_every_answer_carries_its_headers(client: Client) -> None:
    for path, status in (("/v1/me", 200), ("/nope", 404), ("/v1/probes?x=1", 404)):
        answer = await client.get(path, headers={"X-Request-Id": "abc-1"})
        assert answer.status_code == status
        assert answer.headers["x-request-id"] == "abc-1"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers
    for insane in (b"", b"a b", b"\xff", b"x" * 129, b"a\x01"):
        answer = await client.get("/v1/me", headers=[(b"X-Request-Id", insane)])
        assert len(answer.headers["x-request-id"]) == 32


def app_on(settings: Settings, url: str) -> FastAPI:
    """The application with another database."""
    changed = {"database_url": type(settings.database_url)(url)}
    return create_app(settings.model_copy(update=changed), background=())


SOON = 4
"""Seconds: it takes less than one, and took ten; a slow machine takes its time."""


class Relay:
    """A server before PostgreSQL, which passes everything on until it is frozen."""

    def __init__(self, target: str) -> None:
        self._parts = conninfo_to_dict(target)
        self._runs = asyncio.Event()
        self._runs.set()
        self.opening_seconds = 0.0

    def freeze(self) -> None:
        self._runs.clear()

    def thaw(self) -> None:
        self._runs.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on both ways; a frozen one accepts what comes, and answers nothing.

        A connection is opened only after `opening_seconds`.
        """
        await asyncio.sleep(self.opening_seconds)
        host, port = str(self._parts["host"]), self._parts.get("port", 5432)
        if host.startswith("/"):
            other = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            other = await asyncio.open_connection(host, int(port))
        await asyncio.gather(self._pass(reader, other[1]), self._pass(other[0], writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                await self._runs.wait()
                writer.write(data)
        writer.close()


@pytest_asyncio.fixture
async def relay(database_url: str) -> AsyncIterator[tuple[Relay, str]]:
    """A relay before this test's PostgreSQL, and the URL that leads through it."""
    relay = Relay(database_url)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    [listener] = server.sockets
    parts = conninfo_to_dict(database_url)
    login = f"{parts['user']}:{parts.get('password', '')}"
    port = listener.getsockname()[1]
    yield relay, f"postgresql://{login}@127.0.0.1:{port}/{parts['dbname']}?sslmode=disable"
    relay.thaw()
    server.close()


async def unavailable_soon(client: Client, *paths: str) -> None:
    """Every path is refused with 503, and soon."""
    for path in paths:
        start = time.monotonic()
        answer = await client.get(path)
        assert answer.status_code == 503, answer.text
        assert answer.json()["_tag"] == "ApiUnavailable"
        assert answer.headers["retry-after"] == "2"
        assert time.monotonic() - start < SOON


async def test_without_a_database_answers_are_503(
    settings: Settings, client: Client, contract: Contract, space: Space
) -> None:
    alone = Client(app_on(settings, "postgresql://127.0.0.1:1/none"), contract, space.token)
    await unavailable_soon(alone, "/v1/me", "/readyz", space.path)
    start = time.monotonic()
    await asyncio.gather(*(unavailable_soon(alone, "/v1/me") for _ in range(40)))
    assert time.monotonic() - start < SOON
    assert (await alone.get("/healthz")).status_code == 200
    assert (await alone.with_token("svc_sk_typo").get("/v1/me")).status_code == 401
    assert (await client.get("/readyz")).json() == {"data": {"status": "ready"}}


async def test_a_database_that_accepts_and_never_answers_is_unavailable(
    settings: Settings, contract: Contract, space: Space
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none"
        alone = Client(app_on(settings, url), contract, space.token)
        await unavailable_soon(alone, "/v1/me", "/readyz", space.path)
        start = time.monotonic()
        await asyncio.gather(*(unavailable_soon(alone, "/v1/me") for _ in range(40)))
        assert time.monotonic() - start < SOON


@pytest.mark.long
async def test_a_database_that_stops_answering_is_unavailable_until_it_answers_again(
    settings: Settings, contract: Contract, space: Space, relay: tuple[Relay, str]
) -> None:
    through, url = relay
    app = app_on(settings, url)
    async with app.router.lifespan_context(app), Client(app, contract, space.token) as client:
        for path in ("/v1/me", "/readyz", space.path):
            assert (await client.get(path)).status_code == 200
        # Both pools have connections that worked.
        await asyncio.sleep(0.5)
        through.freeze()
        await unavailable_soon(client, "/v1/me", "/readyz", space.path)
        through.thaw()

        async def is_back() -> bool:
            return (await client.get("/v1/me")).status_code == 200

        await eventually(is_back, what="the answer of a database that is back")


class StoppedClock:
    """The clock of `sessions`, which the test alone moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    monkeypatch.setattr(sessions, "time", clock)
    return clock


def test_a_database_is_silent_only_when_no_connection_hears_from_it(clock: StoppedClock) -> None:
    reach = Reach(patience=1.0)
    reach.succeed()
    clock.now += 0.5
    # One connection has waited since before the other had its answer.
    reach.fail(waited=1.0)
    assert not reach.is_given_up
    clock.now += 0.5
    reach.fail()
    assert reach.is_given_up
    with pytest.raises(DatabaseUnreachableError):
        reach.require_hope()
    reach.succeed()
    reach.require_hope()


async def test_a_waiting_request_fails_when_no_other_is_answered(clock: StoppedClock) -> None:
    reach, answer = Reach(patience=0.01), asyncio.get_running_loop().create_future()
    reach.succeed()
    waiting = asyncio.create_task(reach.wait_for(answer))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    clock.now += 1
    with pytest.raises(DatabaseUnreachableError):
        await waiting


async def test_a_connection_that_is_slow_to_open_is_waited_for_while_others_are_answered(
    relay: tuple[Relay, str],
    clock: StoppedClock,  # noqa: ARG001  # the other answer stays recent
) -> None:
    through, url = relay
    database = Database(url, patience=0.1)
    async with database.transaction() as first:
        assert await first.scalar(text("SELECT 1")) == 1
        through.opening_seconds = 0.5
        async with database.transaction() as second:
            assert await second.scalar(text("SELECT 2")) == 2
    await database.close()


async def test_a_connection_that_is_given_back_was_answered(
    database_url: str, clock: StoppedClock
) -> None:
    reach = Reach(patience=1.0)
    connection = await BoundedConnection.connect(libpq_url(database_url), reach=reach)
    reach.fail(waited=1.0)
    clock.now += 2
    assert reach.is_given_up
    await connection.execute("SELECT 1")
    connection.give_back()
    assert not reach.is_given_up
    await connection.close()


@pytest.mark.parametrize("begun", [False, True], ids=["before it begins", "while it waits"])
async def test_a_cancelled_wait_for_a_connection_leaves_nothing_behind(
    relay: tuple[Relay, str], *, begun: bool
) -> None:
    through, url = relay
    reach = Reach(patience=ENOUGH)
    connection = await BoundedConnection.connect(libpq_url(url), reach=reach)
    through.freeze()
    trying = asyncio.create_task(reach.answers(connection))
    await asyncio.sleep(0.1 if begun else 0)
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    # The driver reads memory of the connection as long as a statement is under way on it.
    assert not connection.lock.locked()
    await connection.close()
    reach.require_hope()
    assert not reach.is_given_up


async def test_a_slow_statement_is_not_reported_as_unreachable(space: Space) -> None:
    async with space.database.transaction() as work:
        await work.execute(text("SET LOCAL statement_timeout = '1ms'"))
        with pytest.raises(OperationalError) as slow:
            await work.execute(text("SELECT pg_sleep(60)"))
    refusal = as_refusal(slow.value)
    assert refusal.status == 503
    assert refusal.message.startswith("The request timed out")


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.DiskFull("quotes a row"),
        OperationalError("INSERT …", {}, psycopg.errors.DiskFull("quotes a row")),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
    ],
)
def test_a_full_disk_is_called_one(error: Exception, capfd: pytest.CaptureFixture[str]) -> None:
    refusal = as_refusal(error)
    assert (refusal.status, refusal.code) == (503, "unavailable")
    assert " is full, so nothing was saved." in refusal.message
    assert "disk_full" in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("could not extend file: No space left on device"),
        psycopg.errors.TooManyConnections("no room for one more"),
        psycopg.errors.OutOfMemory("out of memory"),
    ],
)
def test_only_its_code_makes_a_disk_full(error: Exception) -> None:
    assert " is full" not in as_refusal(error).message


def test_an_outage_is_logged_without_the_places_that_met_it() -> None:
    """Each request of an outage writes its line: with 60 frames it is 11 KB."""
    lines = []
    for origin in (DatabaseUnreachableError("silent"), psycopg.errors.DeadlockDetected("other")):
        with capture_logs() as logged:
            as_refusal(OperationalError("SELECT", {}, origin))
        lines += logged
    assert [line["event"] for line in lines] == ["database_unavailable"] * 2
    assert ["stack" in line for line in lines] == [False, True]
