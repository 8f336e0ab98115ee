"""Runs that others call and wait for: their answers, suspended callers, deadlocks.

A run is one Temporal execution, and one more for every chunk of a long loop. An execution is
suspended while it only waits: for time, for a response, or for executions below it. The run has the
status `waiting` while its own execution and all those below it are suspended. The activities of a
run call `suspend_execution` and `resume_execution`.

A run keeps its slot while it waits for the runs it calls, and those may need slots of their own. So
automations that call each other can hold what the other needs. Admission cannot see this deadlock,
because the slots of other keys change later. The reconciler calls `find_deadlocked` and
`refuse_deadlocked`.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs import acceptance, execution, rules, slots
from models.automation.automation_runs.rules import OPEN_RUN, NodeError, RunSource, RunStatus
from models.automation.automation_runs.run_header import RunHeader, first_response
from models.automation.automation_runs.tables import (
    AutomationRun,
    automation_run,
    node_run,
    suspended_execution,
)
from models.automation.automations import runnable_versions
from models.automation.automations.queries import AUTOMATION, VERSION, automation_of, version_of
from models.automation.automations.rules.triggers.configs import check_payload
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.inbox import rules as inbox_rules
from models.automation.inbox.store import keep
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from runtime.database import UnitOfWork, Work
from runtime.derived_ids import derived_id
from runtime.errors import PlatformError, RunError, ValidationError
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import StartRequest
from runtime.temporal.workflow_kinds import WorkflowKind

CALLABLE = (TriggerKind.AUTOMATION_CALLED, TriggerKind.MANUAL)
"""Triggers of automations that another one can call."""

INPUT_LIMIT = 1024 * 1024
"""Bytes of a run's payload as JSON (interface.md#limits)."""

ENDED_OTHERWISE = {
    RunStatus.FAILED: "called_run_failed",
    RunStatus.CANCELLED: "called_run_cancelled",
    RunStatus.TIMED_OUT: "called_run_timed_out",
}
"""The code of a node whose called run did not succeed."""


@dataclass(frozen=True, slots=True)
class Call:
    """A node that calls an automation. With `waits`, its run starts and awaits the called run."""

    caller: RunHeader
    node_id: str
    scope_key: str
    automation_id: Id
    payload: JsonObject
    waits: bool
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> Id:
        """The id of the called run: the same each time the node asks for it."""
        return called_run_id(self.caller.run_id, self.node_id, self.scope_key)

    @property
    def chain(self) -> tuple[Id, ...]:
        return (*self.caller.chain, self.caller.run_id)

    @property
    def is_too_deep(self) -> bool:
        """True when the chain of runs would be too long."""
        return acceptance.is_too_long(self.chain)


def called_run_id(run_id: Id, node_id: str, scope_key: str) -> Id:
    return derived_id(run_id, node_id, scope_key, "call")


class NotCallableError(NodeError):
    """An automation takes no such call; `judgement` says why, of one that is there."""

    def __init__(
        self, automation_id: Id, code: str, message: str, judgement: inbox_rules.Judgement | None
    ) -> None:
        super().__init__(code, message)
        self.automation_id = automation_id
        self.judgement = judgement


_OUTCOMES: Mapping[type[PlatformError], inbox_rules.EventOutcome] = {
    rules.ConcurrencyKeyError: inbox_rules.EventOutcome.INVALID,
    rules.SlotsTakenError: inbox_rules.EventOutcome.SKIPPED,
    ValidationError: inbox_rules.EventOutcome.INVALID,
}
"""The outcomes of calls that an automation refuses; of other refusals it is `not_allowed`."""


async def accept_called(
    work: UnitOfWork, actor: Actor, version: RunnableVersion, request: acceptance.RunRequest
) -> acceptance.Accepted:
    """Accept a run that another one, or an action, asks for.

    Raises NotCallableError for a payload that the automation refuses, and when its concurrency
    forbids the run.
    """
    try:
        check_payload(version.trigger_config, request.payload)
        return await acceptance.accept_live(work, actor, version, request)
    except (ValidationError, RunError) as error:
        outcome = _OUTCOMES.get(type(error), inbox_rules.EventOutcome.NOT_ALLOWED)
        slot = error.slot if isinstance(error, rules.SlotsTakenError) else {}
        raise refused_call(
            version.automation_id, error.code, error.message, outcome, slot
        ) from None


def refused_call(
    automation_id: Id,
    code: str,
    message: str,
    outcome: inbox_rules.EventOutcome,
    detail: JsonObject | None = None,
) -> NotCallableError:
    """The refusal of an automation that runs, which the inbox shows with its message."""
    detail = {**(detail or {}), "message": inbox_rules.shortened(message)}
    judgement = inbox_rules.Judgement(outcome, detail=detail)
    return NotCallableError(automation_id, code, message, judgement)


async def accept_call(work: UnitOfWork, call: Call) -> StartRequest:
    """Accept the run; the request that starts it. Repeating it changes nothing.

    Raises NotCallableError, also for a payload that the called automation refuses, and when its
    concurrency forbids the run.
    """
    earlier = await slots.accepted_start_request(work, call.run_id)
    if earlier is not None:
        return earlier
    caller = call.caller
    version = await runnable_versions.live(work, caller.workspace_id, call.automation_id)
    if version is None:
        _, reason = await runnable_versions.dormant(work, caller.workspace_id, call.automation_id)
        message = "The called automation was not found, or is archived, unpublished or disabled."
        dormant = inbox_rules.Judgement.of_dormant(reason)
        raise NotCallableError(call.automation_id, "not_runnable", message, dormant)
    kind = version.trigger_config["kind"]
    if kind not in CALLABLE:
        message = f"An automation with the trigger {kind} cannot be called."
        outcome = inbox_rules.EventOutcome.NOT_ALLOWED
        raise refused_call(call.automation_id, "not_callable", message, outcome)
    if len(json.dumps(call.payload, ensure_ascii=False).encode("utf-8", "replace")) > INPUT_LIMIT:
        message = "The input of the called automation exceeds 1 MiB."
        outcome = inbox_rules.EventOutcome.TOO_LARGE
        raise refused_call(call.automation_id, "input_too_large", message, outcome)
    request = acceptance.RunRequest(
        RunSource.AUTOMATION,
        call.payload,
        attributes=call.attributes,
        run_id=call.run_id,
        parent_run_id=caller.run_id if call.waits else None,
        chain=call.chain,
        started_by_caller=call.waits,
    )
    accepted = await accept_called(work, caller.actor, version, request)
    await keep_call(work, call, accepted.judgement)
    return slots.start_request(version, RunSource.AUTOMATION, accepted.attributes)


async def keep_call(work: UnitOfWork, call: Call, judgement: inbox_rules.Judgement) -> None:
    """Keep a call and what became of it, for the automation that is called."""
    caller = call.caller
    event = call_event(caller.workspace_id, caller.automation_id, call.run_id, call.payload)
    await keep(work, event, {call.automation_id: judgement})


def call_event(
    workspace_id: Id, caller_id: Id, run_id: Id, payload: JsonObject
) -> inbox_rules.Received:
    """The event of a call by an automation or an action, which has its id from the called run."""
    event_id = derived_id(run_id, "event")
    return inbox_rules.Received(
        event_id,
        workspace_id,
        inbox_rules.EventSource.CALL,
        caller_id,
        inbox_rules.masked_payload(payload),
    )


async def notify_call_loop(work: UnitOfWork, call: Call) -> None:
    """Notify the person who made the calling version that its calls have no end."""
    caller = call.caller
    row = await work.first(
        sa.select(AUTOMATION.label, AUTOMATION.item_id, VERSION.created_by_user_id)
        .select_from(automation_run)
        .join(*automation_of(automation_run))
        .join(*version_of(automation_run))
        .where(automation_run.c.id == caller.run_id)
    )
    if row is None or row.created_by_user_id is None:
        return
    notice = Notice(
        kind=NotificationKind.AUTOMATION_LOOP,
        title=f"“{row.label}” was called in a loop",
        body=acceptance.TOO_LONG,
        item_id=row.item_id,
        run_id=caller.run_id,
        data={"automationId": str(caller.automation_id), "runId": str(caller.run_id)},
        key=f"automation_loop/{call.run_id}",
    )
    await notify(work, caller.workspace_id, [row.created_by_user_id], notice)


async def called_run_end(work: UnitOfWork, run_id: Id) -> AutomationRun | None:
    """Status, output and error of a run that has ended; None while it is open."""
    run = automation_run.c
    return await work.first(
        sa.select(run.status, run.output, run.error).where(
            run.id == run_id, run.status.not_in(OPEN_RUN)
        ),
        of=AutomationRun,
    )


async def called_run_outcome(
    work: UnitOfWork, workspace_id: Id, run_id: Id
) -> AutomationRun | None:
    """Status, output and error of a run, open or not; None when it is gone."""
    run = automation_run.c
    return await work.first(
        sa.select(run.status, run.output, run.error).where(
            run.workspace_id == workspace_id, run.id == run_id
        ),
        of=AutomationRun,
    )


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """The state of a run; `response` is the output of its respond node, once one has run."""

    status: RunStatus
    output: JsonObject | None
    response: JsonObject | None

    @property
    def ended(self) -> bool:
        return self.status not in OPEN_RUN


_ANSWER = PreparedStatement(
    sa.select(automation_run.c.status, automation_run.c.output, first_response(node_run)).where(
        automation_run.c.workspace_id == sa.bindparam("workspace_id"),
        automation_run.c.id == sa.bindparam("run_id"),
    )
)


async def run_answer(work: UnitOfWork, workspace_id: Id, run_id: Id) -> RunAnswer | None:
    """The answer of a run so far; None when the run has been deleted."""
    async with work.for_one_statement() as single:
        row = await _ANSWER.first(single, {"workspace_id": workspace_id, "run_id": run_id})
    return None if row is None else RunAnswer(RunStatus(row[0]), row[1], row[2])


_run = automation_run.c
_suspended = suspended_execution.c


def execution_key(run_id: Id, workflow_id: str) -> str:
    """The key of an execution in its run.

    The chunks of a loop run one after the other and share a key: the workflow id of a chunk
    without its number.
    """
    own = WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    return own if workflow_id == own else workflow_id.rpartition("/")[0]


async def suspend_execution(
    work: UnitOfWork, run_id: Id, key: str, child_keys: Sequence[str]
) -> bool:
    """Note that an execution is suspended, given that those in `child_keys` are, too.

    Returns False for a run that has ended. The run's row is locked, so that two executions that
    are suspended at the same time see each other.
    """
    run = sa.select(_run.workspace_id).where(
        _run.id == run_id, _run.status.in_([RunStatus.RUNNING, RunStatus.WAITING])
    )
    workspace_id = await work.scalar(run.with_for_update())
    if workspace_id is None:
        return False
    own = {"execution_key": key, "run_id": run_id, "workspace_id": workspace_id}
    children = {"child_keys": list(child_keys)}
    await work.execute(
        upsert(suspended_execution)
        .values(**own, **children)
        .on_conflict_do_update(index_elements=["execution_key"], set_=children)
    )
    await work.execute(
        sa.update(automation_run)
        .where(_run.id == run_id, _run.status == RunStatus.RUNNING, _all_suspended(run_id))
        .values(status=RunStatus.WAITING)
    )
    return True


async def forget_executions(work: UnitOfWork, run_id: Id) -> None:
    """Forget the executions of a run that begins anew."""
    await work.execute(sa.delete(suspended_execution).where(_suspended.run_id == run_id))


def _all_suspended(run_id: Id) -> sa.ColumnElement[bool]:
    """True when the run's own execution and all below it are suspended."""
    top = sa.select(sa.literal(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)).label("id")).cte(
        "tree", recursive=True
    )
    children = sa.select(sa.func.unnest(_suspended.child_keys)).where(
        _suspended.execution_key == top.c.id
    )
    tree = top.union(children)
    active = sa.select(tree.c.id).where(
        tree.c.id.not_in(sa.select(_suspended.execution_key).where(_suspended.run_id == run_id))
    )
    return ~active.exists()


_RESUME = PreparedStatement(
    sa.update(automation_run)
    .where(
        _run.id == sa.bindparam("run_id"),
        _run.status == RunStatus.WAITING.value,
    )
    .values(status=RunStatus.RUNNING.value)
    .add_cte(
        sa.delete(suspended_execution)
        .where(_suspended.execution_key == sa.bindparam("execution_key", type_=sa.Text))
        .cte("resumed")
    )
)


async def resume_execution(work: Work, run_id: Id, key: str) -> None:
    """Note that an execution continues; its run is no longer `waiting`."""
    await _RESUME.execute(work, {"run_id": run_id, "execution_key": key})


DEADLOCKED = (
    "Deadlock: the runs that hold the slots this run needs wait for slots that its callers hold."
    " Raise the concurrency limit of one of the automations, or call it without waiting."
)

SlotKey = tuple[Id, str]
"""An automation, and the key of its concurrency."""

_IS_OPEN = _run.status.in_(OPEN_RUN)


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A called run that waits for a slot."""

    id: Id
    key: SlotKey
    created_at: datetime


def runs_to_refuse(
    waiting_runs: Collection[WaitingRun],
    holders: Mapping[SlotKey, Collection[Id]],
    callers: Mapping[Id, Id],
) -> list[WaitingRun]:
    """The runs to fail so that all others can continue: the newest of each deadlock.

    `holders` are the runs that hold the slots of a key. `callers` maps a called run to its caller.
    """
    waiting, refused = set(waiting_runs), []
    holding = {run for runs in holders.values() for run in runs}
    while stuck := _stuck(waiting, holders, callers):
        deadlocked = [run for run in stuck if holding.intersection(_callers_above(run.id, callers))]
        last = max(deadlocked, key=lambda run: (run.created_at, run.id))
        waiting.remove(last)
        refused.append(last)
    return refused


def _stuck(
    waiting: Collection[WaitingRun],
    holders: Mapping[SlotKey, Collection[Id]],
    callers: Mapping[Id, Id],
) -> set[WaitingRun]:
    """The runs that never get a slot, because every holder of one waits for one of them."""
    stuck = set(waiting)
    while True:
        kept = {above for run in stuck for above in _callers_above(run.id, callers)}
        still = {run for run in stuck if holders.get(run.key) and kept.issuperset(holders[run.key])}
        if still == stuck:
            return stuck
        stuck = still


def _callers_above(run_id: Id, callers: Mapping[Id, Id]) -> Iterator[Id]:
    """The caller of a run, its caller, and so on."""
    caller = callers.get(run_id)
    while caller is not None:
        yield caller
        caller = callers.get(caller)


async def find_deadlocked(work: UnitOfWork) -> Sequence[WaitingRun]:
    """The runs to fail, in a snapshot of all open runs."""
    limited = await work.rows(
        sa.select(
            _run.id, _run.automation_id, _run.concurrency_key, _run.admitted_at, _run.created_at
        ).where(_IS_OPEN, _run.concurrency_key.is_not(None))
    )
    called = await work.rows(
        sa.select(_run.id, _run.parent_run_id).where(_IS_OPEN, _run.parent_run_id.is_not(None))
    )
    callers: dict[Id, Id] = {row.id: row.parent_run_id for row in called}
    holders: dict[SlotKey, list[Id]] = {}
    waiting_runs = []
    for row in limited:
        key = (row.automation_id, row.concurrency_key)
        if row.admitted_at is not None:
            holders.setdefault(key, []).append(row.id)
        elif row.id in callers:
            waiting_runs.append(WaitingRun(row.id, key, row.created_at))
    return runs_to_refuse(waiting_runs, holders, callers)


async def refuse_deadlocked(work: UnitOfWork, run: WaitingRun) -> bool:
    """Fail a run that still waits for its slot, and let its execution end."""
    await slots.lock(work, *run.key)
    waits = sa.select(_run.id).where(
        _run.id == run.id, _run.status == RunStatus.QUEUED, _run.admitted_at.is_(None)
    )
    if await work.first(waits) is None:
        return False
    await execution.abandon(work, run.id, RunStatus.FAILED, DEADLOCKED)
    await slots.append_starts(work, [run.id])
    return True
