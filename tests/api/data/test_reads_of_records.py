"""A request for a record finds key, place and record in one statement, and checks as ever."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from api.app import create_app
from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Role, Scope
from models.data.records.queries import prefetched_record
from runtime.configuration.settings import Settings
from tests.support.client import Client
from tests.support.spaces import Space


@pytest_asyncio.fixture
async def paths(client: Client, space: Space) -> tuple[str, str]:
    """The paths of a record and of the page that lists it."""
    fields = [{"label": "Price", "kind": "number"}]
    made = await client.post(f"{space.path}/databases", json={"label": "D", "fields": fields})
    page = f"/v1/databases/{made.json()['data']['id']}/records"
    record = await client.post(page, json={"title": "One", "data": {"price": 5}})
    return f"/v1/records/{record.json()['data']['id']}", page


@contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that are sent meanwhile; the log of requests is written beside them."""
    sent: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def noted(cursor: Any, query: Any, *rest: Any, **options: Any) -> Any:
        if "SELECT" in str(query) and "request_log" not in str(query):
            sent.append(str(query))
        return await execute(cursor, query, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.AsyncCursor, "execute", noted)
        yield sent


async def test_a_record_takes_one_statement_and_a_page_two(
    client: Client, paths: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, statements in zip(paths, (1, 2), strict=True):
        with _counted(monkeypatch) as sent:
            assert (await client.get(path)).status_code == 200
        assert len(sent) == statements, sent


async def test_a_revoked_key_reads_nothing_more(
    client: Client, space: Space, paths: tuple[str, str]
) -> None:
    made = await client.post(
        f"{space.path}/api-keys", json={"name": "Reader", "scopes": ["records:read"]}
    )
    reader = client.with_token(made.json()["data"]["token"])
    for path in paths:
        assert (await reader.get(path)).status_code == 200
    assert (
        await client.delete(f"{space.path}/api-keys/{made.json()['data']['apiKey']['id']}")
    ).is_success
    for path in paths:
        answer = await reader.get(path)
        assert answer.status_code == 401
        assert "One" not in answer.text


async def test_a_prefetched_record_is_not_shown_without_access(
    client: Client, space: Space, foreign: Space, paths: tuple[str, str]
) -> None:
    _, guest = await space.member(Role.GUEST)
    poor = await space.key([Scope.WORKSPACE_READ])
    for path in paths:
        for token, status in ((foreign.token, 404), (guest, 404), (poor, 403)):
            answer = await client.with_token(token).get(path)
            assert answer.status_code == status
            assert "One" not in answer.text


async def test_a_change_is_read_at_once(client: Client, paths: tuple[str, str]) -> None:
    record, page = paths
    assert (await client.get(record)).json()["data"]["title"] == "One"
    assert (await client.patch(record, json={"title": "Two"})).is_success
    assert (await client.get(record)).json()["data"]["title"] == "Two"
    assert (await client.delete(record)).is_success
    assert (await client.get(record)).status_code == 404
    assert (await client.get(page)).json()["data"]["records"] == []


def test_an_operation_that_writes_prefetches_nothing(settings: Settings) -> None:
    """What it read before its locks would be old."""
    router = Router(tags=["probes"])
    access = Access(resource="record", prefetch=prefetched_record)

    @router.post("/v1/records/{recordId}/probe", access=access)
    async def probe(request: ApiRequest) -> Data[None]:
        raise NotImplementedError

    with pytest.raises(RuntimeError, match="under its locks"):
        create_app(settings, background=(), routers=[router])
