"""What holds after every scenario, read from the rows and from the log of their changes."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from tests.simulation.processes import Violation
from tests.simulation.temporal import Server
from tests.simulation.world import Change, World

ENDS = {"succeeded", "failed", "cancelled", "timed_out"}
_FAILURES = {"failed", "cancelled", "timed_out"}
RUN_MOVES = {
    None: {"queued"},
    "queued": {"queued", "running", "succeeded"} | _FAILURES,
    "running": {"running", "waiting"} | ENDS,
    "waiting": {"running", "waiting"} | ENDS,
}
"""Written out once more, so that a change of the rules is seen here."""
NODE_MOVES = {
    None: {"queued", "running", "waiting", "succeeded", "failed", "skipped", "cancelled"},
    "queued": {"running", "waiting", "succeeded", "failed", "skipped", "cancelled"},
    "running": {"running", "waiting", "succeeded", "failed", "cancelled"},
    "waiting": {"running", "waiting", "succeeded", "failed", "cancelled"},
}
STARTS = {"running", "waiting", "succeeded"}
"""States of nodes that have begun, or that just do."""


async def check(world: World, server: Server, accepted: set[UUID], events: set[int]) -> None:
    """Raises Violation for the first promise that was not kept."""
    changes = await world.changes()
    _check_moves(changes)
    _check_slots(changes, {world.automations[name]: most for name, most in LIMITS.items()})
    pauses = Pauses(world.space.id)
    for change in changes:
        pauses.see(change)
    _check_nothing_begins_after_ends(changes)
    await _check_ends(world, accepted)
    await _check_effects(world)
    await _check_repeats(world, events)
    _check_executions(server)


LIMITS = {"limited": 2, "newest": 1, "scheduled": 1}


def _check_moves(changes: Sequence[Change]) -> None:
    """Statuses move along their tables (architecture.md#final-statuses)."""
    for change in changes:
        moves = {"run": RUN_MOVES, "node": NODE_MOVES}.get(change.kind)
        if moves is not None and change.after not in moves.get(change.before, {change.before}):
            raise Violation(
                f"status: a {change.kind} of {change.id} moved {change.before} → {change.after}"
            )


def _transactions(changes: Sequence[Change]) -> Iterator[list[Change]]:
    for _, group in groupby(changes, lambda change: change.transaction):
        yield list(group)


def _check_slots(changes: Sequence[Change], limits: dict[Any, int]) -> None:
    """No key has more runs with a slot than it may, at any moment."""
    held: dict[tuple[str, str], set[UUID]] = defaultdict(set)
    most = {str(automation_id): limit for automation_id, limit in limits.items()}
    for group in _transactions(changes):
        for change in group:
            if change.kind != "run" or change.facts["key"] is None:
                continue
            key = change.facts["automation"], change.facts["key"]
            if not change.facts["admitted"] and change.after in {"running", "waiting"}:
                raise Violation(f"slots: {change.id} is {change.after} without one")
            holds = change.facts["admitted"] and change.after not in ENDS
            (held[key].add if holds else held[key].discard)(change.id)
        for (automation_id, _), runs in held.items():
            if len(runs) > most[automation_id]:
                raise Violation(f"slots: {len(runs)} runs of {most[automation_id]} hold one")
    if lost := [runs for runs in held.values() if runs]:
        raise Violation(f"slots: {lost} never gave theirs back")


class Pauses:
    """What is accepted, or gets its slot, under a pause does not begin before its end.

    A start that rests is let go when its pause is over. From then on it may be claimed, and a later
    pause leaves it.
    """

    def __init__(self, workspace_id: UUID) -> None:
        self._workspace_id = workspace_id
        self._paused: set[UUID] = set()
        self._kept: dict[UUID, set[UUID]] = {}
        """Runs that may not begin, and the subjects whose pause keeps them."""
        self._admitted: set[UUID] = set()
        self._resting: set[UUID] = set()

    def see(self, change: Change) -> None:
        """Take note of the next change. Raises Violation."""
        if change.kind == "left":
            raise Violation(f"pause: the start of {change.id} is in line under it")
        if change.kind == "pause":
            (self._paused.add if change.after == "on" else self._paused.discard)(change.id)
            kept = {id_: subjects & self._paused for id_, subjects in self._kept.items()}
            self._kept = {id_: subjects for id_, subjects in kept.items() if subjects}
        elif change.kind == "rest":
            self._see_rest(change)
        elif change.kind == "run" and not change.facts["test"]:
            self._see_run(change)

    def _see_rest(self, change: Change) -> None:
        (self._resting.add if change.after == "rests" else self._resting.discard)(change.id)
        subjects = {UUID(one) for one in change.facts["subjects"]}
        if change.after == "over" and change.facts["open"] and subjects & self._paused:
            raise Violation(f"pause: the start of {change.id} was let go under it")

    def _see_run(self, change: Change) -> None:
        is_ready = change.after == "queued" and change.facts["admitted"]
        if is_ready and change.id not in self._admitted:
            self._admitted.add(change.id)
            subjects = {UUID(change.facts["automation"]), self._workspace_id} & self._paused
            if subjects:
                self._kept[change.id] = subjects
        if (change.before, change.after) == ("queued", "running"):
            if change.id in self._kept:
                raise Violation(f"pause: {change.id} began under a pause that was there before it")
            if change.id in self._resting:
                raise Violation(f"pause: {change.id} began while its start rested")


def _check_nothing_begins_after_ends(changes: Sequence[Change]) -> None:
    """No node of a run begins, or has an effect, once the run has ended."""
    ended: set[UUID] = set()
    for group in _transactions(changes):
        for change in group:
            if change.kind == "node" and change.id in ended and change.after in STARTS:
                raise Violation(f"begun: a node of {change.id} became {change.after} after its end")
        ended |= {one.id for one in group if one.kind == "run" and one.after in ENDS}


async def _check_ends(world: World, accepted: set[UUID]) -> None:
    """All that was accepted is there and has ended, and nothing of it is left."""
    rows = dict(await world.ask("SELECT id, status FROM automation_run"))
    if lost := accepted - rows.keys():
        raise Violation(f"lost: accepted and not there: {lost}")
    if opened := {id_: status for id_, status in rows.items() if status not in ENDS}:
        raise Violation(f"open: never ended: {opened}")
    ((waiting,),) = await world.ask(
        "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM resting_intent)"
    )
    if waiting:
        raise Violation(f"open: {waiting} intents are left in the end")
    left = await world.ask(
        "SELECT run_id, node_id, status FROM node_run"
        " WHERE status IN ('queued', 'running', 'waiting')"
    )
    if left:
        raise Violation(f"nodes of ended runs are open: {left}")


async def _check_effects(world: World) -> None:
    """A record for each node that says it made one (architecture.md#effects-once)."""
    made = Counter(dict(await world.ask("SELECT creation_run_id, count(*) FROM record GROUP BY 1")))
    said = Counter(
        dict(
            await world.ask(
                "SELECT run_id, count(*) FROM node_run WHERE node_kind = 'create_record'"
                " AND status = 'succeeded' AND outcome IS DISTINCT FROM 'reused' GROUP BY 1"
            )
        )
    )
    if made != said:
        raise Violation(f"effects: {dict(made - said)} too many, {dict(said - made)} missing")
    short = await world.ask(
        "SELECT run.id FROM automation_run run WHERE status = 'succeeded' AND source <> 'replay'"
        " AND NOT EXISTS (SELECT FROM node_run WHERE run_id = run.id AND status = 'succeeded')"
    )
    if short:
        raise Violation(f"effects: succeeded without an effect: {short}")


async def _check_repeats(world: World, events: set[int]) -> None:
    """What is repeated until it is heard has one run: an event, a due time, a failure."""
    for name in ("event", "scheduledAt", "runId"):
        doubled = await world.ask(
            "SELECT trigger_payload ->> %s, count(*) FROM automation_run"
            " WHERE trigger_payload ? %s AND source <> 'replay' GROUP BY 1 HAVING count(*) > 1",
            name,
            name,
        )
        if doubled:
            raise Violation(f"doubled: more than one run for {name} {doubled}")
    heard = await world.ask(
        "SELECT (trigger_payload ->> 'event')::int FROM automation_run"
        " WHERE trigger_payload ? 'event'"
    )
    if lost := events - {number for (number,) in heard}:
        raise Violation(f"lost: events without a run: {lost}")
    unanswered = await world.ask(
        "SELECT id FROM automation_run run WHERE automation_id = %s AND status = 'failed'"
        " AND source <> 'test' AND NOT coalesce((options ->> 'test')::bool, false) AND NOT"
        " EXISTS (SELECT FROM automation_run WHERE trigger_payload ->> 'runId' = run.id::text)",
        world.automations["failing"],
    )
    if unanswered:
        raise Violation(f"lost: failures without their handler: {unanswered}")


def _check_executions(server: Server) -> None:
    if left := [one.id for one in server.open()]:
        raise Violation(f"open: executions are there in the end: {left}")
