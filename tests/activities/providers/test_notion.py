"""The adapter of Notion, against a server that answers as its API reference says."""

import csv
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.providers.adapter import Listing, ProblemKind
from activities.providers.notion import MAX_BLOCKS, NotionAdapter
from runtime.outbound.client import OutboundClient
from tests.support.endpoint import reply
from tests.support.provider_asking import access, listed_ids, named, problem_of
from tests.support.provider_server import TOKEN, Asked, ProviderServer, provider_server

GIVEN = access({}, token=TOKEN)


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


PAGE, DATABASE, CHILD, LIST, ENDLESS, CIRCLE = (uid(number) for number in range(1, 7))


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "plain_text": words, "annotations": {}}]


def block(number: int, kind: str, **content: Any) -> dict[str, Any]:
    return {"id": uid(100 + number), "type": kind, kind: content, "has_children": False}


def page(external_id: str, title: str, **more: Any) -> dict[str, Any]:
    return {
        "object": "page",
        "id": external_id,
        "url": f"https://www.notion.so/{external_id}",
        "last_edited_time": "2026-01-01T00:00:00.000Z",
        "parent": {"type": "workspace", "workspace": True},
        "properties": {"Name": {"type": "title", "title": text(title)}},
        **more,
    }


TABLE = {
    "object": "database",
    "id": DATABASE,
    "title": text("Tasks"),
    "parent": {"type": "page_id", "page_id": PAGE},
    "properties": {
        "Done": {"type": "checkbox"},
        "Name": {"type": "title"},
        "Due": {"type": "date"},
    },
}
ROWS = [
    page(uid(1_000 + number), f"Task {number}")
    | {
        "properties": {
            "Name": {"type": "title", "title": text(f"Task {number}")},
            "Done": {"type": "checkbox", "checkbox": number % 2 == 0},
            "Due": {"type": "date", "date": {"start": "2026-02-01", "end": None}},
        }
    }
    for number in range(150)
]
NESTED = {
    **block(1, "bulleted_list_item", rich_text=text("outer")),
    "id": LIST,
    "has_children": True,
}
BLOCKS = {
    PAGE: [
        block(0, "heading_1", rich_text=text("Plan")),
        NESTED,
        {**block(2, "child_page", title="Sub"), "id": CHILD, "has_children": True},
        {**block(3, "child_database", title="Tasks"), "id": DATABASE},
    ],
    LIST: [block(4, "bulleted_list_item", rich_text=text("inner"))],
    ENDLESS: [block(number, "paragraph", rich_text=text("x")) for number in range(MAX_BLOCKS + 1)],
    CIRCLE: [{**block(1, "toggle", rich_text=text("x")), "id": CIRCLE, "has_children": True}],
}


def _list(found: list[dict[str, Any]], start: str | None, size: int) -> bytes:
    first = int(start or "0")
    more = first + size < len(found)
    following = str(first + size) if more else None
    results = found[first : first + size]
    return reply(
        200, {"object": "list", "results": results, "has_more": more, "next_cursor": following}
    )


def search(asked: Asked) -> bytes:
    given = asked.json()
    found = [page(PAGE, "Plan"), TABLE, page(CHILD, "Sub")]
    if "query" in given:
        found = found[:1]
    if "filter" in given:
        found = [one for one in found if one["object"] == given["filter"]["value"]]
    return _list(found, given.get("start_cursor"), given["page_size"])


def children(asked: Asked) -> bytes:
    found = BLOCKS.get(asked.found[0])
    if found is None:
        return reply(404, {"object": "error", "code": "object_not_found"})
    return _list(found, asked.query.get("start_cursor"), int(asked.query["page_size"]))


def rows(asked: Asked) -> bytes:
    given = asked.json()
    return _list(ROWS, given.get("start_cursor"), given["page_size"])


ROUTES = {
    "GET /v1/users/me": lambda _: reply(200, {"object": "user"}),
    "POST /v1/search": search,
    "GET /v1/blocks/([^/]+)/children": children,
    f"GET /v1/databases/{DATABASE}": lambda _: reply(200, TABLE),
    f"POST /v1/databases/{DATABASE}/query": rows,
    f"GET /v1/pages/{PAGE}": lambda _: reply(200, page(PAGE, "Plan\u202e")),
    f"GET /v1/pages/{CHILD}": lambda _: reply(200, page(CHILD, "Sub", archived=True)),
}


@pytest_asyncio.fixture(scope="module")
async def server() -> AsyncIterator[ProviderServer]:
    async with provider_server(ROUTES) as server:
        yield server


@pytest.fixture
def notion(outbound: OutboundClient, server: ProviderServer) -> NotionAdapter:
    return NotionAdapter(outbound, server.url)


async def test_pages_and_databases_are_listed(notion: NotionAdapter) -> None:
    await notion.check(GIVEN)
    assert await listed_ids(notion, GIVEN, limit=2) == [PAGE, DATABASE, CHILD]
    assert await listed_ids(notion, GIVEN, query="plan") == [PAGE]
    assert await listed_ids(notion, GIVEN, external_type="database") == [DATABASE]
    below = await notion.browse(GIVEN, Listing(PAGE))
    assert [(one.external_id, one.name) for one in below.resources] == [
        (CHILD, "Sub"),
        (DATABASE, "Tasks"),
    ]
    assert len(await listed_ids(notion, GIVEN, DATABASE)) == 150


async def test_a_page_is_read_as_markdown(notion: NotionAdapter, tmp_path: Path) -> None:
    found = await notion.describe(GIVEN, named("page", PAGE))
    assert (found.name, found.revision) == ("Plan", "2026-01-01T00:00:00.000Z")
    read = await notion.read(GIVEN, found)
    assert read.format.value == "markdown"
    assert read.content == "# Plan\n\n- outer\n    - inner\n\nSub\n\nTasks\n"
    target = tmp_path / "page"
    done = await notion.download(GIVEN, found, target, {})
    assert target.read_text() == read.content
    assert (await notion.download(GIVEN, found, target, done.validators)).unchanged


async def test_a_database_is_read_as_rows(notion: NotionAdapter, tmp_path: Path) -> None:
    found = await notion.describe(GIVEN, named("database", DATABASE))
    assert (found.surface_kind.value, found.parent_external_id) == ("database", PAGE)
    read = await notion.read(GIVEN, found)
    shown = list(csv.DictReader(read.content.splitlines()))
    assert (read.format.value, len(shown)) == ("csv", 150)
    assert shown[1] == {"Name": "Task 1", "Done": "false", "Due": "2026-02-01"}
    target = tmp_path / "rows"
    await notion.download(GIVEN, found, target, {})
    assert target.read_bytes() == read.content.encode()


async def test_refusals_become_problems(notion: NotionAdapter, server: ProviderServer) -> None:
    for external_id in ("x", "../users/me", uid(99), CHILD):
        wanted = named("page", external_id)
        assert await problem_of(notion.describe(GIVEN, wanted)) is ProblemKind.GONE
    for external_id in (ENDLESS, CIRCLE):
        wanted = named("page", external_id)
        assert await problem_of(notion.read(GIVEN, wanted)) is ProblemKind.TOO_LARGE
    server.first.append(reply(429, {}, retry_after="30"))
    assert await problem_of(notion.check(GIVEN)) is ProblemKind.RATE_LIMITED
    server.first.append(reply(529, {}))
    assert await problem_of(notion.check(GIVEN)) is ProblemKind.UNAVAILABLE
    assert await problem_of(notion.check(access({}, token="old"))) is ProblemKind.AUTH
