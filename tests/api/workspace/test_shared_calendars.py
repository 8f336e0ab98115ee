"""A shared database or view as a calendar that other programs subscribe to (RFC 5545)."""

from typing import Any

import pytest

from models.workspace.share_links.calendars import escaped, folded
from tests.api.workspace.test_share_links import by, change_link, public, share, uses
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space

FIELDS = [
    {"label": "Day", "kind": "date"},
    {"label": "Last day", "kind": "date"},
    {"label": "Begins", "kind": "datetime"},
    {"label": "Ends", "kind": "datetime"},
    {"label": "Room", "kind": "text"},
    {"label": "Guide", "kind": "person"},
]


@pytest.fixture
async def trips(client: Client, space: Space) -> Any:
    """A database of trips with days and moments."""
    body = {"label": "Trips", "fields": FIELDS}
    return read(await client.post(f"{space.path}/databases", json=body), 201)


async def add(client: Client, trips: Any, title: str, **data: Any) -> Any:
    path = f"/v1/databases/{trips['id']}/records"
    return read(await client.post(path, json={"title": title, "data": data}), 201)


def unfolded(text: str) -> list[str]:
    """The lines of a calendar, whose form is checked."""
    assert text.endswith("END:VCALENDAR\r\n")
    lines = text.split("\r\n")
    assert all(len(line.encode()) <= 75 for line in lines)
    assert "\n" not in "".join(lines)
    return text.replace("\r\n ", "").split("\r\n")


async def calendar(client: Client, link: Any, token: str, **query: str) -> list[str]:
    answer = await client.with_token(None).get(
        public(link, "/calendar.ics"), headers=by(token), params=query
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
    return unfolded(answer.text)


async def test_days_and_moments_are_events(client: Client, space: Space, trips: Any) -> None:
    room = "Hall; 1, left\\right\nsecond line, " + "ä" * 100
    await add(client, trips, "Island, far", day="2026-01-31", last_day="2026-02-02", room=room)
    await add(client, trips, "Without a day")
    await add(client, trips, "Backwards", day="2026-01-02", last_day="2026-01-01")
    moments = {"begins": "2026-03-29T01:30:00+02:00", "ends": "2026-03-29T04:00:00+02:00"}
    await add(client, trips, "Night", **moments)
    link, token = await share(client, space, trips["itemId"])
    lines = await calendar(client, link, token)
    assert [line for line in lines if line.startswith("SUMMARY")] == [
        "SUMMARY:Island\\, far", "SUMMARY:Backwards",
    ]  # fmt: skip
    assert "DTSTART;VALUE=DATE:20260131" in lines
    [described] = [line for line in lines if "Room" in line]
    assert f"Room: {escaped(room)}" in described
    assert not [line for line in lines if line.startswith("DTEND")]
    lines = await calendar(client, link, token, dateFieldKey="day", endDateFieldKey="last_day")
    assert [line for line in lines if line.startswith("DTEND")] == ["DTEND;VALUE=DATE:20260203"]
    lines = await calendar(client, link, token, dateFieldKey="begins", endDateFieldKey="ends")
    assert ("DTSTART:20260328T233000Z" in lines, "DTEND:20260329T020000Z" in lines) == (True, True)
    assert str(space.user_id) not in "".join(lines)


async def test_a_view_gives_its_fields_and_its_filter(
    client: Client, space: Space, trips: Any
) -> None:
    await add(client, trips, "Shown", day="2026-01-01", begins="2026-01-02T10:00:00Z", room="A")
    await add(client, trips, "Filtered", day="2026-01-01", begins="2026-01-02T10:00:00Z", room="B")
    manifest = {
        "dateFieldKey": "begins",
        "filter": {"field": "room", "op": "eq", "value": "A"},
        "fields": [{"key": "room", "visible": False}],
    }
    config = {"databaseId": trips["id"], "kind": "calendar", "manifest": manifest}
    item = {"kind": "view", "title": "Plan", "config": config}
    made = read(await client.post("/v1/items", json=item), 201)
    link, token = await share(client, space, made["item"]["id"])
    lines = await calendar(client, link, token)
    assert ("X-WR-CALNAME:Plan" in lines, "DTSTART:20260102T100000Z" in lines) == (True, True)
    summaries = [line for line in lines if line.startswith("SUMMARY")]
    assert summaries == ["SUMMARY:Shown"]
    assert "Room" not in "".join(lines)
    hidden = await client.with_token(None).get(
        public(link, "/calendar.ics"), headers=by(token), params={"dateFieldKey": "room"}
    )
    assert hidden.status_code == 422


async def test_more_events_than_a_page_come_and_the_latest_are_first(
    client: Client, space: Space, trips: Any
) -> None:
    operations = [
        {"op": "create", "title": f"{n}", "data": {"day": f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}"}}
        for n in range(450)
    ]
    path = f"/v1/databases/{trips['id']}/records/batch"
    read(await client.post(path, json={"operations": operations}))
    link, token = await share(client, space, trips["itemId"])
    lines = await calendar(client, link, token)
    days = [line for line in lines if line.startswith("DTSTART")]
    assert (len(days), days) == (450, sorted(days, reverse=True))


async def test_a_link_without_dates_is_no_calendar(client: Client, space: Space) -> None:
    body = {"label": "Goods", "fields": [{"label": "Price", "kind": "number"}]}
    goods = read(await client.post(f"{space.path}/databases", json=body), 201)
    link, token = await share(client, space, goods["itemId"])
    answer = await client.with_token(None).get(public(link, "/calendar.ics"), headers=by(token))
    assert (answer.status_code, "date field" in answer.text) == (422, True)


async def test_only_the_token_opens_it_and_each_request_is_a_visit(
    client: Client, space: Space, trips: Any
) -> None:
    link, token = await share(client, space, trips["itemId"], maxUses=2)
    path, anybody = public(link, "/calendar.ics"), client.with_token(None)
    assert (await anybody.get(path)).status_code == 404
    assert (await anybody.get(path, params={"token": "wrong"})).status_code == 404
    assert (await anybody.get(path, params={"token": token})).status_code == 200
    assert await uses(space, link) == 1
    assert (await anybody.get(path, params={"token": token})).status_code == 200
    assert (await anybody.get(path, params={"token": token})).status_code == 404
    await change_link(space, link, use_count=0, max_uses=None)
    read(await client.delete(f"{space.path}/items/{trips['itemId']}/share-links/{link['id']}"))
    assert (await anybody.get(path, params={"token": token})).status_code == 404


@pytest.mark.parametrize("text", ["a" * 74, "a" * 75, "a" * 76, "ä" * 200, "😀" * 60, ""])
def test_long_lines_are_folded_between_characters(text: str) -> None:
    lines = folded(text).split("\r\n")
    assert all(len(line.encode()) <= 75 for line in lines)
    assert "".join([lines[0], *(line[1:] for line in lines[1:])]) == text
    assert len(lines) == 1 or all(line.startswith(" ") for line in lines[1:])


def test_a_text_ends_no_property() -> None:
    hostile = "a\r\nBEGIN:VEVENT\rX:1\nY\x00\x1b;z,\\"
    assert escaped(hostile) == "a\\nBEGIN:VEVENT\\nX:1\\nY\\;z\\,\\\\"
