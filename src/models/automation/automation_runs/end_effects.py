"""Effects of the end of a run, in the transaction that writes it (decisions C7, D2 "Failure").

Whoever closes a run calls `apply`: the last transaction of its workflow, or the reconciler. So the
failure of a run whose execution died is handled like any other.
"""

from functools import partial
from typing import Protocol

import structlog
from sqlalchemy import select

from models.automation.automation_runs import slots
from models.automation.automation_runs.acceptance import RunRequest, accept, is_too_long
from models.automation.automation_runs.cancellation import cancel_children
from models.automation.automation_runs.rows import EndedRun
from models.automation.automation_runs.rules import RunSource, RunStatus, is_test
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations import runnable_versions
from models.automation.automations.joins import (
    AUTOMATION,
    GRAPH,
    VERSION,
    automation_of,
    graph_of,
    version_of,
)
from models.automation.circuit_breakers.commands import count_failure
from models.core.base import Id, JsonObject
from models.messages.events.commands import emit
from models.messages.events.rules import EventKind
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.ids import parse_id

log = structlog.get_logger()

FAILURES = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT})

_run = automation_run.c
ENDED = (
    _run.id,
    _run.workspace_id,
    _run.automation_id,
    _run.status,
    _run.source,
    _run.error,
    _run.options,
    _run.chain,
    _run.concurrency_key,
)
"""The columns of an ended run that `apply` needs."""


async def apply(work: UnitOfWork, run: EndedRun, node_id: str | None) -> None:
    """Cancel called runs, free the slot, handle a failure; `node_id` is the node that failed."""
    await cancel_children(work, run.workspace_id, run.id)
    if run.concurrency_key is not None:
        await slots.hand_on(work, run.automation_id, run.concurrency_key)
    if run.status in FAILURES:
        await _log_failure(work, run, node_id)
        if not is_test(run.source, run.options):
            await count_failure(work, run.workspace_id, run.automation_id)
        if answers_for_failures(run.source, run.options):
            await _fail(work, run, node_id)


def answers_for_failures(source: str, options: JsonObject) -> bool:
    """True when the failure of a run is handled and notified: of a test only on request."""
    return bool(options.get("triggerFailureAutomation", not is_test(source, options)))


def failure_run_id(run_id: Id) -> Id:
    """The run that handles the failure of a run, if there is one."""
    return derived_id(run_id, "failure")


async def _log_failure(work: UnitOfWork, run: EndedRun, node_id: str | None) -> None:
    """One line in the log, once the end is written; what the node said stands in its row alone."""
    code = await work.scalar(
        select(node_run.c.error_code)
        .where(
            node_run.c.workspace_id == run.workspace_id,
            node_run.c.run_id == run.id,
            node_run.c.node_id == node_id,
            node_run.c.error_code.is_not(None),
        )
        .limit(1)
    )
    line = partial(
        log.warning,
        "automation_run_failed",
        run_id=str(run.id),
        automation_id=str(run.automation_id),
        workspace_id=str(run.workspace_id),
        node_id=node_id,
        code=code or str(run.status),
    )
    work.after_commit.append(line)


async def _fail(work: UnitOfWork, run: EndedRun, node_id: str | None) -> None:
    row = await _failed_run(work, run.id)
    if is_test(run.source, run.options):
        await _notify_author(work, run, row)
    chain = (*run.chain, run.id)
    if run.source == RunSource.FAILURE or is_too_long(chain):
        return
    payload = {
        "automationId": str(run.automation_id),
        "runId": str(run.id),
        "nodeId": node_id,
        "error": run.error,
        "triggerPayload": row.trigger_payload,
    }
    handler_id = parse_id(row.failure_automation_id or "")
    handler = None
    if handler_id is not None:
        handler = await runnable_versions.live(work, run.workspace_id, handler_id)
    await emit(
        work,
        run.workspace_id,
        EventKind.AUTOMATION_FAILED,
        run.automation_id,
        payload,
        chain=chain,
        event_id=derived_id(run.id, EventKind.AUTOMATION_FAILED),
        answered_by=[] if handler is None else [handler.automation_id],
    )
    if handler is not None:
        actor = automation_actor(run.workspace_id, handler.automation_id)
        request = RunRequest(RunSource.FAILURE, payload, run_id=failure_run_id(run.id), chain=chain)
        await accept(work, actor, handler, request)


class _FailedRun(Protocol):
    trigger_payload: JsonObject
    label: str
    item_id: Id
    created_by_user_id: Id | None
    failure_automation_id: str | None


async def _failed_run(work: UnitOfWork, run_id: Id) -> _FailedRun:
    """The automation and the version of a failed run."""
    row = await work.first(
        select(
            _run.trigger_payload,
            AUTOMATION.label,
            AUTOMATION.item_id,
            VERSION.created_by_user_id,
            GRAPH.graph["failureAutomationId"].astext.label("failure_automation_id"),
        )
        .select_from(automation_run)
        .join(*automation_of(automation_run))
        .outerjoin(*version_of(automation_run))
        .outerjoin(*graph_of(automation_run))
        .where(_run.id == run_id),
        of=_FailedRun,
    )
    assert row is not None, "the transaction holds the run, which refers to its automation"
    return row


async def _notify_author(work: UnitOfWork, run: EndedRun, known: _FailedRun) -> None:
    """Notify the person who made the version that failed of a test; others are told by incident."""
    if known.created_by_user_id is None:
        return
    notice = Notice(
        kind=NotificationKind.AUTOMATION_FAILED,
        title=f"“{known.label}” failed",
        body=run.error or "",
        item_id=known.item_id,
        run_id=run.id,
        data={"automationId": str(run.automation_id), "runId": str(run.id)},
        key=f"automation_failed/{run.id}",
    )
    await notify(work, run.workspace_id, [known.created_by_user_id], notice)
