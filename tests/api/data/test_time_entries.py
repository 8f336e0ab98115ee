"""Time entries over HTTP: one clock for each person, whose times are exact and their own."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import select, text, update

from models.core.access.rules import Role, Scope
from models.data.time_entries.tables import time_entry
from models.messages.notifications.queries import notification
from runtime.clock import wire_timestamp
from runtime.temporal.outbox import outbox
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]

MINUTE = 60_000
HOUR = 60 * MINUTE


def ago(**spans: float) -> str:
    """A moment of the past on the wire."""
    return wire_timestamp(datetime.now(UTC) - timedelta(**spans))


@pytest_asyncio.fixture
async def record(client: Client, space: Space) -> Json:
    """A record of a database with a timer field, which it names as `field`."""
    return await make_record(client, space)


async def make_record(client: Client, space: Space, **settings: Any) -> Json:
    timer = {"label": "Spent", "kind": "timer", "settings": settings}
    database = await post(client, f"{space.path}/databases", label="Work", fields=[timer])
    (field,) = (one["id"] for one in database["fields"] if one["key"] == "spent")
    made = await post(client, f"/v1/databases/{database['id']}/records", title="Offer")
    return {**made, "field": field, "itemId": database["itemId"]}


async def post(client: Client, path: str, **body: Any) -> Json:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    found: Json = answer.json()["data"]
    return found


async def start(client: Client, space: Space, **body: Any) -> Json:
    """The entry of a call that must succeed."""
    target = {} if "targetKind" in body else {"targetKind": "workspace"}
    state = await post(client, f"{space.path}/time-entries", **target, **body)
    entry: Json = state["entry"]
    return entry


async def patch(client: Client, space: Space, entry: Json, **body: Any) -> Json:
    answer = await client.patch(f"{space.path}/time-entries/{entry['id']}", json=body)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()["data"]["entry"]
    return found


async def get(client: Client, path: str, **query: Any) -> Json:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()["data"]
    return found


async def shift(space: Space, entry: Json, **spans: float) -> None:
    """Make an entry, and what it knows of time, older."""
    columns = ("started_at", "paused_at", "due_at", "created_at")
    earlier: Json = {name: time_entry.c[name] - timedelta(**spans) for name in columns}
    moved = "(SELECT range_agg(tstzrange(lower(p) - :by, upper(p) - :by)) FROM unnest(pauses) p)"
    pauses = text(f"coalesce({moved}, '{{}}')").bindparams(by=timedelta(**spans))
    earlier["pauses"] = pauses
    async with space.database.transaction() as work:
        await work.execute(
            update(time_entry).where(time_entry.c.id == UUID(entry["id"])).values(earlier)
        )


def on(record: Json, **more: Any) -> Json:
    return {
        "targetKind": "database_record",
        "targetId": record["id"],
        "fieldId": record["field"],
        **more,
    }


async def spent(client: Client, record: Json) -> Json:
    value: Json = (await get(client, f"/v1/records/{record['id']}"))["computed"]["spent"]
    return value


# ---- the clock


async def test_a_timer_is_started_shown_stopped_and_listed(
    client: Client, space: Space, record: Json
) -> None:
    path = f"{space.path}/time-entries"
    state = await post(client, path, **on(record, summary="Draft"))
    entry = state["entry"]
    assert entry == {
        "id": entry["id"],
        "workspaceId": str(space.id),
        "userId": str(space.user_id),
        "userDisplayName": "Test",
        "targetKind": "database_record",
        "targetId": record["id"],
        "targetTitleSnapshot": "Offer",
        "databaseId": record["databaseId"],
        "fieldId": record["field"],
        "fieldLabelSnapshot": "Spent",
        "source": "timer",
        "mode": "stopwatch",
        "status": "active",
        "startedAt": entry["startedAt"],
        "accumulatedPausedMs": 0,
        "summary": "Draft",
        "soundId": "none",
        "createdByUserId": str(space.user_id),
        "updatedByUserId": str(space.user_id),
        "createdAt": entry["startedAt"],
        "updatedAt": entry["startedAt"],
    }
    assert (state["serverTime"], state["authoritativeElapsedMs"]) == (entry["startedAt"], 0)
    await shift(space, entry, minutes=10)
    current = await get(client, f"{path}/current")
    assert current["entry"]["id"] == entry["id"]
    assert 0 <= current["authoritativeElapsedMs"] - 10 * MINUTE < 5_000
    assert await spent(client, record) == {"totalMs": 0, "runningEntryId": entry["id"]}
    ended = await patch(client, space, entry, action="complete")
    assert (ended["status"], ended["completedBy"]) == ("completed", "user")
    assert 0 <= ended["durationMs"] - 10 * MINUTE < 5_000
    assert await spent(client, record) == {"totalMs": ended["durationMs"], "runningEntryId": None}
    nothing = await get(client, f"{path}/current")
    assert nothing == {"serverTime": nothing["serverTime"]}
    assert (await get(client, path))["entries"] == [ended]
    assert (await get(client, f"{path}/{entry['id']}"))["authoritativeElapsedMs"] == (
        ended["durationMs"]
    )


async def test_a_pause_does_not_count(client: Client, space: Space) -> None:
    entry = await start(client, space)
    await shift(space, entry, minutes=30)
    paused = await patch(client, space, entry, action="pause")
    assert (paused["status"], paused.get("dueAt")) == ("paused", None)
    assert await patch(client, space, entry, action="pause") == paused
    current = await get(client, f"{space.path}/time-entries/current")
    assert current["entry"]["id"] == entry["id"]
    await shift(space, entry, minutes=10)
    resumed = await patch(client, space, entry, action="resume")
    assert 0 <= resumed["accumulatedPausedMs"] - 10 * MINUTE < 5_000
    assert "pausedAt" not in resumed
    assert await patch(client, space, entry, action="resume") == resumed
    await patch(client, space, entry, action="pause")
    await shift(space, entry, minutes=10)
    ended = await patch(client, space, entry, action="complete")
    assert 0 <= ended["durationMs"] - 30 * MINUTE < 5_000
    for action in ("complete", "discard"):
        assert await patch(client, space, entry, action=action) == ended
    path = f"{space.path}/time-entries/{entry['id']}"
    for action in ("pause", "resume"):
        answer = await client.patch(path, json={"action": action})
        assert answer.status_code == 409, answer.text


async def test_a_new_timer_takes_the_place_of_the_running_one(client: Client, space: Space) -> None:
    first = await start(client, space)
    answer = await client.post(
        f"{space.path}/time-entries", json={"targetKind": "workspace", "onActive": "reject"}
    )
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    await shift(space, first, minutes=30)
    second = await start(client, space, startedAt=ago(minutes=10))
    listed = (await get(client, f"{space.path}/time-entries"))["entries"]
    assert [(one["id"], one["status"]) for one in listed] == [
        (second["id"], "active"),
        (first["id"], "completed"),
    ]
    assert (listed[1]["completedBy"], listed[1]["endedAt"]) == ("system", second["startedAt"])
    paused = await patch(client, space, second, action="pause")
    third = await start(client, space)
    answer = await client.patch(
        f"{space.path}/time-entries/{paused['id']}",
        json={"action": "resume", "onActive": "reject"},
    )
    assert answer.status_code == 409
    await patch(client, space, paused, action="resume")
    ended = await get(client, f"{space.path}/time-entries/{third['id']}")
    assert ended["entry"]["completedBy"] == "system"


@pytest.mark.long
async def test_of_many_parallel_starts_one_runs(client: Client, space: Space) -> None:
    calls = (
        client.post(f"{space.path}/time-entries", json={"targetKind": "workspace"})
        for _ in range(100)
    )
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} == {201}
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(time_entry.c.status).where(time_entry.c.workspace_id == space.id)
        )
    assert sorted(row.status for row in rows) == ["active"] + ["completed"] * 99


async def test_a_mutation_makes_one_entry(client: Client, space: Space) -> None:
    body = {"targetKind": "workspace", "clientMutationId": "m-1", "summary": "A"}
    path = f"{space.path}/time-entries"
    answers = await asyncio.gather(*(client.post(path, json=body) for _ in range(5)))
    assert len({answer.json()["data"]["entry"]["id"] for answer in answers}) == 1
    entry = answers[0].json()["data"]["entry"]
    await patch(client, space, entry, action="complete")
    repeated = await post(client, path, **body)
    assert (repeated["entry"]["id"], repeated["entry"]["status"]) == (entry["id"], "completed")
    other = await client.post(path, json={**body, "summary": "B"})
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")
    changed = await patch(client, space, entry, summary="C", clientMutationId="m-2")
    assert await patch(client, space, entry, summary="D", clientMutationId="m-2") == changed


# ---- what ends by itself


async def test_an_overdue_entry_has_ended_when_it_was_due(
    client: Client, space: Space, record: Json
) -> None:
    entry = await start(client, space, **on(record, mode="countdown", targetDurationMs=HOUR))
    assert entry["dueAt"] > entry["startedAt"]
    async with space.database.transaction() as work:
        told = await work.rows(select(outbox).where(outbox.c.subject_id == UUID(entry["id"])))
    assert [(row.intent, row.workflow_kind) for row in told] == [("start", "timer-due")]
    await shift(space, entry, hours=2)
    state = await get(client, f"{space.path}/time-entries/{entry['id']}")
    assert state["authoritativeElapsedMs"] == HOUR
    await start(client, space)
    ended = (await get(client, f"{space.path}/time-entries/{entry['id']}"))["entry"]
    assert (ended["completedBy"], ended["durationMs"]) == ("timer", HOUR)
    assert ended["endedAt"] < ago(minutes=50)
    assert await spent(client, record) == {"totalMs": HOUR, "runningEntryId": None}
    async with space.database.transaction() as work:
        bells = await work.rows(select(notification).where(notification.c.workspace_id == space.id))
    (bell,) = bells
    assert (bell.kind, bell.title, bell.user_id) == (
        "timer_done",
        "Time is up: Offer",
        space.user_id,
    )
    assert bell.data["timeEntryId"] == entry["id"]


async def test_a_countdown_is_moved(client: Client, space: Space) -> None:
    entry = await start(client, space, mode="pomodoro", soundId="gong")
    assert entry["targetDurationMs"] == 25 * MINUTE
    longer = await patch(client, space, entry, targetDurationMs=30 * MINUTE)
    assert moment(longer["dueAt"]) - moment(entry["dueAt"]) == timedelta(minutes=5)
    paused = await patch(client, space, entry, action="pause")
    assert "dueAt" not in paused
    await shift(space, entry, minutes=10)
    resumed = await patch(client, space, entry, action="resume")
    left = moment(resumed["dueAt"]) - datetime.now(UTC)
    assert timedelta(minutes=29) < left < timedelta(minutes=31)
    shorter = await patch(client, space, entry, targetDurationMs=1)
    assert (shorter["status"], shorter["completedBy"]) == ("completed", "timer")
    assert shorter["durationMs"] < 5_000
    async with space.database.transaction() as work:
        mine = select(outbox).where(outbox.c.subject_id == UUID(entry["id"]))
        rows = await work.rows(mine.order_by(outbox.c.id))
    assert [row.intent for row in rows] == ["start"] + ["signal"] * 5
    assert rows[1].request["workflowId"] == f"timer-due/{entry['id']}"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# ---- what is written down


async def test_time_that_is_over_is_written_down_and_corrected(
    client: Client, space: Space, record: Json
) -> None:
    begin, end = ago(hours=3), ago(hours=2)
    entry = await start(client, space, **on(record, startedAt=begin, endedAt=end))
    assert (entry["source"], entry["mode"], entry["status"]) == ("manual", "fixed", "completed")
    assert entry["completedBy"] == "user"
    # Two looks at the clock: an hour lies between them, and what passed meanwhile.
    assert entry["durationMs"] == pytest.approx(HOUR, abs=5_000)
    later = await patch(client, space, entry, startedAt=ago(hours=2.5), summary="Less")
    assert later["durationMs"] == pytest.approx(30 * MINUTE, abs=5_000)
    assert await spent(client, record) == {"totalMs": later["durationMs"], "runningEntryId": None}
    answer = await client.post(
        f"{space.path}/time-entries",
        json=on(record, startedAt=ago(hours=4), endedAt=ago(hours=2.2)),
    )
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    await start(client, space, **on(record, startedAt=ago(hours=4), endedAt=begin))
    path = f"{space.path}/time-entries/{entry['id']}"
    answer = await client.patch(path, json={"startedAt": ago(hours=3.5)})
    assert answer.status_code == 409
    assert (await client.delete(path)).json()["data"] == {"id": entry["id"]}
    assert (await client.get(path)).status_code == 404
    assert (await spent(client, record))["totalMs"] == pytest.approx(HOUR, abs=5_000)


async def test_the_pause_of_another_entry_is_free(client: Client, space: Space) -> None:
    entry = await start(client, space)
    await shift(space, entry, hours=1)
    await patch(client, space, entry, action="pause")
    await shift(space, entry, hours=1)
    await patch(client, space, entry, action="resume")
    await start(client, space, startedAt=ago(minutes=50), endedAt=ago(minutes=10))
    answer = await client.post(
        f"{space.path}/time-entries",
        json={"targetKind": "workspace", "startedAt": ago(hours=2), "endedAt": ago(minutes=90)},
    )
    assert answer.status_code == 409


REFUSED: Mapping[str, tuple[Json, str]] = {
    "backward": ({"startedAt": ago(hours=1), "endedAt": ago(hours=2)}, "endedAt"),
    "an end alone": ({"endedAt": ago(hours=1)}, "startedAt"),
    "a future start": ({"startedAt": ago(hours=-1)}, "startedAt"),
    "a future end": ({"startedAt": ago(hours=1), "endedAt": ago(hours=-1)}, "endedAt"),
    "the year 1": ({"startedAt": "0001-01-01T00:00:00Z", "endedAt": ago(hours=1)}, "startedAt"),
    "the year 9999": ({"startedAt": "9999-12-31T23:59:59Z"}, "startedAt"),
    "years": ({"startedAt": "2001-01-01T00:00:00Z", "endedAt": ago(hours=1)}, "endedAt"),
    "no moment": ({"startedAt": "yesterday"}, "startedAt"),
    "no offset": ({"startedAt": "2026-01-01T00:00:00"}, "startedAt"),
    "a negative duration": ({"mode": "countdown", "targetDurationMs": -1}, "targetDurationMs"),
    "a duration of 0": ({"mode": "countdown", "targetDurationMs": 0}, "targetDurationMs"),
    "a duration of years": ({"mode": "countdown", "targetDurationMs": 10**14}, "targetDurationMs"),
    "a countdown without end": ({"mode": "countdown"}, "targetDurationMs"),
    "a fixed one without end": ({"mode": "fixed"}, "endedAt"),
    "a manual one without end": ({"source": "manual", "startedAt": ago(hours=1)}, "endedAt"),
    "a timer with an end": (
        {"source": "timer", "startedAt": ago(hours=2), "endedAt": ago(hours=1)},
        "endedAt",
    ),
    "an unknown kind": ({"targetKind": "galaxy"}, "targetKind"),
    "an unknown mode": ({"mode": "sprint"}, "mode"),
    "an unknown sound": ({"soundId": "horn"}, "soundId"),
    "no target": ({"targetKind": "item"}, "targetId"),
    "a field of the workspace": ({"fieldId": str(uuid4())}, "fieldId"),
    "another user": ({"userId": str(uuid4())}, "userId"),
}


@pytest.mark.parametrize(("body", "path"), REFUSED.values(), ids=REFUSED.keys())
async def test_impossible_times_are_refused(
    client: Client, space: Space, body: Json, path: str
) -> None:
    answer = await client.post(
        f"{space.path}/time-entries", json={"targetKind": "workspace", **body}
    )
    refusal = answer.json()
    assert (answer.status_code, refusal["error"]) == (400, "validation_error"), answer.text
    assert [one["path"] for one in refusal["details"]] == [path]


async def test_a_correction_that_cannot_be_is_refused(
    client: Client, space: Space, record: Json
) -> None:
    entry = await start(client, space, **on(record))
    await shift(space, entry, hours=1)
    path = f"{space.path}/time-entries/{entry['id']}"
    bodies: list[tuple[Json, str]] = [
        ({"endedAt": ago(minutes=1)}, "endedAt"),
        ({"action": "complete", "endedAt": ago(hours=2)}, "endedAt"),
        ({"action": "complete", "endedAt": ago(hours=-2)}, "endedAt"),
        ({"startedAt": ago(hours=-2)}, "startedAt"),
        ({"targetDurationMs": -5}, "targetDurationMs"),
        ({"action": "fly"}, "action"),
        ({"userId": str(uuid4())}, "userId"),
    ]
    for body, where in bodies:
        answer = await client.patch(path, json=body)
        assert answer.status_code == 400, (body, answer.text)
        assert answer.json()["details"][0]["path"] == where
    stale = {"If-Match": entry["updatedAt"]}
    await patch(client, space, entry, summary="Changed")
    assert (await client.patch(path, json={"summary": "x"}, headers=stale)).status_code == 409
    assert (await client.delete(path, headers=stale)).status_code == 409
    body = {"summary": "x", "expectedUpdatedAt": entry["updatedAt"]}
    assert (await client.patch(path, json=body)).status_code == 409
    ended = await patch(client, space, entry, action="complete", endedAt=ago(minutes=30))
    assert ended["durationMs"] == pytest.approx(30 * MINUTE, abs=5_000)
    discarded = await start(client, space)
    await patch(client, space, discarded, action="discard")
    answer = await client.patch(
        f"{space.path}/time-entries/{discarded['id']}", json={"summary": "x"}
    )
    assert answer.status_code == 409


# ---- targets, and whose entries


async def test_targets_out_of_sight_are_not_there(
    client: Client, space: Space, record: Json
) -> None:
    _, token = await space.member(Role.COMMENTER)
    commenter = client.with_token(token)
    path = f"{space.path}/time-entries"
    mine = await start(client, space, **on(record))
    assert (await commenter.get(f"{path}/{mine['id']}")).status_code == 200
    theirs = (await post(commenter, path, **on(record)))["entry"]
    closed = {"accessMode": "restricted", "grants": []}
    await client.put(f"/v1/items/{record['itemId']}/access", json=closed)
    for body in (on(record), {"targetKind": "item", "targetId": record["itemId"]}):
        answer = await commenter.post(path, json=body)
        unknown = await commenter.post(path, json={**body, "targetId": str(uuid4())})
        assert (answer.status_code, unknown.status_code) == (404, 404)
        assert answer.json()["message"] == unknown.json()["message"]
    assert (await commenter.get(f"{path}/{mine['id']}")).status_code == 404
    listed = (await get(commenter, path))["entries"]
    assert [one["id"] for one in listed] == [theirs["id"]]
    summed = await get(commenter, f"{path}/summary", groupBy="user")
    assert [one["userId"] for one in summed["groups"]] in ([], [theirs["userId"]])
    assert len((await get(client, path))["entries"]) == 2
    moved = {"targetId": record["id"]}
    entry = (await post(commenter, path, targetKind="workspace"))["entry"]
    answer = await commenter.patch(f"{path}/{entry['id']}", json=moved)
    assert answer.status_code == 404


async def test_entries_of_others_need_the_scope_to_manage(client: Client, space: Space) -> None:
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    path = f"{space.path}/time-entries"
    mine = await start(client, space)
    for method in ("patch", "delete"):
        answer = await editor.request(method.upper(), f"{path}/{mine['id']}", json={})
        assert (answer.status_code, answer.json()["error"]) == (403, "denied"), method
        assert "time_entries:manage" in answer.json()["message"]
    theirs = (await post(editor, path, targetKind="workspace"))["entry"]
    ended = await patch(client, space, theirs, action="complete")
    assert (ended["completedBy"], ended["updatedByUserId"]) == ("admin", str(space.user_id))
    key = await space.key([Scope.TIME_ENTRIES_READ, Scope.TIME_ENTRIES_WRITE])
    answer = await client.with_token(key).delete(f"{path}/{theirs['id']}")
    assert answer.status_code == 403
    assert (await client.delete(f"{path}/{theirs['id']}")).status_code == 200


async def test_an_entry_outlives_its_target(client: Client, space: Space, record: Json) -> None:
    entry = await start(client, space, **on(record))
    assert (await client.delete(f"/v1/records/{record['id']}")).status_code == 200
    ended = await patch(client, space, entry, action="complete")
    assert (ended["status"], ended["targetTitleSnapshot"]) == ("completed", "Offer")
    answer = await client.post(f"{space.path}/time-entries", json=on(record))
    assert answer.status_code == 404


async def test_a_member_who_leaves_has_no_running_clock(client: Client, space: Space) -> None:
    user_id, token = await space.member(Role.EDITOR)
    path = f"{space.path}/time-entries"
    entry = (await post(client.with_token(token), path, targetKind="workspace"))["entry"]
    assert (await client.delete(f"{space.path}/members/{user_id}")).status_code == 200
    ended = (await get(client, f"{path}/{entry['id']}"))["entry"]
    assert (ended["status"], ended["completedBy"]) == ("completed", "admin")


async def test_a_deleted_workspace_has_no_running_clock(client: Client, space: Space) -> None:
    await start(client, space, mode="pomodoro")
    assert (await client.delete(space.path)).status_code == 200
    async with space.database.transaction() as work:
        rows = await work.rows(select(time_entry).where(time_entry.c.workspace_id == space.id))
    assert [(row.status, row.completed_by) for row in rows] == [("completed", "system")]


# ---- timer fields


async def test_a_timer_field_is_asked_like_a_number(client: Client, space: Space) -> None:
    record = await make_record(client, space, roundToMinutes=15)
    database = f"/v1/databases/{record['databaseId']}"
    hours = {"label": "Hours", "kind": "formula"}
    settings = {"expression": "record.spent / 3600000.0", "resultKind": "number"}
    await post(client, f"{database}/fields", **hours, settings=settings)
    idle = await post(client, f"{database}/records", title="Idle")
    await start(client, space, **on(record, startedAt=ago(minutes=200), endedAt=ago(minutes=148)))
    await start(client, space, **on(record, startedAt=ago(minutes=60), endedAt=ago(minutes=57)))
    assert (await spent(client, record))["totalMs"] == 45 * MINUTE
    asked = await post(
        client,
        f"{database}/records/query",
        filter={"field": "spent", "op": "lt", "value": HOUR},
        sorts=[{"field": "spent", "direction": "desc"}],
        aggregates=[{"field": "spent", "op": "sum", "as": "all"}],
    )
    assert [one["id"] for one in asked["records"]] == [record["id"], idle["id"]]
    assert [one["computed"]["hours"] for one in asked["records"]] == [0.75, 0]
    assert asked["aggregates"] == {"all": 45 * MINUTE}


async def test_a_field_may_refuse_what_is_written_by_hand(client: Client, space: Space) -> None:
    record = await make_record(client, space, allowManual=False)
    path = f"{space.path}/time-entries"
    body = on(record, startedAt=ago(hours=2), endedAt=ago(hours=1))
    answer = await client.post(path, json=body)
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "fieldId")
    entry = await start(client, space, **on(record))
    answer = await client.patch(f"{path}/{entry['id']}", json={"startedAt": ago(hours=1)})
    assert answer.status_code == 400
    answer = await client.post(path, json=on(record, fieldId=str(uuid4())))
    assert answer.status_code == 404
    database = await get(client, f"{space.path}/databases/{record['databaseId']}")
    (title,) = (one["id"] for one in database["fields"] if one["key"] == "title")
    answer = await client.post(path, json=on(record, fieldId=title))
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "fieldId")


# ---- summaries


@pytest_asyncio.fixture
async def two_nights(client: Client, space: Space, record: Json) -> str:
    """Where summaries are, of two nights in which Berlin changes its clocks."""
    nights = [
        ("2026-03-28T22:30:00Z", "2026-03-29T22:30:00Z", on(record)),
        ("2025-10-25T21:30:00Z", "2025-10-26T23:30:00Z", {}),
    ]
    for begin, end, target in nights:
        await start(client, space, startedAt=begin, endedAt=end, **target)
    return f"{space.path}/time-entries/summary"


async def test_time_is_added_up_by_the_days_of_a_zone(client: Client, two_nights: str) -> None:
    async def days(first: str, last: str, **query: str) -> list[Any]:
        query = {"firstDay": first, "lastDay": last, **query}
        found = await get(client, two_nights, **query)
        return [(one["day"], one["durationMs"]) for one in found["groups"]]

    # In Berlin 2026-03-29 has 23 hours, and 2025-10-26 has 25.
    berlin = {"timezone": "Europe/Berlin"}
    assert await days("2026-03-28", "2026-03-30", **berlin) == [
        ("2026-03-30", MINUTE * 30),
        ("2026-03-29", HOUR * 23),
        ("2026-03-28", MINUTE * 30),
    ]
    assert await days("2025-10-26", "2025-10-26", **berlin) == [("2025-10-26", HOUR * 25)]
    assert await days("2026-03-28", "2026-03-29") == [
        ("2026-03-29", MINUTE * 1350),
        ("2026-03-28", MINUTE * 90),
    ]


async def test_time_is_added_up_by_user_target_and_field(client: Client, two_nights: str) -> None:
    year = {"firstDay": "2025-05-01", "lastDay": "2026-04-30"}
    by_target = await get(client, two_nights, groupBy="target", limit=1, **year)
    assert [
        (one["targetKind"], one["targetTitle"], one["durationMs"], one["entryCount"])
        for one in by_target["groups"]
    ] == [("workspace", "Test", HOUR * 26, 1)]
    assert by_target["totalDurationMs"] == HOUR * 50
    next_page = await get(
        client, two_nights, groupBy="target", limit=1, cursor=by_target["cursor"], **year
    )
    assert [one["targetTitle"] for one in next_page["groups"]] == ["Offer"]
    by_user = await get(client, two_nights, groupBy="user", **year)
    assert [(one["userDisplayName"], one["durationMs"]) for one in by_user["groups"]] == [
        ("Test", HOUR * 50)
    ]
    by_field = await get(client, two_nights, groupBy="field", **year)
    assert [(one["fieldLabel"], one["durationMs"]) for one in by_field["groups"]] == [
        ("Spent", HOUR * 24)
    ]


async def test_a_summary_counts_the_timer_that_runs(client: Client, space: Space) -> None:
    running = await start(client, space)
    await shift(space, running, minutes=5)
    today = await get(client, f"{space.path}/time-entries/summary", groupBy="user")
    assert today["groups"][0]["openMs"] == pytest.approx(5 * MINUTE, abs=5_000)


@pytest.mark.parametrize(
    "query",
    [
        {"groupBy": "mood"},
        {"timezone": "Mars/Base"},
        {"firstDay": "2026-02-30"},
        {"firstDay": "2026-02-02", "lastDay": "2026-02-01"},
        {"firstDay": "2020-01-01", "lastDay": "2026-01-01"},
        {"lastDay": "9999-12-31"},
        {"userId": "me"},
    ],
    ids=str,
)
async def test_a_summary_that_cannot_be_is_refused(
    client: Client, space: Space, query: dict[str, str]
) -> None:
    answer = await client.get(f"{space.path}/time-entries/summary", params=query)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
