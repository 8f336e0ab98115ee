"""Query parameters and cursors (interface.md#lists-and-cursors)."""

import base64
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.spaces import Space


async def _value(probes: Client, query: str) -> dict[str, Any]:
    answer = await probes.get(f"/v1/probes?{query}")
    assert answer.status_code == 200, answer.text
    value: dict[str, Any] = answer.json()["data"]["value"]
    return value


NO_LIMITS = ["1_000", "%2B5", "+5", "%205%20", "5.0", "5%0A", "%D9%A3", "1e2", "0x10", "", "true"]


@pytest.mark.parametrize("limit", [*NO_LIMITS, "0", "-1", "000"])
async def test_an_invalid_limit_is_refused(probes: Client, limit: str) -> None:
    answer = await probes.get(f"/v1/probes?limit={limit}")
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "limit"


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 30),
        ("limit=1", 1),
        ("limit=007", 7),
        ("limit=100", 100),
        ("limit=999999999", 100),
        ("limit=1000000000", 100),
        (f"limit={'9' * 6000}", 100),
        (f"limit={'0' * 6000}7", 7),
    ],
)
async def test_a_limit_bounds_the_page(probes: Client, query: str, count: int) -> None:
    assert len((await _value(probes, query))["items"]) == count


@pytest.mark.parametrize("flag", ["yes", "on", "1", "TRUE", "", "null"])
async def test_an_invalid_flag_is_refused(probes: Client, flag: str) -> None:
    answer = await probes.get(f"/v1/probes?onlyUnread={flag}")
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "onlyUnread"
    assert (await _value(probes, "onlyUnread=true"))["only"] is True


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("unknown=1", "unknown"),
        ("only_unread=true", "only_unread"),
        ("limit=1&limit=2", "limit"),
        ("cursor=%00", "cursor"),
        ("parentId=5", "parentId"),
        ("parentId=%7B0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f%7D", "parentId"),
    ],
)
async def test_refused_parameters_are_named(probes: Client, query: str, path: str) -> None:
    answer = await probes.get(f"/v1/probes?{query}")
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == path


@pytest.mark.parametrize("query", ["cursor=%ff", "&".join(f"a{n}=1" for n in range(60))])
async def test_unreadable_queries_are_refused(probes: Client, query: str) -> None:
    assert (await probes.get(f"/v1/probes?{query}")).status_code == 400


async def test_a_walk_sees_everything_once(probes: Client) -> None:
    seen: list[int] = []
    query = "limit=100"
    while True:
        value = await _value(probes, query)
        seen += value["items"]
        if value["cursor"] is None:
            break
        query = f"limit=100&cursor={value['cursor']}"
    assert seen == list(range(250))


async def test_a_cursor_cannot_be_altered_or_carried_elsewhere(
    probes: Client, foreign: Space
) -> None:
    cursor = str((await _value(probes, "limit=5"))["cursor"])
    raw = base64.urlsafe_b64decode(cursor + "==")
    moved = base64.urlsafe_b64encode(raw.replace(b"[4]", b"[9]")).decode().rstrip("=")
    refused = [moved, cursor[1:], cursor + "A", "", "x", "é", "A" * 60_000, "[4]"]
    for bad in refused:
        answer = await probes.get("/v1/probes", params={"cursor": bad})
        assert answer.status_code == 400, bad
        assert answer.json()["details"][0]["path"] == "cursor"
    elsewhere = probes.with_token(foreign.token)
    for client, params in (
        (elsewhere, {"cursor": cursor}),
        (probes, {"cursor": cursor, "onlyUnread": "true"}),
    ):
        assert (await client.get("/v1/probes", params=params)).status_code == 400
    assert (await probes.get("/v1/probes", params={"cursor": cursor})).status_code == 200
