"""Accepting a run: whether it gets a slot, then its row and its start in one statement."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import sqlalchemy as sa

from models.automation.automation_runs import rules, slots
from models.automation.automation_runs.canary_releases import drawn_version
from models.automation.automation_runs.open_runs import Slot, cancel_runs
from models.automation.automation_runs.tables import AUTOMATION_RUNS, AutomationRun, automation_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.attributes import bound_attributes, filled_up
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.inbox.rules import EventOutcome, Judgement
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.expressions import ExpressionError, saved_expression
from models.core.pauses.intents import append_or_rest, pausable
from runtime.database import UnitOfWork, Work
from runtime.errors import ConflictError
from runtime.ids import new_id
from runtime.postgresql.statements import PreparedStatement
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.temporal import outbox

MAX_CHAIN = 8
"""Runs in a chain in which each leads to the next (interface.md#chains-of-runs)."""
TOO_LONG = f"The chain of runs reached {MAX_CHAIN}; the next run was not started."


def is_too_long(chain: Sequence[Id]) -> bool:
    """True when a chain of runs is so long that the next run is not accepted."""
    return len(chain) >= MAX_CHAIN


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run about to be accepted.

    A `run_id` derived from what asked for the run makes a repeated request harmless. With
    `started_by_caller` the outbox gets no intent: a workflow starts the run as its child. A run
    `in_bulk`, one of many, is not awaited: it has no precedence over the others of its line.
    """

    source: rules.RunSource
    payload: JsonObject
    options: JsonObject = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    """The attributes of the caller; the trigger adds further ones."""
    start_node_id: str | None = None
    replay_of_run_id: Id | None = None
    run_id: Id | None = None
    parent_run_id: Id | None = None
    chain: tuple[Id, ...] = ()
    started_by_caller: bool = False
    in_bulk: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of a request: the run, and whether this call inserted it.

    `skipped` says that there is no run, because all slots were taken; `paused` names the kind of
    the pause whose end it waits for.
    """

    run_id: Id
    created: bool
    skipped: bool = False
    paused: str | None = None
    columns: JsonObject | None = None
    """The columns of the run that was inserted."""
    node_count: int = 0
    """Nodes of the version that it executes."""
    slot: JsonObject | None = None
    """The slot that the run waits for, or did not get: the limit, the policy and the key."""

    @property
    def judgement(self) -> Judgement:
        """The outcome of the event that asked for the run."""
        if self.skipped:
            return Judgement(EventOutcome.SKIPPED, detail=self.slot)
        if self.paused is not None:
            return Judgement(EventOutcome.PAUSED, self.run_id, {"subject": self.paused})
        if self.columns is not None and self.columns["admitted_at"] is None:
            return Judgement(EventOutcome.QUEUED, self.run_id, self.slot)
        return Judgement(EventOutcome.RUN, self.run_id)

    @property
    def attributes(self) -> Mapping[str, str] | None:
        """The attributes of the run that was inserted."""
        return None if self.columns is None else self.columns["attributes"]

    @property
    def run(self) -> AutomationRun | None:
        """The run that was inserted."""
        return None if self.columns is None else AutomationRun.model_construct(**self.columns)


_RUN_COLUMNS = (
    "automation_id",
    "automation_version_id",
    "graph_checksum",
    "status",
    "source",
    "trigger_payload",
    "options",
    "attributes",
    "start_node_id",
    "replay_of_run_id",
    "parent_run_id",
    "chain",
    "concurrency_key",
    "admitted_at",
    "created_by_user_id",
    "created_at",
)

_VALUES = {
    "id": sa.bindparam("subject_id", type_=automation_run.c.id.type),
    "workspace_id": sa.bindparam("workspace_id", type_=automation_run.c.workspace_id.type),
    **{name: sa.bindparam(name, type_=automation_run.c[name].type) for name in _RUN_COLUMNS},
}
_RUN = AUTOMATION_RUNS.accepting(_VALUES, runnable_versions.AS_READ)
_ACCEPT = PreparedStatement(
    outbox.append_for_each(_RUN.returning(automation_run.c.id).cte("accepted"))
)
"""A run and its start, written together, unless there is a run of this id already."""
_ACCEPT_PAUSABLE = PreparedStatement(
    append_or_rest(_RUN.returning(automation_run.c.id).cte("accepted"))
)
"""As `_ACCEPT`, but work that is accepted under a pause is queued."""
_ACCEPT_CALLED = PreparedStatement(
    append_or_rest(_RUN.returning(automation_run.c.id).cte("accepted"), joins=False)
)
"""A run that a workflow starts, and that a signal lets begin after a pause."""
_ACCEPT_ALONE = PreparedStatement(_RUN)


def accepting_free(decided: sa.CTE) -> sa.CTE:
    """A run and its start, as `append_or_rest` tells, unless `decided` is empty.

    `decided` selects from `runnable_versions.AS_READ`, so that no outdated version is run.
    `free_run` gives the parameters.
    """
    run = AUTOMATION_RUNS.accepting(_VALUES, decided).returning(automation_run.c.id)
    return append_or_rest(run.cte("accepted")).cte("start")


def is_free(version: RunnableVersion, request: RunRequest) -> bool:
    """True when nothing is asked before a run is accepted: neither limits nor a canary hold."""
    return version.canary is None and concurrency_of(version.trigger_config, request) is None


def free_run(
    work: Work,
    actor: Actor,
    version: RunnableVersion,
    request: RunRequest,
    run_id: Id,
    attributes: Mapping[str, str] | None,
) -> JsonObject:
    """The parameters of `accepting_free` for a run that `is_free`."""
    run = _columns(work, actor, version, request, run_id, FREE, attributes)
    return _with_start(work, version, request, run)


async def accept(
    work: UnitOfWork, actor: Actor, version: RunnableVersion, request: RunRequest
) -> Accepted:
    """Accept a run of a version, or of another one that a canary draws for it.

    It starts when this transaction commits, or when it gets a slot.
    Raises RunError when a person or a run asked for it and the automation's concurrency forbids it,
    RewrittenError when a rename has changed the version since it was read.
    """
    run_id = request.run_id or new_id()
    version, further = await drawn_version(work, actor, version, request.source, run_id)
    if further:
        request = replace(request, options={**request.options, **further})
    limits = concurrency_of(version.trigger_config, request)
    if limits is None:
        return await _write(work, actor, version, request, run_id, FREE)
    admission = await admit(work, actor, version.automation_id, request, run_id, limits)
    slot = slot_detail(limits, admission.key)
    if not admission.makes_run:
        return Accepted(run_id, created=False, skipped=admission.skipped, slot=slot)
    accepted = await _write(work, actor, version, request, run_id, admission)
    accepted = replace(accepted, slot=slot)
    if admission.key is not None and not admission.admitted:
        # No other run can have freed a slot meanwhile, but a raised limit may have left some free.
        await slots.hand_on(work, version.automation_id, admission.key)
    return accepted


def slot_detail(limits: JsonObject, key: str | None) -> JsonObject:
    """A slot as the inbox names it."""
    return {"limit": limits["limit"], "policy": limits["policy"], "key": key}


async def accept_live(
    work: UnitOfWork, actor: Actor, version: RunnableVersion, request: RunRequest
) -> Accepted:
    """`accept` for a payload that names no field: a version that was rewritten is read again."""
    try:
        return await accept(work, actor, version, request)
    except RewrittenError:
        newer = await runnable_versions.live(work, actor.workspace_id, version.automation_id)
        if newer is None:
            raise
        return await accept(work, actor, newer, request)


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


async def _write(
    work: UnitOfWork,
    actor: Actor,
    version: RunnableVersion,
    request: RunRequest,
    run_id: Id,
    admission: Admission,
) -> Accepted:
    attributes = await attributes_of(version, request)
    run = _columns(work, actor, version, request, run_id, admission, attributes)
    if not admission.admitted:
        created, paused = await _ACCEPT_ALONE.execute(work, run) > 0, None
    else:
        created, paused = await _insert(work, version, request, run)
    columns = None
    if not created:
        await _check_version(work, run)
    else:
        columns = {"id": run_id, **run}
        del columns["subject_id"], columns["rewrites"]
    return Accepted(run_id, created, paused=paused, columns=columns, node_count=version.node_count)


class RewrittenError(ConflictError):
    """The graph was rewritten after the version to run was read."""

    advice = "Send the request again."

    def __init__(self) -> None:
        super().__init__("The automation was changed at this moment, and no run was started.")


_IS_REWRITTEN = PreparedStatement(
    runnable_versions.REWRITTEN.where(~sa.exists().where(automation_run.c.id == _VALUES["id"]))
)


async def _check_version(work: UnitOfWork, run: JsonObject) -> None:
    """Raise RewrittenError for a run that is not there and whose version is another one by now."""
    if await _IS_REWRITTEN.first(work, run) is not None:
        raise RewrittenError


def _columns(
    work: Work,
    actor: Actor,
    version: RunnableVersion,
    request: RunRequest,
    run_id: Id,
    admission: Admission,
    attributes: Mapping[str, str] | None,
) -> JsonObject:
    """The columns of a run; its id is `subject_id`, as in the intent of its start."""
    return {
        "subject_id": run_id,
        "workspace_id": actor.workspace_id,
        "automation_id": version.automation_id,
        "automation_version_id": version.version_id,
        "graph_checksum": version.checksum,
        "rewrites": version.rewrites,
        "status": rules.RunStatus.QUEUED,
        "source": request.source,
        "trigger_payload": request.payload,
        "options": _options(request, admission),
        "attributes": attributes,
        "start_node_id": request.start_node_id,
        "replay_of_run_id": request.replay_of_run_id,
        "parent_run_id": request.parent_run_id,
        "chain": list(request.chain),
        "concurrency_key": admission.key,
        "admitted_at": work.now if admission.admitted else None,
        "created_by_user_id": actor.person,
        "created_at": work.next_moment(),
    }


async def _insert(
    work: UnitOfWork, version: RunnableVersion, request: RunRequest, run: JsonObject
) -> tuple[bool, str | None]:
    """Insert a run that has what it needs: whether it is new, and the pause. A test has none."""
    test = rules.is_test(request.source, request.options)
    if test and request.started_by_caller:
        return await _ACCEPT_ALONE.execute(work, run) > 0, None
    values = _with_start(work, version, request, run)
    if test:
        return await _ACCEPT.execute(work, values) > 0, None
    statement = _ACCEPT_CALLED if request.started_by_caller else _ACCEPT_PAUSABLE
    row = await statement.first(work, values)
    return row is not None, None if row is None else row.subject_kind


def _with_start(
    work: Work, version: RunnableVersion, request: RunRequest, run: JsonObject
) -> JsonObject:
    """The columns of a run with the parameters of its start, and of its rest under a pause."""
    workspace_id, run_id = run["workspace_id"], run["subject_id"]
    if request.started_by_caller:
        intent = slots.admitted_intent(workspace_id, run_id)
    else:
        intent = slots.start_intent(
            workspace_id,
            run_id,
            version,
            request.source,
            run["attributes"],
            in_bulk=request.in_bulk,
        )
    subjects = pausable(work, [version.automation_id, workspace_id], run["created_at"])
    return {**outbox.intent_values(work, **intent), **run, **subjects}


async def attributes_of(version: RunnableVersion, request: RunRequest) -> dict[str, str] | None:
    """The attributes of a run; the replay of a run inherits all of them."""
    attributes = dict(request.attributes)
    inherits = request.source is rules.RunSource.REPLAY and request.replay_of_run_id is not None
    if version.trigger_config.get("attributes") and not inherits:
        bound = partial(bound_attributes, version.trigger_config, request.payload)
        attributes = filled_up(attributes, await evaluate_bounded(bound))
    return attributes or None


def _options(request: RunRequest, admission: Admission) -> JsonObject:
    if admission.refusal is None:
        return request.options
    return {**request.options, "refusal": admission.refusal}


LONGEST_KEY = 256
"""Characters of a key as it is stored; a longer key is stored as its digest."""

DISPLACED = "Replaced by a newer run."
"""The error of a run that the policy cancel_oldest ended."""

SHARED_KEY = "null"
"""The key of runs whose automation has no key expression, or whose expression gives null."""

_ASKED_FOR = frozenset(
    {
        rules.RunSource.MANUAL,
        rules.RunSource.FROM_NODE,
        rules.RunSource.REPLAY,
        rules.RunSource.AUTOMATION,
    }
)
"""Sources for which a refusal is raised as an error: a person or a run receives it."""


class Admissible(Protocol):
    """A request for a run, as far as admission asks about it."""

    @property
    def source(self) -> rules.RunSource: ...
    @property
    def payload(self) -> JsonObject: ...
    @property
    def options(self) -> JsonObject: ...
    @property
    def parent_run_id(self) -> Id | None: ...


FREE = Admission()
"""A run that needs no slot."""


def concurrency_of(trigger_config: JsonObject, request: Admissible) -> JsonObject | None:
    """The limits that hold for a run; tests have none."""
    if rules.is_test(request.source, request.options):
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
        refusal = rules.ConcurrencyKeyError(error.message)
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
            raise rules.SlotsTakenError(slot_detail(limits, key))
        return Admission(key, makes_run=False, skipped=True)
    callers = await _callers(work, actor.workspace_id, request.parent_run_id)
    if policy == "cancel_oldest":
        await _displace(work, actor, (automation_id, key), over, callers)
        return Admission(key)
    if over > 0 and await _hold_all(work, (automation_id, key), callers):
        raise rules.WaitsForItselfError
    return Admission(key, admitted=False)


async def _displace(
    work: UnitOfWork, actor: Actor, slot: Slot, count: int, callers: set[Id]
) -> None:
    """Cancel the runs that have held a slot longest. Raises DisplacesCallerError."""
    oldest = await slots.oldest(work, *slot, count)
    if not callers.isdisjoint(oldest):
        raise rules.DisplacesCallerError
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
    sa.select(_run.id, _run.parent_run_id)
    .where(
        _run.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _run.id == sa.bindparam("run_id", type_=sa.Uuid),
    )
    .cte("caller", recursive=True)
)
_above = automation_run.alias("above")
_CALLERS = PreparedStatement(
    sa.select(
        _first.union(
            sa.select(_above.c.id, _above.c.parent_run_id).where(
                _above.c.id == _first.c.parent_run_id
            )
        ).c.id
    )
)


async def _callers(work: UnitOfWork, workspace_id: Id, run_id: Id | None) -> set[Id]:
    """The run that waits for this one, the run that waits for that, and so on."""
    if run_id is None:
        return set()
    parameters = {"workspace_id": workspace_id, "run_id": run_id}
    return {row.id for row in await _CALLERS.rows(work, parameters)}
