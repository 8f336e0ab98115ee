"""Schedules over HTTP: when they fire, what cannot be published, and runs of times gone by."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.core.access.rules import Role, Scope
from tests.support.automations import Json, create, numbered, path_of, publish, read, refusal
from tests.support.client import Client
from tests.support.spaces import Space


def schedule(**config: Any) -> Json:
    return {"kind": "schedule", **config}


HOURLY = schedule(cron="0 * * * *", timezone="Europe/Berlin")


def next_hour() -> str:
    """The whole hour that comes: another one when a test runs on the hour."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return f"{hour:%Y-%m-%dT%H:%M:%S}.000Z"


async def published(client: Client, space: Space, config: Json = HOURLY) -> Json:
    return await publish(client, space, graph=numbered(1), triggerConfig=config)


async def test_publishing_says_when_it_runs_next(client: Client, space: Space) -> None:
    made = await create(client, space, triggerConfig=HOURLY, enabled=True)
    assert "nextRunAt" not in made
    before = next_hour()
    made = read(await client.post(f"{path_of(made)}/publish", json={}))
    assert made["nextRunAt"] in {before, next_hour()}
    disabled = read(await client.patch(path_of(made), json={"enabled": False}))
    assert "nextRunAt" not in disabled
    enabled = read(await client.patch(path_of(made), json={"enabled": True}))
    assert enabled["nextRunAt"] in {made["nextRunAt"], next_hour()}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "either cron or intervalSeconds"),
        ({"cron": "0 * * * *", "intervalSeconds": 60}, "either cron or intervalSeconds"),
        ({"cron": "61 * * * *"}, "minute"),
        ({"cron": "* * * *"}, "five fields"),
        ({"cron": "0 0 30 2 *"}, "never matches a date"),
        ({"cron": "0 0 * * *", "timezone": "Europe/Atlantis"}, "not an IANA time zone"),
        ({"cron": "0 0 * * *", "endAt": "2020-01-01T00:00:00Z"}, "ends before"),
        ({"cron": "0 0 1 1 *", "startAt": "2090-01-02T00:00:00Z", "endAt": "2090-12-31T00:00:00Z"},
         "ends before"),
        ({"intervalSeconds": 60, "startAt": "2050-01-02T00:00:00Z",
          "endAt": "2050-01-01T00:00:00Z"}, "later than startAt"),
        ({"intervalSeconds": 60, "startAt": "0001-01-01T00:00:00+14:00"}, "between the years"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_schedule_that_never_fires_is_not_published(
    client: Client, space: Space, config: Json, words: str
) -> None:
    made = await create(client, space, graph=numbered(1), triggerConfig=schedule(**config))
    answer = await client.post(f"{path_of(made)}/publish", json={})
    assert refusal(answer) == (400, "validation_error")
    assert words in answer.json()["message"]
    assert "publishedVersionId" not in read(await client.get(path_of(made)))


@pytest.mark.parametrize("seconds", [59, 0, -60, 1.5, "60", 366 * 86_400 + 1])
async def test_an_interval_is_a_minute_at_least(client: Client, space: Space, seconds: Any) -> None:
    answer = await client.post(
        f"{space.path}/automations",
        json={
            "label": "Test",
            "graph": numbered(1),
            "triggerConfig": schedule(intervalSeconds=seconds),
        },
    )
    assert refusal(answer) == (400, "validation_error")
    assert "intervalSeconds" in answer.json()["message"]


async def test_a_preview_of_what_is_stored(client: Client, space: Space) -> None:
    made = await create(
        client, space, triggerConfig=schedule(cron="30 2 * * *", timezone="Europe/Berlin")
    )
    path = f"{path_of(made)}/schedule-preview"
    assert len(read(await client.get(path))["times"]) == 10
    shown = read(await client.get(path, params={"count": 3, "after": "2026-03-27T12:00:00Z"}))
    assert shown == {
        "timezone": "Europe/Berlin",
        "times": [
            {"at": "2026-03-28T01:30:00.000Z", "local": "2026-03-28T02:30:00+01:00"},
            {"at": "2026-03-29T01:00:00.000Z", "local": "2026-03-29T03:00:00+02:00"},
            {"at": "2026-03-30T00:30:00.000Z", "local": "2026-03-30T02:30:00+02:00"},
        ],
        "notes": [
            (
                "2026-03-29 02:30 does not exist: the clock of Europe/Berlin goes forward"
                " from 02:00 to 03:00. The schedule runs at 03:00 instead."
            )
        ],
        "passedOver": {"skipped": 0, "missed": 0},
    }
    # Two changes lie within a year, whenever the test runs.
    assert len(read(await client.get(path_of(made)))["scheduleNotes"]) == 2


async def test_a_preview_of_what_is_not_saved(client: Client, space: Space) -> None:
    made = await create(client, space)
    config = schedule(
        cron="0 12 13 * fri",
        jitterSeconds=90,
        endAt="2027-01-01T00:00:00Z",
    )
    answer = await client.post(
        f"{path_of(made)}/schedule-preview",
        params={"after": "2026-01-01T00:00:00Z"},
        json={"triggerConfig": config},
    )
    shown = read(answer)
    assert [one["local"][:10] for one in shown["times"][:3]] == [
        "2026-01-02",
        "2026-01-09",
        "2026-01-13",
    ]
    assert ["either matches" in shown["notes"][0], "90 seconds later" in shown["notes"][1]] == [
        True,
        True,
    ]
    assert read(await client.get(path_of(made)))["triggerConfig"] == {"kind": "manual"}


@pytest.mark.parametrize(
    ("params", "config"),
    [
        ({"count": "0"}, HOURLY),
        ({"count": "101"}, HOURLY),
        ({"count": "ten"}, HOURLY),
        ({"after": "yesterday"}, HOURLY),
        ({"after": "2026-01-01"}, HOURLY),
        ({}, {"kind": "manual"}),
        ({}, {"kind": "never"}),
        ({}, schedule(cron="0 0 31 2 *")),
        ({}, schedule(cron="nonsense")),
        ({}, schedule(intervalSeconds=1)),
        ({}, schedule(cron="0 0 * * *", timezone="../../etc/passwd")),
        ({}, "hourly"),
        ({}, None),
    ],
    ids=str,
)
async def test_a_preview_of_an_impossible_schedule_is_refused(
    client: Client, space: Space, params: dict[str, str], config: Any
) -> None:
    made = await create(client, space, triggerConfig=HOURLY)
    path = f"{path_of(made)}/schedule-preview"
    answer = await client.post(path, params=params, json={"triggerConfig": config})
    assert refusal(answer) == (400, "validation_error")
    if params:
        assert refusal(await client.get(path, params=params)) == (400, "validation_error")


@pytest.mark.parametrize("after", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("config", [HOURLY, schedule(intervalSeconds=366 * 86_400)], ids=str)
async def test_a_preview_from_the_ends_of_time(
    client: Client, space: Space, after: str, config: Json
) -> None:
    made = await create(client, space, triggerConfig=config)
    path = f"{path_of(made)}/schedule-preview"
    shown = read(await client.get(path, params={"after": after, "count": 100}))
    assert len(shown["times"]) == (0 if after.startswith("9") else 100)


async def test_an_automation_without_a_schedule_has_no_preview(
    client: Client, space: Space
) -> None:
    made = await create(client, space)
    answer = await client.get(f"{path_of(made)}/schedule-preview")
    assert refusal(answer) == (400, "validation_error")


async def test_a_backfill_makes_each_run_once(client: Client, space: Space) -> None:
    made = await published(client, space)
    period = {"from": "2026-02-01T00:00:00Z", "to": "2026-02-01T05:00:00Z"}
    answer = read(await client.post(f"{path_of(made)}/backfill", json=period))
    assert answer == {
        "from": "2026-02-01T00:00:00.000Z",
        "to": "2026-02-01T05:00:00.000Z",
        "count": 6,
        "created": 6,
    }
    again = read(await client.post(f"{path_of(made)}/backfill", json=period))
    assert (again["count"], again["created"]) == (6, 0)
    runs = read(await client.get(f"{path_of(made)}/runs", params={"source": "backfill"}))["runs"]
    assert sorted(run["triggerPayload"]["scheduledAt"] for run in runs) == [
        f"2026-02-01T0{hour}:00:00.000Z" for hour in range(6)
    ]
    assert {run["triggerPayload"]["timezone"] for run in runs} == {"Europe/Berlin"}
    assert {run["source"] for run in runs} == {"backfill"}


async def test_a_thousand_due_times_and_not_one_more(client: Client, space: Space) -> None:
    made = await published(client, space, schedule(intervalSeconds=60))
    start = datetime(2026, 2, 1, tzinfo=UTC)

    async def asked(minutes: int) -> Any:
        period = {
            "from": start.isoformat(),
            "to": (start + timedelta(minutes=minutes)).isoformat(),
        }
        return await client.post(f"{path_of(made)}/backfill", json=period)

    refused = await asked(1_000)
    assert refusal(refused) == (400, "validation_error")
    assert "1,000" in refused.json()["message"]
    assert read(await asked(999))["created"] == 1_000


@pytest.mark.parametrize(
    "period",
    [
        {},
        {"from": "2026-02-01T00:00:00Z"},
        {"from": "2026-02-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"},
        {"from": "2026-02-02T00:00:00Z", "to": "2026-02-01T00:00:00Z"},
        {"from": "2026-02-01T00:00:00Z", "to": "2126-02-01T00:00:00Z"},
        {"from": "2026-02-01T00:00:00", "to": "2026-02-01T05:00:00Z"},
        {"from": 0, "to": 1},
        {"from": "2026-02-01T00:00:00Z", "to": "2026-02-01T05:00:00Z", "overlap": "skip"},
        {"from": "0001-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"},
    ],
    ids=str,
)
async def test_a_backfill_of_an_invalid_period_is_refused(
    client: Client, space: Space, period: Json
) -> None:
    made = await published(client, space)
    answer = await client.post(f"{path_of(made)}/backfill", json=period)
    assert refusal(answer) == (400, "validation_error")


async def test_a_backfill_needs_a_published_schedule(client: Client, space: Space) -> None:
    period = {"from": "2026-02-01T00:00:00Z", "to": "2026-02-01T05:00:00Z"}
    draft = await create(client, space, triggerConfig=HOURLY, enabled=True)
    manual = await publish(client, space)
    disabled = await published(client, space)
    await client.patch(path_of(disabled), json={"enabled": False})
    for made in (draft, manual, disabled):
        answer = await client.post(f"{path_of(made)}/backfill", json=period)
        assert refusal(answer)[1] == "run_error"


async def test_a_repeated_request_gets_the_same_answer(client: Client, space: Space) -> None:
    made = await published(client, space)
    period = {"from": "2026-02-01T00:00:00Z", "to": "2026-02-01T05:00:00Z"}
    headers = {"Idempotency-Key": "one-backfill"}
    answers = [
        await client.post(f"{path_of(made)}/backfill", json=period, headers=headers)
        for _ in range(2)
    ]
    assert [read(answer)["created"] for answer in answers] == [6, 6]


async def test_viewers_preview_and_editors_backfill(client: Client, space: Space) -> None:
    made = await published(client, space)
    period = {"from": "2026-02-01T00:00:00Z", "to": "2026-02-01T05:00:00Z"}
    _, viewer = await space.member(Role.VIEWER)
    reader = await space.key([Scope.AUTOMATIONS_READ])
    for token in (viewer, reader):
        caller = client.with_token(token)
        read(await caller.get(f"{path_of(made)}/schedule-preview"))
        answer = await caller.post(f"{path_of(made)}/backfill", json=period)
        assert refusal(answer) == (403, "denied")
