"""What holds after every scenario, read from the rows and from the log of their changes."""

from collections import defaultdict
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
    await _check_rows(world, accepted, events)
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


async def _check_rows(world: World, accepted: set[UUID], events: set[int]) -> None:
    """What the rows have to say in the end."""
    parameters = {
        "accepted": [*accepted],
        "events": [*events],
        "failing": world.automations["failing"],
    }
    for promise, broken in await world.ask(_BROKEN, parameters):
        raise Violation(f"{promise}: {broken}")


_PROMISES = {
    "lost: accepted and not there": """
        SELECT unnest(%(accepted)s::uuid[]) EXCEPT SELECT id FROM automation_run""",
    "open: never ended": """
        SELECT id, status FROM automation_run
        WHERE status IN ('queued', 'running', 'waiting')""",
    "open: intents are left in the end": """
        SELECT subject_id FROM outbox UNION ALL SELECT work_id FROM resting_intent""",
    "open: nodes of ended runs": """
        SELECT run_id, node_id, status FROM node_run
        WHERE status IN ('queued', 'running', 'waiting')""",
    # A record for each node that says it made one (architecture.md#effects-once).
    "effects: not as many records as nodes that made one": """
        SELECT run_id, made, said
        FROM (SELECT creation_run_id AS run_id, count(*) AS made FROM record GROUP BY 1) AS made
        FULL JOIN (SELECT run_id, count(*) AS said FROM node_run
            WHERE node_kind = 'create_record' AND status = 'succeeded'
                AND outcome IS DISTINCT FROM 'reused' GROUP BY 1) AS said USING (run_id)
        WHERE made IS DISTINCT FROM said""",
    "effects: succeeded without one": """
        SELECT id FROM automation_run AS run WHERE status = 'succeeded' AND source <> 'replay'
            AND NOT EXISTS (SELECT FROM node_run WHERE run_id = run.id AND status = 'succeeded')""",
    # What is repeated until it is heard has one run: an event, a due time, a failure.
    "doubled: more than one run": """
        SELECT name, trigger_payload ->> name, count(*)
        FROM automation_run, unnest(ARRAY['event', 'scheduledAt', 'runId']) AS name
        WHERE trigger_payload ? name AND source <> 'replay' GROUP BY 1, 2 HAVING count(*) > 1""",
    "lost: events without a run": """
        SELECT unnest(%(events)s::int[])
        EXCEPT SELECT (trigger_payload ->> 'event')::int FROM automation_run""",
    "lost: failures without their handler": """
        SELECT id FROM automation_run AS run
        WHERE automation_id = %(failing)s AND status = 'failed'
            AND source <> 'test' AND NOT coalesce((options ->> 'test')::bool, false) AND NOT EXISTS
            (SELECT FROM automation_run WHERE trigger_payload ->> 'runId' = run.id::text)""",
}
"""Each with the rows that break it."""
_BROKEN = " UNION ALL ".join(
    f"SELECT '{promise}', jsonb_agg(broken) FROM ({query}) AS broken HAVING count(*) > 0"  # noqa: S608  # ours
    for promise, query in _PROMISES.items()
)


def _check_executions(server: Server) -> None:
    if left := [one.id for one in server.open()]:
        raise Violation(f"open: executions are there in the end: {left}")
