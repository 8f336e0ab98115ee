"""Real tables through the API: what queries answer is worked out again with plain Python."""

import statistics
from collections import Counter, defaultdict
from typing import Any

import pytest
import pytest_asyncio

from runtime.configuration.settings import Settings
from runtime.object_store import ObjectStore
from tests.support.client import Client
from tests.support.exports import Exporting, content, export, read_csv, read_xlsx
from tests.support.spaces import Space
from tests.support.tables import load, rows_of

Json = dict[str, Any]

STATES = sorted({row["state"] for row in rows_of("airports.csv")} - {"NA", ""})
AIRPORT: list[dict[str, Any]] = [
    {"label": "Code", "kind": "text"},
    {"label": "City", "kind": "text"},
    {"label": "State", "kind": "select", "options": [{"name": name} for name in STATES]},
    {"label": "Latitude", "kind": "number"},
    {"label": "Longitude", "kind": "number"},
]
CAR: list[dict[str, Any]] = [
    {"label": "Mpg", "kind": "number"},
    {"label": "Cylinders", "kind": "number"},
    {"label": "Horsepower", "kind": "number"},
    {"label": "Year", "kind": "date"},
    {
        "label": "Origin",
        "kind": "select",
        "options": [{"name": name} for name in ("USA", "Europe", "Japan")],
    },
]
DAY = [
    {"label": "Date", "kind": "date"},
    {"label": "Rain", "kind": "number"},
    {"label": "High", "kind": "number"},
    {"label": "Low", "kind": "number"},
    {"label": "Weather", "kind": "text"},
    {"label": "Wet", "kind": "checkbox"},
]


def airport(row: Json) -> Json:
    data = {
        "code": row["iata"],
        "latitude": float(row["latitude"]),
        "longitude": float(row["longitude"]),
    }
    if row["city"] not in {"NA", ""}:
        data["city"] = row["city"]
    if row["state"] in STATES:
        data["state"] = row["state"].lower()
    return {"title": row["name"], "data": data}


def car(row: Json) -> Json:
    data = {
        "mpg": row["Miles_per_Gallon"],
        "cylinders": row["Cylinders"],
        "horsepower": row["Horsepower"],
        "year": row["Year"],
        "origin": row["Origin"].lower(),
    }
    filled = {key: value for key, value in data.items() if value is not None}
    return {"title": row["Name"], "data": filled}


def day(row: Json) -> Json:
    rain = float(row["precipitation"])
    data = {
        "date": row["date"].replace("/", "-"),
        "rain": rain,
        "high": float(row["temp_max"]),
        "low": float(row["temp_min"]),
        "weather": row["weather"],
        "wet": rain > 0,
    }
    return {"title": row["date"], "data": data}


@pytest_asyncio.fixture
async def airports(client: Client, space: Space) -> tuple[str, list[Json]]:
    rows = rows_of("airports.csv")
    made = await load(client, space, "Airports", AIRPORT, rows, airport)
    return made, [airport(row) for row in rows]


@pytest_asyncio.fixture
async def cars(client: Client, space: Space) -> tuple[str, list[Json]]:
    rows = rows_of("cars.json")
    return await load(client, space, "Cars", CAR, rows, car), [car(row) for row in rows]


@pytest_asyncio.fixture
async def days(client: Client, space: Space) -> tuple[str, list[Json]]:
    rows = rows_of("seattle-weather.csv")
    return await load(client, space, "Weather", DAY, rows, day), [day(row) for row in rows]


async def ask(client: Client, database_id: str, **body: Any) -> Json:
    answer = await client.post(f"/v1/databases/{database_id}/records/query", json=body)
    assert answer.status_code == 200, answer.text
    data: Json = answer.json()["data"]
    return data


async def all_records(client: Client, database_id: str, **body: Any) -> list[Json]:
    """The records of all pages."""
    found: list[Json] = []
    cursor = None
    while True:
        page = await ask(client, database_id, **body, cursor=cursor)
        found += page["records"]
        cursor = page["cursor"]
        if cursor is None:
            return found


async def test_a_table_of_airports(client: Client, airports: tuple[str, list[Json]]) -> None:
    database_id, rows = airports
    assert len(rows) == 3376
    every = await all_records(client, database_id, limit=200)
    assert Counter(one["title"] for one in every) == Counter(row["title"] for row in rows)
    await filter_airports(client, database_id, rows)
    await group_airports(client, database_id, rows)


async def filter_airports(client: Client, database_id: str, rows: list[Json]) -> None:
    northern = [row for row in rows if row["data"]["latitude"] > 60]
    found = await all_records(
        client,
        database_id,
        filter={"field": "latitude", "op": "gt", "value": 60},
        sorts=[{"field": "latitude", "direction": "desc"}],
        limit=37,
    )
    latitudes = [one["data"]["latitude"] for one in found]
    assert latitudes == sorted((row["data"]["latitude"] for row in northern), reverse=True)

    international = {
        "and": [
            {"field": "title", "op": "contains", "value": "INTERNATIONAL"},
            {"not": {"field": "state", "op": "in", "value": ["ca", "tx"]}},
        ]
    }
    expected = Counter(
        row["title"]
        for row in rows
        if "international" in row["title"].lower() and row["data"].get("state") not in {"ca", "tx"}
    )
    records = await all_records(client, database_id, filter=international, limit=200)
    assert Counter(one["title"] for one in records) == expected


async def group_airports(client: Client, database_id: str, rows: list[Json]) -> None:
    grouped = await ask(
        client,
        database_id,
        groupBy={"field": "state"},
        aggregates=[
            {"op": "max", "field": "latitude", "as": "north"},
            {"op": "count_unique", "field": "city", "as": "cities"},
        ],
    )
    by_state = defaultdict(list)
    for row in rows:
        by_state[row["data"].get("state")].append(row["data"])
    assert {
        group["value"]: (group["count"], group["aggregates"]) for group in grouped["groups"]
    } == {
        state: (
            len(some),
            {
                "north": max(each["latitude"] for each in some),
                "cities": len({each["city"] for each in some if "city" in each}),
            },
        )
        for state, some in by_state.items()
    }


async def test_cars_are_sorted_with_blanks_first(
    client: Client, cars: tuple[str, list[Json]]
) -> None:
    database_id, rows = cars
    found = await all_records(
        client,
        database_id,
        sorts=[{"field": "mpg", "direction": "desc", "nulls": "first"}, {"field": "title"}],
        limit=50,
    )
    blank = sorted(row["title"] for row in rows if "mpg" not in row["data"])
    filled = sorted(
        (row for row in rows if "mpg" in row["data"]),
        key=lambda row: (-row["data"]["mpg"], row["title"].encode()),
    )
    assert [one["title"] for one in found] == [*blank, *(row["title"] for row in filled)]


async def test_figures_of_cars_leave_out_blanks(
    client: Client, cars: tuple[str, list[Json]]
) -> None:
    database_id, rows = cars
    power = [row["data"]["horsepower"] for row in rows if "horsepower" in row["data"]]
    expected = {
        "sum": sum(power),
        "avg": pytest.approx(statistics.fmean(power)),
        "min": min(power),
        "max": max(power),
        "median": statistics.median(power),
        "stddev": pytest.approx(statistics.stdev(power)),
        "count_empty": len(rows) - len(power),
        "count_unique": len(set(power)),
    }
    aggregates = [{"op": op, "field": "horsepower", "as": op} for op in expected]
    figures = await ask(client, database_id, aggregates=aggregates)
    assert figures["aggregates"] == expected


async def test_cars_are_grouped_by_origin_and_year(
    client: Client, cars: tuple[str, list[Json]]
) -> None:
    database_id, rows = cars
    grouped = await ask(
        client,
        database_id,
        groupBy=[{"field": "origin"}, {"field": "year", "granularity": "year"}],
        aggregates=[{"op": "avg", "field": "mpg"}],
        filter={"field": "cylinders", "op": "between", "value": [4, 6]},
    )
    chosen = [row["data"] for row in rows if 4 <= row["data"]["cylinders"] <= 6]
    assert [group["key"] for group in grouped["groups"]] == ["usa", "europe", "japan"]
    for group in grouped["groups"]:
        own = [row for row in chosen if row["origin"] == group["value"]]
        assert group["count"] == len(own)
        by_year = Counter(row["year"][:4] for row in own)
        assert [(inner["key"], inner["count"]) for inner in group["groups"]] == sorted(
            by_year.items()
        )
        for inner in group["groups"]:
            mpg = [row["mpg"] for row in own if row["year"][:4] == inner["key"] and "mpg" in row]
            assert inner["aggregates"]["avg_mpg"] == pytest.approx(statistics.fmean(mpg))


async def test_a_table_of_weather(client: Client, days: tuple[str, list[Json]]) -> None:
    database_id, rows = days
    data = [row["data"] for row in rows]
    await group_days_by_month(client, database_id, data)
    await filter_days(client, database_id, data)
    totals = await ask(
        client, database_id, aggregates=[{"op": "earliest", "field": "date", "as": "first"}]
    )
    assert totals["aggregates"] == {"first": "2012-01-01"}


async def group_days_by_month(client: Client, database_id: str, data: list[Json]) -> None:
    grouped = await ask(
        client,
        database_id,
        groupBy={"field": "date", "granularity": "month", "direction": "desc"},
        aggregates=[
            {"op": "sum", "field": "rain", "as": "rain"},
            {"op": "checked", "field": "wet", "as": "wet"},
            {"op": "range", "field": "high", "as": "range"},
        ],
    )
    months = defaultdict(list)
    for row in data:
        months[row["date"][:7]].append(row)
    assert len(months) == 48
    assert [(group["key"], group["value"]) for group in grouped["groups"]] == [
        (month, f"{month}-01") for month in sorted(months, reverse=True)
    ]
    for group in grouped["groups"]:
        some = months[group["key"]]
        highs = [row["high"] for row in some]
        assert group["count"] == len(some)
        assert group["aggregates"]["rain"] == pytest.approx(sum(row["rain"] for row in some))
        assert group["aggregates"]["wet"] == sum(row["wet"] for row in some)
        assert group["aggregates"]["range"] == pytest.approx(max(highs) - min(highs))


async def filter_days(client: Client, database_id: str, data: list[Json]) -> None:
    hot_or_wet = {
        "or": [
            {"field": "high", "op": "gte", "value": 32},
            {
                "and": [
                    {"field": "rain", "op": "gt", "value": 25},
                    {"field": "date", "op": "between", "value": ["2013-01-01", "2014-12-31"]},
                ]
            },
        ]
    }
    found = await all_records(
        client, database_id, filter=hot_or_wet, sorts=[{"field": "date"}], limit=7
    )
    assert [one["data"]["date"] for one in found] == sorted(
        row["date"]
        for row in data
        if row["high"] >= 32 or (row["rain"] > 25 and "2013-01-01" <= row["date"] <= "2014-12-31")
    )


@pytest.mark.long
async def test_exported_tables_are_read_back_as_they_were(
    client: Client, space: Space, settings: Settings, airports: tuple[str, list[Json]]
) -> None:
    database_id, rows = airports
    exporting = Exporting(space.database, ObjectStore(settings.object_store), part=1_500)
    sorts = [{"field": "code"}]
    async with exporting.running(space.id):
        as_csv = await export(client, database_id, format="csv", sorts=sorts)
        as_sheet = await export(client, database_id, format="xlsx", sorts=sorts)
    expected = [
        [
            row["title"],
            row["data"]["code"],
            row["data"].get("city"),
            row["data"]["state"].upper() if "state" in row["data"] else None,
            row["data"]["latitude"],
            row["data"]["longitude"],
        ]
        for row in sorted(rows, key=lambda row: row["data"]["code"].encode())
    ]
    labels = ["Title", "Code", "City", "State", "Latitude", "Longitude"]
    assert read_xlsx(await content(client, as_sheet)) == [labels, *expected]
    in_csv = [[("" if cell is None else str(cell)) for cell in row] for row in expected]
    assert read_csv(await content(client, as_csv)) == [labels, *in_csv]
