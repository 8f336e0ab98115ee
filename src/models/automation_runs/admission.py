"""Whether a run that is asked for gets a slot, waits for one, or is not made (decisions C7)."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ARRAY, Uuid, bindparam, func, literal, select

from models.access.rules import Actor
from models.automation_runs import slots
from models.automation_runs.cancellation import cancel_runs
from models.automation_runs.errors import ConcurrencyKeyError, SlotsTakenError, WaitsForItselfError
from models.automation_runs.rules import RunSource, is_test
from models.automation_runs.tables import automation_run
from models.base import Id, JsonObject
from models.expressions.rules.expressions import ExpressionError, compile_expression
from runtime.database import UnitOfWork
from runtime.prepared import Prepared

LONGEST_KEY = 256
"""Characters of a key as it is kept; what is longer is known by its digest."""

DISPLACED = "A newer run took its place."
"""What a run says that the policy cancel_oldest ended."""

SHARED_KEY = "null"
"""The key of runs whose automation has no key expression, or whose expression gives null."""

_ASKED_FOR = frozenset(
    {RunSource.MANUAL, RunSource.FROM_NODE, RunSource.REPLAY, RunSource.AUTOMATION}
)
"""Sources where somebody hears a refusal."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of a request.

    Without a `key` the run needs no slot. A request that `makes_run` false is there already or
    skipped; a run with a `refusal` begins only to fail.
    """

    key: str | None = None
    admitted: bool = True
    makes_run: bool = True
    skipped: bool = False
    refusal: str | None = None


FREE = Admission()
"""A run that needs no slot."""


def concurrency_of(trigger_config: JsonObject, request: Any) -> JsonObject | None:
    """The limits that hold for a run; tests have none."""
    if is_test(request.source, request.options):
        return None
    return trigger_config.get("concurrency")


async def admit(
    work: UnitOfWork, actor: Actor, automation_id: Id, request: Any, run_id: Id, limits: JsonObject
) -> Admission:
    """Decide under the key's lock, which stays held until the transaction ends.

    Raises RunError where somebody asked for the run and hears of it.
    """
    asked = request.source in _ASKED_FOR
    try:
        key = key_of(limits, request.payload)
    except ExpressionError as error:
        refusal = ConcurrencyKeyError(error.message)
        if asked:
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
        if asked:
            raise SlotsTakenError
        return Admission(key, makes_run=False, skipped=True)
    if policy == "cancel_oldest":
        oldest = await slots.oldest(work, automation_id, key, over)
        await cancel_runs(
            work, actor.workspace_id, oldest, error=DISPLACED, keeping=(automation_id, key)
        )
        return Admission(key)
    if request.started_by_caller and await _held_by(work, automation_id, key, request.chain):
        raise WaitsForItselfError
    return Admission(key, admitted=False)


def key_of(limits: JsonObject, payload: JsonObject) -> str:
    """The key of a run with this payload, as canonical JSON. Raises ExpressionError."""
    expression = limits.get("keyExpression")
    if expression is None:
        return SHARED_KEY
    value = compile_expression(expression).evaluate({"trigger": payload})
    key = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return key if len(key) <= LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()


_HELD_BY = Prepared(
    select(literal(1))
    .select_from(automation_run)
    .where(slots.HOLDS, automation_run.c.id == func.any(bindparam("run_ids", type_=ARRAY(Uuid))))
    .limit(1)
)


async def _held_by(work: UnitOfWork, automation_id: Id, key: str, run_ids: Any) -> bool:
    parameters = {"automation_id": automation_id, "key": key, "run_ids": list(run_ids)}
    return await _HELD_BY.first(work, parameters) is not None
