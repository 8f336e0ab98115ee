"""Filters of runs that no index answers: what they find, page by page, and how far they look."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from runtime.clock import wire_timestamp
from tests.support.ageing import make_automation
from tests.support.automations import read, refusal
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.written_runs import BEGIN, insert_run, node

Json = dict[str, Any]
LOOKED_THROUGH = "models.automation.automation_runs.filters.LOOKED_THROUGH"


async def found(client: Client, path: str, limit: int = 100, **query: str) -> list[str]:
    """The ids of a list, page by page."""
    ids: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = read(await client.get(path, params={"limit": str(limit), **query, **cursor}))
        ids += [run["id"] for run in page["runs"]]
        if page.get("cursor") is None:
            assert "searchedUntil" not in page
            return ids
        cursor = {"cursor": page["cursor"]}


def at(minutes: int) -> str:
    return wire_timestamp(BEGIN + timedelta(minutes=minutes))


@pytest.fixture
async def runs(space: Space, foreign: Space) -> dict[str, str]:
    """Runs of two automations by name; each began a minute after the one before, and took 30 s."""
    one, other = [await make_automation(space) for _ in range(2)]
    failed = node("pay", 0, status="failed", outcome="failure", error_code="declined")
    late = node("ship", 1, status="failed", outcome="failure", error_code="timeout")
    there = await make_automation(foreign)
    await insert_run(foreign, there, 1, [failed], status="failed", trigger_payload={"a": "Ada"})
    long: Json = {"completed_at": BEGIN + timedelta(minutes=90)}
    return {
        "version": str(one.id),
        "automation": str(one.automation_id),
        "old": await insert_run(space, one, 0, trigger_payload={"name": "ada"}),
        "declined": await insert_run(
            space, one, 1, [node("read", 0), failed], status="failed", error="pay: No ADA here."
        ),
        "late": await insert_run(space, one, 2, [late], status="failed", error="ship: 100%_"),
        "handled": await insert_run(space, other, 3, [failed, node("x", 1)]),
        "long": await insert_run(space, other, 4, trigger_payload={"q": 'say "hi"\\d'}, **long),
        "queued": await insert_run(
            space, other, 5, status="queued", started_at=None, completed_at=None
        ),
    }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (lambda runs: {"automationVersionId": runs["version"]}, "late declined old"),
        (lambda _: {"errorCode": "declined"}, "handled declined"),
        (lambda _: {"failedNodeId": "pay", "status": "failed"}, "declined"),
        (lambda _: {"failedNodeId": "pay", "errorCode": "timeout"}, ""),
        (lambda _: {"failedNodeId": "read"}, ""),
        (lambda _: {"minSeconds": "31"}, "long"),
        (lambda _: {"maxSeconds": "30"}, "handled late declined old"),
        (lambda _: {"minSeconds": "30", "maxSeconds": "30.5"}, "handled late declined old"),
        (lambda _: {"startedSince": at(2), "startedUntil": at(4)}, "handled late"),
        (lambda _: {"endedSince": at(4)}, "long"),
        (lambda _: {"endedUntil": at(2)}, "declined old"),
        (lambda _: {"text": "ADA"}, "declined old"),
        (lambda runs: {"text": "ada", "automationId": runs["automation"]}, "declined old"),
        (lambda _: {"text": "ada", "status": "failed"}, "declined"),
        (lambda _: {"text": "ada", "since": at(1)}, "declined"),
        (lambda _: {"text": "100%_"}, "late"),
        (lambda _: {"text": "1_0"}, ""),
        (lambda _: {"text": "%"}, "late"),
        (lambda _: {"text": ".*"}, ""),
        (lambda _: {"text": "' OR 1=1 --"}, ""),
        (lambda _: {"text": 'say "hi"'}, "long"),
        (lambda _: {"text": "\\d"}, "long"),
        (lambda _: {"text": '"name": "ada"'}, "old"),
    ],
)
async def test_a_filter_finds_the_runs_that_fit(
    client: Client, space: Space, runs: dict[str, str], query: Callable[..., Json], names: str
) -> None:
    wanted = [runs[name] for name in names.split()]
    path = f"{space.path}/automation-runs"
    assert await found(client, path, **query(runs)) == wanted
    assert await found(client, path, limit=1, **query(runs)) == wanted
    inside = {name: one for name, one in query(runs).items() if name != "automationId"}
    ours = {runs[name] for name in ("old", "declined", "late")}
    path = f"{space.path}/automations/{runs['automation']}/runs"
    assert await found(client, path, **inside) == [one for one in wanted if one in ours]


@pytest.mark.long
async def test_a_page_searches_a_bounded_number_of_runs_and_the_next_continues(
    client: Client, space: Space, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOOKED_THROUGH, 2)
    path = f"{space.path}/automation-runs"
    page = read(await client.get(path, params={"text": "ada"}))
    assert (page["runs"], page["searchedUntil"]) == ([], at(4))
    page = read(await client.get(path, params={"text": "ada", "cursor": page["cursor"]}))
    assert (page["runs"], page["searchedUntil"]) == ([], at(2))
    page = read(await client.get(path, params={"text": "ada", "cursor": page["cursor"]}))
    assert [run["id"] for run in page["runs"]] == [runs["declined"], runs["old"]]
    queries: list[Json] = [
        {"text": "ada"},
        {"text": "ada", "status": "failed"},
        {"errorCode": "declined"},
    ]
    for query in queries:
        for most in (1, 2, 3, 5, 6, 7):
            monkeypatch.setattr(LOOKED_THROUGH, most)
            pages = await found(client, path, limit=1, **query)
            monkeypatch.setattr(LOOKED_THROUGH, 10_000)
            assert pages == await found(client, path, **query)


@pytest.mark.usefixtures("runs")
async def test_a_cursor_belongs_to_its_filter(client: Client, space: Space) -> None:
    path = f"{space.path}/automation-runs"
    page = read(await client.get(path, params={"limit": "1", "text": "ada", "period": "day"}))
    again = {"limit": "1", "period": "day", "cursor": page["cursor"]}
    assert read(await client.get(path, params={**again, "text": "ada"}))["runs"]
    answer = await client.get(path, params={**again, "text": "bob"})
    assert refusal(answer) == (400, "validation_error")


@pytest.mark.parametrize(
    "query",
    [
        {"text": ""}, {"text": "x" * 201}, {"text": "\x00"}, {"minSeconds": "-1"},
        {"minSeconds": "nan"}, {"maxSeconds": "x"}, {"errorCode": ""}, {"failedNodeId": "x" * 65},
        {"startedSince": "yesterday"}, {"period": "year"}, {"automationVersionId": "x"},
    ],
)  # fmt: skip
async def test_malformed_filters_are_refused(
    client: Client, space: Space, query: dict[str, str]
) -> None:
    answer = await client.get(f"{space.path}/automation-runs", params=query)
    assert refusal(answer) == (400, "validation_error")
    (name,) = query
    assert answer.json()["details"][0]["path"] == name


@pytest.mark.usefixtures("runs")
async def test_a_search_that_takes_too_long_is_aborted_with_advice(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = await make_automation(space)
    # Compressed it is small, and each run is read whole.
    for number in range(8):
        await insert_run(space, version, number, trigger_payload={"text": "x" * 3_000_000})
    monkeypatch.setattr("models.automation.automation_runs.filters.SEARCH_TIME", "5ms")
    path = f"{space.path}/automation-runs"
    answer = await client.get(path, params={"text": "nowhere"})
    assert refusal(answer) == (400, "validation_error")
    assert "time range" in answer.text
    assert read(await client.get(path))["runs"], "others have their time"
