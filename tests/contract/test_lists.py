"""Every list answers `data.<resource>[]` and `cursor`, but for documented arrays."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from cli.supervisor.development import DevelopmentIssuer
from tests.contract.callers import caller_of
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, operations
from tests.support.cells import cells
from tests.support.client import Client
from tests.support.document import DOCUMENT

pytestmark = pytest.mark.takes(seconds=15)

ARRAYS = {"list_api_keys", "list_request_logs", "list_action_runs", "list_data_source_runs"}
PAGES = 3
"""The approximate number of pages in which a list is read."""


def _resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _answers() -> Iterator[tuple[str, Any]]:
    """The `data` of each operation that answers some."""
    for described in DOCUMENT["paths"].values():
        for operation in described.values():
            for status, answer in operation["responses"].items():
                schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
                data = _resolved(schema).get("properties", {}).get("data")
                if status.startswith("2") and data is not None:
                    yield operation["operationId"], _resolved(data)


ANSWERS = dict(_answers())
LISTS = [one for one in operations() if one.id.startswith("list_")]
CREATIONS = {one.path: one for one in operations() if one.method == "post"}


def test_only_documented_lists_are_arrays() -> None:
    assert {name for name, data in ANSWERS.items() if data.get("type") == "array"} == ARRAYS


@pytest.mark.parametrize("name", [one for one in ANSWERS if one.startswith("list_")])
def test_a_list_has_an_array_and_a_cursor(name: str) -> None:
    if name not in ARRAYS:
        properties = ANSWERS[name]["properties"]
        arrays = [key for key, one in properties.items() if _resolved(one).get("type") == "array"]
        assert len(arrays) == 1
        assert set(ANSWERS[name]["required"]) >= {*arrays, "cursor"}


def test_an_operation_that_answers_a_cursor_takes_one_and_a_limit() -> None:
    for path, described in DOCUMENT["paths"].items():
        for operation in described.values():
            name = operation["operationId"]
            pages = name in ARRAYS or "cursor" in ANSWERS.get(name, {}).get("properties", {})
            if pages:
                body = operation.get("requestBody", {}).get("content", {})
                shape = _resolved(body.get("application/json", {}).get("schema", {}))
                query = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
                assert {"limit", "cursor"} <= query | shape.get("properties", {}).keys(), path
            links = "Link" in operation["responses"].get("200", {}).get("headers", {})
            assert links == (name in ARRAYS), path


@pytest.mark.long
async def test_every_list_is_read_to_its_end_while_rows_are_added(
    used: Furnished, issuer: DevelopmentIssuer
) -> None:
    with cells() as cell:
        for operation in LISTS:
            with cell(operation.id):
                await _walks(caller_of(used, operation, issuer), used, operation)


async def _walks(client: Client, made: Furnished, operation: Operation) -> None:
    whole = await _walk(client, made, operation, 1_000)
    count = sum(map(len, whole))
    limit = max(1, count // PAGES)
    pages = await _walk(client, made, operation, limit, CREATIONS.get(operation.path))
    before, seen = [_names(page) for page in (whole, pages)]
    assert len(seen) == len(set(seen)), "a row is shown twice"
    remaining = iter(seen)
    assert all(name in remaining for name in before), "a row is left out"
    assert len(pages) >= min(PAGES, count)
    sizes = [len(page) for page in pages[:-1]]
    assert all(size <= limit for size in sizes)


def _names(pages: Sequence[Sequence[Any]]) -> list[str]:
    """What tells the rows apart, in their order."""
    return [_name(row) for page in pages for row in page]


def _name(row: Mapping[str, Any]) -> str:
    for key in ("id", "key", "provider", "seq", "userId", "invitationId"):
        if key in row:
            return str(row[key])
    nested = [one for one in row.values() if isinstance(one, dict) and "id" in one]
    return str(nested[0]["id"]) if nested else repr(sorted(row.items()))


async def _walk(
    client: Client,
    made: Furnished,
    operation: Operation,
    limit: int,
    creation: Operation | None = None,
) -> list[list[Any]]:
    """The pages of a list; another row is made after the first, as far as it can be made again."""
    pages: list[list[Any]] = []
    query: dict[str, str] | None = {"limit": str(limit)}
    while query is not None:
        answer = await call(client, operation, made, query=query)
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        rows = (
            data
            if isinstance(data, list)
            else next(one for one in data.values() if isinstance(one, list))
        )
        pages.append(rows)
        if creation is not None and len(pages) == 1:
            await call(client, creation, made)
        query = _next(answer, query)
    return pages


def _next(answer: httpx2.Response, query: dict[str, str]) -> dict[str, str] | None:
    """The query of the next page, as its cursor or `Link` says."""
    data = answer.json()["data"]
    if isinstance(data, dict):
        return None if data["cursor"] is None else {**query, "cursor": data["cursor"]}
    if "link" not in answer.headers:
        return None
    link = re.fullmatch(r'<([^>]+)>; rel="next"', answer.headers["link"])
    assert link is not None
    target = answer.url.join(link[1])
    assert target.path == answer.url.path
    asked: dict[str, str] = dict(parse_qsl(urlsplit(str(target)).query))
    assert asked.items() >= {"limit": query["limit"]}.items(), "the link keeps what was asked for"
    return asked


async def test_a_link_is_refused_where_it_does_not_belong(used: Furnished) -> None:
    path = f"/v1/workspaces/{used.ids['workspaceId']}/api-keys"
    first = await used.client.get(path, params={"limit": 1})
    following = _next(first, {"limit": "1"})
    assert following is not None
    for other in (f"{path}/request-logs", "/v1/workspaces"):
        refused = await used.client.get(other, params=following)
        assert refused.status_code == 400
        assert refused.json()["details"][0]["path"] == "cursor"
    assert (await used.client.get(path, params={**following, "limit": "2"})).status_code == 200
