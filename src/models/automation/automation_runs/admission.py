"""Admission: whether a run gets a concurrency slot, waits for one, or is refused (decisions C7)."""

import hashlib
import json
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Uuid, bindparam, select

from models.automation.automation_runs import slots
from models.automation.automation_runs.cancellation import Slot, cancel_runs
from models.automation.automation_runs.errors import (
    ConcurrencyKeyError,
    DisplacesCallerError,
    SlotsTakenError,
    WaitsForItselfError,
)
from models.automation.automation_runs.rules import RunSource, is_test
from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.expressions import ExpressionError, saved_expression
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

LONGEST_KEY = 256
"""Characters of a key as it is stored; a longer key is stored as its digest."""

DISPLACED = "A newer run took its place."
"""The error of a run that the policy cancel_oldest ended."""

SHARED_KEY = "null"
"""The key of runs whose automation has no key expression, or whose expression gives null."""

_ASKED_FOR = frozenset(
    {RunSource.MANUAL, RunSource.FROM_NODE, RunSource.REPLAY, RunSource.AUTOMATION}
)
"""Sources for which a refusal is raised as an error: a person or a run receives it."""


class Admissible(Protocol):
    """A request for a run, as far as admission asks about it."""

    @property
    def source(self) -> RunSource: ...
    @property
    def payload(self) -> JsonObject: ...
    @property
    def options(self) -> JsonObject: ...
    @property
    def parent_run_id(self) -> Id | None: ...


@dataclass(frozen=True, slots=True)
class Admission:
    """The decision on a request.

    Without a `key` the run needs no slot. With `makes_run` false no run is inserted: it exists
    already, or is skipped. A run with a `refusal` is inserted and fails when it begins.
    """

    key: str | None = None
    admitted: bool = True
    makes_run: bool = True
    skipped: bool = False
    refusal: str | None = None


FREE = Admission()
"""A run that needs no slot."""


def concurrency_of(trigger_config: JsonObject, request: Admissible) -> JsonObject | None:
    """The limits that hold for a run; tests have none."""
    if is_test(request.source, request.options):
        return None
    return trigger_config.get("concurrency")


async def admit(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    request: Admissible,
    run_id: Id,
    limits: JsonObject,
) -> Admission:
    """Decide under the lock of the key, which is held until the transaction ends.

    Raises RunError for a request of a person or a run that is refused.
    """
    is_explicit = request.source in _ASKED_FOR
    try:
        key = await evaluate_bounded(lambda: key_of(limits, request.payload))
    except ExpressionError as error:
        refusal = ConcurrencyKeyError(error.message)
        if is_explicit:
            raise refusal from None
        return Admission(refusal=refusal.message)
    await slots.lock(work, automation_id, key)
    taken = await slots.taken(work, automation_id, key, run_id)
    if taken.known:
        return Admission(key, makes_run=False)
    over = taken.held - limits["limit"] + 1
    policy = limits["policy"]
    if over <= 0 and not (policy == "queue" and taken.waiting):
        return Admission(key)
    if policy == "skip":
        if is_explicit:
            raise SlotsTakenError
        return Admission(key, makes_run=False, skipped=True)
    callers = await _callers(work, actor.workspace_id, request.parent_run_id)
    if policy == "cancel_oldest":
        await _displace(work, actor, (automation_id, key), over, callers)
        return Admission(key)
    if over > 0 and await _hold_all(work, (automation_id, key), callers):
        raise WaitsForItselfError
    return Admission(key, admitted=False)


async def _displace(
    work: UnitOfWork, actor: Actor, slot: Slot, count: int, callers: set[Id]
) -> None:
    """Cancel the runs that have held a slot longest. Raises DisplacesCallerError."""
    oldest = await slots.oldest(work, *slot, count)
    if not callers.isdisjoint(oldest):
        raise DisplacesCallerError
    await cancel_runs(work, actor.workspace_id, oldest, error=DISPLACED, keeping=slot)


async def _hold_all(work: UnitOfWork, slot: Slot, callers: set[Id]) -> bool:
    """True when the callers hold all slots, so that the called run would never get one."""
    if not callers:
        return False
    return callers.issuperset(await slots.oldest(work, *slot, len(callers) + 1))


def key_of(limits: JsonObject, payload: JsonObject) -> str:
    """The key of a run with this payload, as canonical JSON. Raises ExpressionError."""
    expression = limits.get("keyExpression")
    if expression is None:
        return SHARED_KEY
    value = saved_expression(expression).evaluate({"trigger": payload})
    key = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return key if len(key) <= LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()


_run = automation_run.c
_first = (
    select(_run.id, _run.parent_run_id)
    .where(
        _run.workspace_id == bindparam("workspace_id", type_=Uuid),
        _run.id == bindparam("run_id", type_=Uuid),
    )
    .cte("caller", recursive=True)
)
_above = automation_run.alias("above")
_CALLERS = PreparedStatement(
    select(
        _first.union(
            select(_above.c.id, _above.c.parent_run_id).where(_above.c.id == _first.c.parent_run_id)
        ).c.id
    )
)


async def _callers(work: UnitOfWork, workspace_id: Id, run_id: Id | None) -> set[Id]:
    """The run that waits for this one, the run that waits for that, and so on."""
    if run_id is None:
        return set()
    parameters = {"workspace_id": workspace_id, "run_id": run_id}
    return {row.id for row in await _CALLERS.rows(work, parameters)}
