"""Bugs, each of which breaks one rule of the engine; the simulation has to find all of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import bindparam, delete, func, literal_column, or_, select, update

from activities.automation_runs import node_execution
from activities.maintenance import reconciler
from activities.maintenance.work_handlers import Verdict
from activities.outbox.relay import Relay
from cli.work_handlers import runs
from models.automation.automation_runs import (
    acceptance,
    execution,
    node_writes,
    open_runs,
    slots,
)
from models.automation.automation_runs.run_header import header_columns
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.lifecycle import commands as lifecycle
from models.core.pauses import store as pause_commands
from models.core.pauses.intents import is_resting, resting_intent
from models.core.schedules import timetables
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import outbox
from tests.simulation.processes import step

Patch = pytest.MonkeyPatch
_run = automation_run.c
_OPEN = _run.status.in_(
    [literal_column("'queued'"), literal_column("'running'"), literal_column("'waiting'")]
)

_SHOWN = (
    *("status", "attempt", "outcome", "case_key"),
    *("started_at", "attempt_started_at", "due_at"),
)


async def _nothing(*_: Any, **__: Any) -> Any:
    return []


def _begin_where(*conditions: Any) -> PreparedStatement[Any]:
    return PreparedStatement(
        update(automation_run)
        .where(_run.id == bindparam("run_id"), *conditions)
        .values(
            status="running",
            started_at=func.coalesce(_run.started_at, bindparam("now", type_=Timestamp)),
        )
        .returning(*header_columns())
    )


def begins_whatever_its_status(patch: Patch) -> None:
    patch.setattr(
        execution, "_BEGIN", _begin_where(_run.admitted_at.is_not(None), ~is_resting(_run.id))
    )


def begins_without_a_slot(patch: Patch) -> None:
    patch.setattr(execution, "_BEGIN", _begin_where(_OPEN, ~is_resting(_run.id)))


def begins_under_a_pause(patch: Patch) -> None:
    patch.setattr(execution, "_BEGIN", _begin_where(_OPEN, _run.admitted_at.is_not(None)))


def nodes_pass_a_closed_gate(patch: Patch) -> None:
    statement = (
        select(*(node_run.c[name] for name in _SHOWN))
        .select_from(automation_run.outerjoin(node_run, node_writes._OWN))
        .where(_run.id == bindparam("run_id"))
    )  # fmt: skip
    patch.setattr(
        node_writes,
        "_SHARED",
        PreparedStatement(statement.with_for_update(read=True, of=automation_run)),
    )
    patch.setattr(
        node_writes, "_EXCLUSIVE", PreparedStatement(statement.with_for_update(of=automation_run))
    )


def ended_nodes_are_executed_again(patch: Patch) -> None:
    patch.setattr(node_execution, "ended_reply", lambda *_: None)


def effects_are_committed_before_their_node(patch: Patch) -> None:
    whole = node_writes.complete_node

    async def complete(work: Any, *arguments: Any) -> None:
        async with work.between_transactions():
            await step("is between two transactions")
        await whole(work, *arguments)

    patch.setattr(node_writes, "complete_node", complete)


def cancel_leaves_nodes_open(patch: Patch) -> None:
    patch.setattr(open_runs, "close_nodes", _nothing)


def ends_leave_nodes_open(patch: Patch) -> None:
    patch.setattr(node_writes, "close_nodes", _nothing)


def cancel_closes_only_what_has_not_begun(patch: Patch) -> None:
    moving = lifecycle.WorkTable.moving

    def move(kind: Any, target: Any) -> Any:
        statement = moving(kind, target)
        return (
            statement.where(kind.table.c.status == "queued") if target == "cancelled" else statement
        )

    patch.setattr(lifecycle.WorkTable, "moving", move)


def cancel_keeps_the_slot(patch: Patch) -> None:
    patch.setattr(open_runs, "slots", _with(slots, hand_on=_nothing))


def ends_keep_the_slot(patch: Patch) -> None:
    patch.setattr(execution, "slots", _with(slots, hand_on=_nothing))


def a_slot_too_many_is_handed_on(patch: Patch) -> None:
    chosen = select(slots._next.c.id).where(
        slots._next.c.turn + slots._held <= slots._next.c.slots + 1
    )
    admit = (
        update(automation_run)
        .where(_run.id.in_(chosen), _run.status == "queued")
        .values(admitted_at=bindparam("now", type_=Timestamp))
        .returning(_run.id)
    )
    patch.setattr(slots, "_ADMIT", PreparedStatement(admit))


def held_slots_are_counted_short(patch: Patch) -> None:
    taken = slots.taken

    async def short(*arguments: Any) -> Any:
        found = await taken(*arguments)
        return slots.Taken(max(0, found.held - 1), found.waiting, found.known)

    patch.setattr(slots, "taken", short)


def the_oldest_run_is_not_displaced(patch: Patch) -> None:
    patch.setattr(acceptance, "_displace", _nothing)


def the_relay_acknowledges_first(patch: Patch) -> None:
    deliver = Relay._deliver

    async def acknowledged(relay: Relay, row: Any) -> None:
        async with relay._database.transaction() as work:
            await work.execute(delete(outbox).where(outbox.c.id == row.id))
        await deliver(relay, row)

    patch.setattr(Relay, "_deliver", acknowledged)


def the_relay_forgets_what_was_not_taken(patch: Patch) -> None:
    async def forget(relay: Relay, row: Any) -> None:
        relay._delivered.append(row.id)

    patch.setattr(Relay, "_put_back", forget)


def lost_executions_are_left(patch: Patch) -> None:
    judge = runs.AutomationRuns.judge

    def leave(self: Any, row: Any, latest: Any) -> Verdict:
        return Verdict.LEAVE if latest is None else judge(self, row, latest)

    patch.setattr(runs.AutomationRuns, "judge", leave)


def ended_executions_are_left(patch: Patch) -> None:
    judge = runs.AutomationRuns.judge

    def leave(self: Any, row: Any, latest: Any) -> Verdict:
        return Verdict.LEAVE if latest is not None else judge(self, row, latest)

    patch.setattr(runs.AutomationRuns, "judge", leave)


def orphans_are_left(patch: Patch) -> None:
    async def none(*_: Any) -> Mapping[str, int]:
        return {}

    patch.setattr(reconciler, "end_orphans", none)


def a_repeated_event_makes_a_new_run(patch: Patch) -> None:
    accept = acceptance.accept

    async def anew(work: Any, actor: Any, version: Any, request: Any) -> Any:
        return await accept(work, actor, version, replace(request, run_id=None))

    patch.setattr(acceptance, "accept", anew)


def a_repeated_fire_makes_a_new_run(patch: Patch) -> None:
    patch.setattr(timetables, "due_run_id", lambda *_: new_id())


def failures_are_not_handled(patch: Patch) -> None:
    patch.setattr(execution, "_handle_failure", _nothing)


def what_comes_in_under_a_pause_starts(patch: Patch) -> None:
    pausable = vars(acceptance)["pausable"]

    def none(work: Any, _: Any, accepted_at: Any) -> Any:
        return pausable(work, [], accepted_at)

    patch.setattr(acceptance, "pausable", none)


def what_rests_is_forgotten(patch: Patch) -> None:
    async def forget(work: Any, starts: Any) -> None:
        if starts:
            await work.execute(delete(resting_intent).where(pause_commands._among(starts)))

    patch.setattr(pause_commands, "_join_outbox", forget)


def a_pause_leaves_what_is_in_line(patch: Patch) -> None:
    async def none(*_: Any) -> int:
        return 0

    patch.setattr(pause_commands, "gather_starts", none)


def runs_are_accepted_without_a_start(patch: Patch) -> None:
    patch.setattr(acceptance, "_ACCEPT_PAUSABLE", _Unstarted())


def a_scheduled_run_does_not_hear_of_its_slot(patch: Patch) -> None:
    start_intent = slots.start_intent

    def unsignalled(*arguments: Any, **options: Any) -> Any:
        intent = start_intent(*arguments, **options)
        request = {name: what for name, what in intent["request"].items() if name != "signal"}
        return {**intent, "request": request}

    patch.setattr(slots, "start_intent", unsignalled)


def a_slot_that_comes_meanwhile_is_missed(patch: Patch) -> None:
    waits = select(_run.id).where(
        _run.id == bindparam("run_id"),
        _run.status == "queued",
        or_(_run.admitted_at.is_(None), is_resting(_run.id)),
    )
    patch.setattr(execution, "_WAITS_FOR_SLOT", PreparedStatement(waits))


class _Unstarted:
    """Accepts a run and forgets to have it started."""

    async def first(self, work: Any, parameters: Any) -> Any:
        await acceptance._ACCEPT_ALONE.execute(work, parameters)
        return type("Row", (), {"pause_id": None})


def _with(module: Any, **changes: Any) -> Any:
    """A module of which some names mean something else, for one of those who use it."""
    return SimpleNamespace(**{**vars(module), **changes})


PLANTED: Mapping[str, Callable[[Patch], None]] = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_")
}
