"""Accepting a run: the row and the intent to start it, in one statement (promise I2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy import bindparam

from models.automation.automation_runs import slots
from models.automation.automation_runs.admission import FREE, Admission, admit, concurrency_of
from models.automation.automation_runs.canaries import drawn_version
from models.automation.automation_runs.lifecycle import AUTOMATION_RUNS
from models.automation.automation_runs.rules import RunSource, RunStatus, is_test
from models.automation.automation_runs.start_intents import admitted_intent, start_intent
from models.automation.automation_runs.tables import AutomationRun, automation_run
from models.automation.automations.rules.attributes import bound_attributes, filled_up
from models.automation.automations.runnable_versions import RunnableVersion
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.pauses.resting import append_or_rest, pausable
from runtime import outbox
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.prepared_statement import PreparedStatement

MAX_CHAIN = 8
"""Runs in a chain in which each leads to the next (decisions C3, C7)."""
TOO_LONG = f"{MAX_CHAIN} runs led to one another; the next one is not started."


def is_too_long(chain: Sequence[Id]) -> bool:
    """True when a chain of runs is so long that the next run is not accepted."""
    return len(chain) >= MAX_CHAIN


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run about to be accepted.

    A `run_id` derived from what asked for the run makes a repeated request harmless. With
    `started_by_caller` the outbox gets no intent: a workflow starts the run as its child. For a run
    `in_bulk`, one of many, nobody waits: it has no precedence over the others of its line.
    """

    source: RunSource
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

    `skipped` says that there is no run, because all slots were taken; `rests` that it waits for
    the end of a pause.
    """

    run_id: Id
    created: bool
    skipped: bool = False
    rests: bool = False
    columns: JsonObject | None = None
    """The columns of the run that was inserted."""
    node_count: int = 0
    """Nodes of the version that it executes."""

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

_RUN = AUTOMATION_RUNS.accepting(
    {
        "id": bindparam("subject_id"),
        "workspace_id": bindparam("workspace_id"),
        **{name: bindparam(name, type_=automation_run.c[name].type) for name in _RUN_COLUMNS},
    }
)
_ACCEPT = PreparedStatement(
    outbox.append_for_each(_RUN.returning(automation_run.c.id).cte("accepted"))
)
"""A run and its start, written together, unless there is a run of this id already."""
_ACCEPT_PAUSABLE = PreparedStatement(
    append_or_rest(_RUN.returning(automation_run.c.id).cte("accepted"))
)
"""As `_ACCEPT`, but what comes in under a pause rests."""
_ACCEPT_CALLED = PreparedStatement(
    append_or_rest(_RUN.returning(automation_run.c.id).cte("accepted"), joins=False)
)
"""A run that a workflow starts, and is told to begin after a pause."""
_ACCEPT_ALONE = PreparedStatement(_RUN)


async def accept(
    work: UnitOfWork, actor: Actor, version: RunnableVersion, request: RunRequest
) -> Accepted:
    """Accept a run of a version, or of another one that a canary draws for it.

    It starts when this transaction commits, or when it gets a slot.
    Raises RunError when a person or a run asked for it and the automation's concurrency forbids it.
    """
    run_id = request.run_id or new_id()
    version, further = await drawn_version(work, actor, version, request.source, run_id)
    if further:
        request = replace(request, options={**request.options, **further})
    limits = concurrency_of(version.trigger_config, request)
    if limits is None:
        return await _write(work, actor, version, request, run_id, FREE)
    admission = await admit(work, actor, version.automation_id, request, run_id, limits)
    if not admission.makes_run:
        return Accepted(run_id, created=False, skipped=admission.skipped)
    accepted = await _write(work, actor, version, request, run_id, admission)
    if admission.key is not None and not admission.admitted:
        # Nobody else can have freed a slot meanwhile, but a raised limit may have left some free.
        await slots.hand_on(work, version.automation_id, admission.key)
    return accepted


async def _write(  # the parts of a run
    work: UnitOfWork,
    actor: Actor,
    version: RunnableVersion,
    request: RunRequest,
    run_id: Id,
    admission: Admission,
) -> Accepted:
    attributes = await _attributes(version, request)
    run = {
        "automation_id": version.automation_id,
        "automation_version_id": version.version_id,
        "graph_checksum": version.checksum,
        "status": RunStatus.QUEUED,
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
    own = {"subject_id": run_id, "workspace_id": actor.workspace_id}
    if not admission.admitted:
        created, rests = await _ACCEPT_ALONE.execute(work, {**own, **run}) > 0, False
    else:
        created, rests = await _insert(work, version, request, {**own, **run})
    columns = {"id": run_id, "workspace_id": actor.workspace_id, **run} if created else None
    return Accepted(run_id, created, rests=rests, columns=columns, node_count=version.node_count)


async def _insert(
    work: UnitOfWork, version: RunnableVersion, request: RunRequest, run: JsonObject
) -> tuple[bool, bool]:
    """Insert a run that has what it needs: whether it is new, and rests. A test never does."""
    workspace_id, run_id = run["workspace_id"], run["subject_id"]
    test = is_test(request.source, request.options)
    if request.started_by_caller:
        if test:
            return await _ACCEPT_ALONE.execute(work, run) > 0, False
        statement, intent = _ACCEPT_CALLED, admitted_intent(workspace_id, run_id)
    else:
        statement = _ACCEPT_PAUSABLE
        intent = start_intent(
            workspace_id,
            run_id,
            version,
            request.source,
            run["attributes"],
            in_bulk=request.in_bulk,
        )
    values = {**outbox.intent_values(work, **intent), **run}
    if test:
        return await _ACCEPT.execute(work, values) > 0, False
    subjects = pausable(work, [version.automation_id, workspace_id], run["created_at"])
    row = await statement.first(work, {**values, **subjects})
    return row is not None, row is not None and row.pause_id is not None


async def _attributes(version: RunnableVersion, request: RunRequest) -> dict[str, str] | None:
    """The attributes of a run; a replay inherits all of them."""
    attributes = dict(request.attributes)
    if version.trigger_config.get("attributes") and request.source is not RunSource.REPLAY:
        bound = partial(bound_attributes, version.trigger_config, request.payload)
        attributes = filled_up(attributes, await evaluate_bounded(bound))
    return attributes or None


def _options(request: RunRequest, admission: Admission) -> JsonObject:
    if admission.refusal is None:
        return request.options
    return {**request.options, "refusal": admission.refusal}
