"""Which rows of the outbox a relay takes next, and what makes it look again."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest
from sqlalchemy import delete, insert, select, text, update

from activities.outbox.claims import Limits, claim
from activities.outbox.relay import Relay, RunStarts
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.commands import create_automation
from models.automation.automations.shapes import CreateAutomation
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import accept_job, close_job, start_job
from runtime.database import Database, libpq_url
from runtime.ids import new_id
from runtime.temporal.outbox import AWAITED, Intent, Outbox, append, outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import KEYS, graph, node
from tests.support.patience import eventually
from tests.support.plans import planning_once, prepare, recorded_statements, rows_read
from tests.support.spaces import Space, make_space


def relay(database: Database, running_cap: int = 100) -> Relay:
    """A relay that only claims: it never gets as far as asking Temporal."""
    return Relay(
        database, {}, RunStarts(), Limits(50, 50, 50, {WorkflowKind.AUTOMATION_RUN: running_cap})
    )


async def intend(
    database: Database,
    workspace_id: uuid.UUID,
    intent: Intent,
    count: int,
    workflow_kind: WorkflowKind = WorkflowKind.AUTOMATION_RUN,
    **request: Any,
) -> Sequence[uuid.UUID]:
    subjects = [new_id() for _ in range(count)]
    async with database.transaction() as work:
        for subject in subjects:
            await append(
                work,
                intent=intent,
                workflow_kind=workflow_kind,
                workspace_id=workspace_id,
                subject_id=subject,
                request=cast("Any", request),
            )
    return subjects


async def claimed(relay: Relay, limit: int) -> list[Any]:
    return sorted(await relay._claim(limit), key=lambda row: row.id)


async def test_a_small_workspace_does_not_wait_behind_a_large_one(quiet: Database) -> None:
    large, small = new_id(), new_id()
    await intend(quiet, large, Intent.START, 50)
    late = await intend(quiet, small, Intent.START, 3)
    rows = await claimed(relay(quiet), 6)
    assert [row.subject_id for row in rows if row.workspace_id == small] == late
    assert sum(row.workspace_id == large for row in rows) == 3


async def test_no_line_waits_longer_than_for_one_row_of_each_other(quiet: Database) -> None:
    large, small = new_id(), new_id()
    await intend(quiet, large, Intent.START, 30, WorkflowKind.WORKSPACE_EXPORT)
    await intend(quiet, large, Intent.CANCEL, 30, WorkflowKind.DELIVERY)
    taker = relay(quiet)
    first = [await claimed(taker, 1) for _ in range(5)]
    assert {(row.intent, row.workflow_kind) for (row,) in first} == {
        ("start", "workspace-export"),
        ("cancel", "delivery"),
    }
    late = [
        *await intend(quiet, small, Intent.START, 1, WorkflowKind.SPREADSHEET_IMPORT),
        *await intend(quiet, large, Intent.START, 1, WorkflowKind.SPREADSHEET_IMPORT),
        *await intend(quiet, large, Intent.START, 1),
    ]
    taken = [row.subject_id for _ in range(5) for row in await claimed(taker, 1)]
    assert set(late) <= set(taken)


@pytest.mark.long
async def test_a_claim_reads_as_much_of_long_lines_as_of_short_ones(
    quiet: Database, quiet_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred lines, of 4 rows each and of 1,000."""
    rows = []
    connecting = psycopg.AsyncConnection.connect(libpq_url(quiet_url))
    async with await connecting as connection:
        for length in (4, 1_000):
            await hundred_lines(quiet, length)
            with recorded_statements(monkeypatch) as statements:
                assert len(await claimed(relay(quiet), 20)) == 20
            (statement,) = statements
            rows.append(await rows_read(connection, statement))
            await connection.rollback()
    short, long = rows
    assert short > 100
    assert long < 2 * short


@pytest.mark.long
async def test_a_claim_that_was_planned_while_nothing_waited_reads_no_more_of_a_long_line(
    quiet: Database, quiet_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL plans it once, and knows then that the outbox has no rows, and no pages."""
    await hundred_lines(quiet, 1)
    with recorded_statements(monkeypatch) as statements:
        await claimed(relay(quiet), 20)
    async with planning_once(libpq_url(quiet_url)) as connection:
        await connection.execute("DELETE FROM outbox")
        await connection.execute("VACUUM ANALYZE outbox")
        execute = await prepare(connection, *statements)
        await connection.execute(execute)
        await intend(quiet, new_id(), Intent.START, 1_000)
        assert 20 < await rows_read(connection, (execute, None)) < 200


async def hundred_lines(database: Database, length: int) -> None:
    """Two workflow kinds of fifty workspaces, with this number of rows each."""
    async with database.transaction() as work:
        await work.execute(delete(outbox))
        await work.execute(
            text(
                "INSERT INTO outbox"
                " (workspace_id, intent, workflow_kind, subject_id, request, created_at, attempts)"
                " SELECT md5((n / 2 % 50)::text)::uuid, 'start',"
                " (ARRAY['delivery', 'export'])[n % 2 + 1], gen_random_uuid(), '{}', now(), 0"
                " FROM generate_series(1, :number) AS n"
            ),
            {"number": 100 * length},
        )
        await work.execute(text("ANALYZE outbox"))


async def test_the_order_inside_a_workspace_is_kept(quiet: Database) -> None:
    workspace_id = new_id()
    wanted = await intend(quiet, workspace_id, Intent.START, 10)
    taker = relay(quiet)
    first = [row.subject_id for row in await claimed(taker, 4)]
    assert first == wanted[:4]
    assert [row.subject_id for row in await claimed(taker, 4)] == wanted[4:8]


async def test_a_cancel_goes_before_starts(quiet: Database) -> None:
    workspace_id = new_id()
    await intend(quiet, workspace_id, Intent.START, 5)
    (cancelled,) = await intend(quiet, workspace_id, Intent.CANCEL, 1)
    assert [row.subject_id for row in await claimed(relay(quiet), 1)] == [cancelled]


async def test_a_claim_does_not_wait_for_the_disk(quiet: Database) -> None:
    await intend(quiet, new_id(), Intent.START, 1)
    limits = Limits(50, 50, 50, {WorkflowKind.AUTOMATION_RUN: 100})
    async with quiet.transaction() as work:
        await work.execute(text("SET LOCAL synchronous_commit = on"))
        assert len((await claim(work, limits, [], [], of_one=7)).rows) == 1
        assert await work.scalar(text("SELECT current_setting('synchronous_commit')")) == "off"


async def test_a_claimed_row_is_not_claimed_again_before_its_claim_expires(quiet: Database) -> None:
    await intend(quiet, new_id(), Intent.START, 1)
    assert len(await claimed(relay(quiet), 5)) == 1
    assert await claimed(relay(quiet), 5) == []


async def test_a_workspace_at_its_cap_starts_nothing_but_is_cancelled(quiet: Database) -> None:
    space = await make_space(quiet, KEYS)
    await running(quiet, space, 2)
    await intend(quiet, space.id, Intent.START, 3)
    (cancelled,) = await intend(quiet, space.id, Intent.CANCEL, 1)
    (other,) = await intend(quiet, new_id(), Intent.START, 1)
    taken = {row.subject_id for row in await claimed(relay(quiet, running_cap=2), 10)}
    assert taken == {cancelled, other}


async def test_a_workspace_at_its_cap_starts_everything_but_automation_runs(
    quiet: Database,
) -> None:
    space = await make_space(quiet, KEYS)
    await running(quiet, space, 2)
    await intend(quiet, space.id, Intent.START, 60)
    timer, due = await intend(quiet, space.id, Intent.START, 2, WorkflowKind.TIMER_DUE)
    taken = [row.subject_id for row in await claimed(relay(quiet, running_cap=2), 10)]
    assert taken == [timer, due]


async def test_a_workspace_near_its_cap_starts_as_many_as_there_is_room_for(
    quiet: Database,
) -> None:
    space = await make_space(quiet, KEYS)
    await running(quiet, space, 2)
    first, second, third, *_ = await intend(quiet, space.id, Intent.START, 6)
    starting = await running(quiet, space, 3, "queued")
    taker = relay(quiet, running_cap=5)
    taker._starts.started(starting[0], space.id)
    assert [row.subject_id for row in await claimed(taker, 10)] == [first, second]
    taker._starts.started(starting[1], space.id)
    taker._starts.started(starting[2], space.id)
    assert await claimed(taker, 10) == []
    for run_id in starting:
        taker._starts.begun(run_id)
    assert [row.subject_id for row in await claimed(taker, 1)] == [third]


async def test_work_that_a_person_waits_for_goes_first(quiet: Database) -> None:
    workspace_id = new_id()
    triggered = await intend(quiet, workspace_id, Intent.START, 3)
    asked_for = await intend(quiet, workspace_id, Intent.START, 2, weight=AWAITED)
    async with quiet.transaction() as work:
        await work.execute(update(outbox).values(created_at=work.now - timedelta(seconds=1)))
    taker = relay(quiet)
    taken = [await claimed(taker, 1) for _ in range(5)]
    assert [row.subject_id for (row,) in taken] == [*asked_for, *triggered]


@pytest.mark.parametrize(("age", "first"), [(13, "asked for"), (17, "triggered")])
async def test_age_raises_urgency(quiet: Database, age: int, first: str) -> None:
    workspace_id = new_id()
    (triggered,) = await intend(quiet, workspace_id, Intent.START, 1)
    (asked_for,) = await intend(quiet, workspace_id, Intent.START, 1, weight=AWAITED)
    async with quiet.transaction() as work:
        for subject, seconds in ((triggered, age), (asked_for, 10)):
            since = {"created_at": work.now - timedelta(seconds=seconds)}
            await work.execute(update(outbox).where(outbox.c.subject_id == subject).values(since))
    names = {triggered: "triggered", asked_for: "asked for"}
    taker = relay(quiet)
    taken = [names[row.subject_id] for _ in range(2) for row in await claimed(taker, 1)]
    assert taken == [first, *({*names.values()} - {first})]


async def test_the_line_stays_with_us_until_runs_begin(quiet: Database) -> None:
    space = await make_space(quiet, KEYS)
    begun, queued = [await running(quiet, space, 2, status) for status in ("running", "queued")]
    await intend(quiet, space.id, Intent.START, 5)
    others = await intend(quiet, new_id(), Intent.START, 1)
    taker = Relay(quiet, {}, RunStarts(), Limits(20, 6, 8, {}))
    late = await running(quiet, space, 2, "queued")
    taker._starts.started(new_id(), new_id())
    for run_id in [*queued, *late]:
        taker._starts.started(run_id, space.id)
    assert [row.subject_id for row in await claimed(taker, 20)] == others
    taker._starts.begun(late[0])
    taker._starts.begun(late[1])
    # Those that began in other processes do not count either.
    for run_id in begun:
        taker._starts.started(run_id, space.id)
    assert len(await claimed(taker, 20)) == 2


async def test_a_workspace_alone_leaves_a_place_and_beside_others_has_its_share(
    quiet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = new_id()
    await intend(quiet, alone, Intent.START, 20)
    taker = Relay(quiet, {}, RunStarts(), Limits(20, 6, 4, {}))
    taker._starts.started(new_id(), alone)
    assert len(await claimed(taker, 20)) == 5
    taker._starts.started(new_id(), new_id())
    assert len(await claimed(taker, 20)) == 2
    monkeypatch.setattr("activities.outbox.relay.RECENT_SECONDS", 0)
    for workspace_id in list(taker._starts._recent):
        taker._starts.started(new_id(), workspace_id)
    assert len(await claimed(taker, 20)) == 5


async def test_a_start_that_was_left_is_taken_when_there_is_room(quiet: Database) -> None:
    space = await make_space(quiet, KEYS)
    (starting,) = await running(quiet, space, 1, "queued")
    await intend(quiet, space.id, Intent.START, 1)
    taker = Relay(quiet, {}, RunStarts(), Limits(20, 1, 1, {WorkflowKind.AUTOMATION_RUN: 1}))
    taker._starts.started(starting, space.id)
    assert await claimed(taker, 20) == []
    taker._starts.begun(starting)
    async with quiet.transaction() as work:
        begun = automation_run.c.id == starting
        await work.execute(update(automation_run).where(begun).values(status="running"))
    assert await claimed(taker, 20) == []
    taker._wake.clear()
    taker._starts.stopped_running()
    assert taker._wake.is_set()


async def test_a_begin_makes_room_for_a_start_that_was_left(quiet: Database) -> None:
    space = await make_space(quiet, KEYS)
    (starting,) = await running(quiet, space, 1, "queued")
    await intend(quiet, space.id, Intent.START, 1)
    taker = Relay(quiet, {}, RunStarts(), Limits(20, 1, 1, {}))
    taker._starts.started(starting, space.id)
    assert await claimed(taker, 20) == []
    assert not taker._wake.is_set()
    taker._starts.begun(starting)
    assert taker._wake.is_set()
    assert len(await claimed(taker, 20)) == 1


async def test_a_begin_does_not_wake_the_relay_without_left_starts(quiet: Database) -> None:
    space = await make_space(quiet, KEYS)
    (starting,) = await running(quiet, space, 1, "queued")
    taker = Relay(quiet, {}, RunStarts(), Limits(20, 1, 1, {WorkflowKind.AUTOMATION_RUN: 1}))
    taker._starts.started(starting, space.id)
    await claimed(taker, 20)
    taker._starts.begun(starting)
    taker._starts.stopped_running()
    assert not taker._wake.is_set()


def test_a_begin_while_the_relay_looks_is_not_missed() -> None:
    starts, woken = RunStarts(), list[bool]()
    starts.on_room = lambda: woken.append(True)
    run_id = new_id()
    starts.started(run_id, new_id())
    assert starts.begin_claim() == [run_id]
    starts.begun(run_id)
    assert not woken
    starts.end_claim(waits_for_begin=True, waits_for_end=False)
    assert woken


def test_runs_are_claimed_several_at_once() -> None:
    assert begins_that_wake(8, enough=4) == [4, 5, 6, 7, 8]
    # The last ones are not waited for in vain.
    assert begins_that_wake(2, enough=4) == [2]


def begins_that_wake(runs: int, enough: int) -> list[int]:
    """The numbers of the begins that wake a relay whose lines are full."""
    starts, woken, number = RunStarts(), list[int](), 0
    starts.on_room = lambda: woken.append(number)
    run_ids, workspace_id = [new_id() for _ in range(runs)], new_id()
    for run_id in run_ids:
        starts.started(run_id, workspace_id)
    starts.begin_claim()
    starts.end_claim(waits_for_begin=True, waits_for_end=False, enough=enough)
    for number, run_id in enumerate(run_ids, 1):  # noqa: B007  # what wakes reads it
        starts.begun(run_id)
    return woken


async def test_beside_another_workspace_runs_start_one_after_the_other() -> None:
    starts = RunStarts()
    first, second, third, other = (new_id() for _ in range(4))
    workspace_id = new_id()
    starts.started(first, workspace_id)
    starts.started(second, workspace_id)
    await starts.turn(second)
    starts.started(third, workspace_id)
    starts.started(other, new_id())
    await starts.turn(other)
    turn = asyncio.create_task(starts.turn(third))
    await asyncio.sleep(0)
    assert starts.held == 1
    starts.begun(first)
    await asyncio.sleep(0)
    assert not turn.done()
    starts.begun(second)
    await turn
    assert starts.held == 0


async def test_the_run_after_a_lost_one_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, workspace_id = RunStarts(), new_id()
    lost, next_ = new_id(), new_id()
    for run_id, space_id in [(lost, workspace_id), (new_id(), new_id()), (next_, workspace_id)]:
        starts.started(run_id, space_id)
    turn = asyncio.create_task(starts.turn(next_))
    await asyncio.sleep(0)
    starts.begin_claim()
    await asyncio.sleep(0)
    assert starts.held == 1
    monkeypatch.setattr("activities.outbox.relay.LOST_SECONDS", 0)
    assert starts.begin_claim() == []
    async with asyncio.timeout(1):
        await turn


async def test_a_relay_that_stops_starts_what_waits_for_its_turn(
    quiet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.outbox.relay.LOST_SECONDS", 60)
    delivered = list[uuid.UUID]()

    async def deliver(row: Outbox) -> None:
        delivered.append(row.subject_id)

    taker = Relay(quiet, {Intent.START: deliver}, RunStarts(), Limits(20, 8, 10, {}))
    taker._starts.started(new_id(), new_id())
    workspace_id = new_id()
    taker._starts.started(new_id(), workspace_id)
    held = await intend(quiet, workspace_id, Intent.START, 2)
    running = asyncio.create_task(taker.run())

    async def are_held() -> bool:
        return taker._starts.held == 2

    async def are_delivered() -> bool:
        return delivered == held

    await eventually(are_held, what="the turns")
    assert not delivered
    running.cancel()
    await eventually(are_delivered, what="the starts")


async def test_a_claim_deletes_what_a_timer_would_have_had_deleted(
    quiet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.outbox.relay.DELETION_SECONDS", 0.01)
    taker = Relay(quiet, {}, RunStarts())
    delivery = asyncio.create_task(asyncio.sleep(0))
    await delivery
    for _ in range(3):
        taker._done(delivery)
    await claimed(taker, 1)
    await asyncio.sleep(0.1)
    assert not taker._wake.is_set()
    taker._done(delivery)
    async with asyncio.timeout(10):
        await taker._wake.wait()


async def test_a_delivered_row_goes_although_nothing_wakes_the_relay(quiet: Database) -> None:
    async def deliver(row: Outbox) -> None:
        del row

    async def is_empty() -> bool:
        async with quiet.reading() as work:
            return await work.first(select(outbox.c.id)) is None

    await intend(quiet, new_id(), Intent.CANCEL, 1)
    relaying = asyncio.create_task(Relay(quiet, {Intent.CANCEL: deliver}, RunStarts()).run())
    await eventually(is_empty, what="the deletion")
    relaying.cancel()


def test_other_processes_are_notified_of_the_begin_of_a_run_they_started() -> None:
    starts, told = RunStarts(), list[bool]()
    starts.on_foreign_begin = lambda: told.append(True)
    own = new_id()
    starts.started(own, new_id())
    starts.begun(own)
    assert not told
    starts.begun(new_id(), by_relay=False)
    assert not told
    starts.begun(new_id())
    assert told


async def test_a_run_that_never_begins_holds_up_no_other(
    quiet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = await make_space(quiet, KEYS)
    (lost,) = await running(quiet, space, 1, "queued")
    await intend(quiet, space.id, Intent.START, 1)
    taker = Relay(quiet, {}, RunStarts(), Limits(20, 1, 1, {}))
    taker._starts.started(lost, space.id)
    assert await claimed(taker, 20) == []
    monkeypatch.setattr("activities.outbox.relay.LOST_SECONDS", 0)
    taker._starts.started(lost, space.id)
    assert len(await claimed(taker, 20)) == 1


@pytest.mark.parametrize("trouble", [psycopg.OperationalError("gone"), MemoryError()])
async def test_no_trouble_ends_a_relay(
    quiet: Database, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    monkeypatch.setattr("activities.pollers.POLL_SECONDS", 0.01)
    (delivered,) = await intend(quiet, new_id(), Intent.CANCEL, 1)
    taken: list[uuid.UUID] = []
    troubles = iter([trouble])

    @asynccontextmanager
    async def failing() -> AsyncIterator[Any]:
        for one in troubles:
            raise one
        async with Database.statement(quiet) as work:
            yield work

    async def deliver(row: Any) -> None:
        taken.append(row.subject_id)

    monkeypatch.setattr(quiet, "statement", failing)
    relaying = asyncio.create_task(Relay(quiet, {Intent.CANCEL: deliver}, RunStarts()).run())
    await eventually(lambda: asyncio.sleep(0, taken == [delivered]))
    relaying.cancel()


async def test_delivered_rows_are_deleted_with_the_next_claim(quiet: Database) -> None:
    await intend(quiet, new_id(), Intent.START, 2)
    taker = relay(quiet)
    first, second = await claimed(taker, 2)
    taker._delivered.append(first.id)
    await claimed(taker, 2)
    async with quiet.transaction() as work:
        assert await work.scalar(select(outbox.c.id)) == second.id


async def running(
    database: Database, space: Space, count: int, status: str = "running"
) -> Sequence[uuid.UUID]:
    """Runs that are running, or in another state."""
    run_ids = [new_id() for _ in range(count)]
    body = CreateAutomation.model_validate({"label": "Busy", "graph": graph(node("a", "join"))})
    async with database.transaction() as work:
        automation = await create_automation(work, space.actor, KEYS, body)
        for run_id in run_ids:
            await work.execute(
                insert(automation_run).values(
                    id=run_id,
                    workspace_id=space.id,
                    automation_id=automation.id,
                    automation_version_id=automation.version_id,
                    graph_checksum="",
                    status=status,
                    source="manual",
                    trigger_payload={},
                    options={},
                    created_at=work.now,
                    started_at=work.now,
                )
            )
    return run_ids


async def test_a_workspace_has_no_more_of_a_workflow_kind_under_way_than_its_cap(
    quiet: Database,
) -> None:
    space, other = await make_space(quiet, KEYS), await make_space(quiet, KEYS)
    exports = await accepted(quiet, space, WorkflowKind.EXPORT, 5)
    copies = await accepted(quiet, space, WorkflowKind.DATABASE_DUPLICATE, 3)
    quick = await accepted(quiet, other, WorkflowKind.EXPORT, 1)
    taker = Relay(quiet, {}, RunStarts(), Limits(50, 50, 50, {WorkflowKind.EXPORT: 2}))
    taken = [row.subject_id for row in await claimed(taker, 20)]
    assert set(taken) == {*exports[:2], *copies, *quick}
    assert await claimed(taker, 20) == []
    async with quiet.transaction() as work:
        await close_job(work, exports[0], JobStatus.CANCELLED)
        assert work.notify_workers
    assert [row.subject_id for row in await claimed(taker, 20)] == [exports[2]]


async def test_work_that_begins_again_holds_its_place(quiet: Database) -> None:
    space = await make_space(quiet, KEYS)
    first, second = await accepted(quiet, space, WorkflowKind.EXPORT, 2)
    taker = Relay(quiet, {}, RunStarts(), Limits(50, 50, 50, {WorkflowKind.EXPORT: 1}))
    (row,) = await claimed(taker, 20)
    assert row.subject_id == first
    taker._delivered.append(row.id)
    async with quiet.transaction() as work:
        await start_job(work, WorkflowKind.EXPORT, space.id, first, first, "Again", restarts=1)
    assert [row.subject_id for row in await claimed(taker, 20)] == [first]
    async with quiet.transaction() as work:
        await close_job(work, first, JobStatus.CANCELLED)
    assert [row.subject_id for row in await claimed(taker, 20)] == [second]


async def accepted(
    database: Database, space: Space, workflow_kind: WorkflowKind, count: int
) -> Sequence[uuid.UUID]:
    """Jobs whose starts wait."""
    job_ids = [new_id() for _ in range(count)]
    async with database.transaction() as work:
        for job_id in job_ids:
            await accept_job(work, space.actor, workflow_kind, job_id, job_id, summary="Test")
    return job_ids
