"""The intents that start runs: a run just accepted, and runs that waited for a slot."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import ARRAY, Uuid, bindparam, func, select

from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.joins import AUTOMATION, VERSION, automation_of, version_of
from models.core.base import Id
from models.core.pauses import resting
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.prepared_statement import PreparedStatement

ADMITTED = "admitted"
"""The signal to an execution that its run has a slot."""

_AWAITED = frozenset(
    {
        RunSource.TEST,
        RunSource.MANUAL,
        RunSource.FROM_NODE,
        RunSource.REPLAY,
        RunSource.BUTTON,
    }
)
"""The sources whose runs a person waits for."""


class StartedVersion(Protocol):
    """The version that a run executes, as far as Temporal is told of it."""

    automation_id: Id
    label: str
    version: int


def start_intent(
    workspace_id: Id,
    run_id: Id,
    version: StartedVersion,
    source: RunSource,
    attributes: Mapping[str, str] | None,
    *,
    in_bulk: bool = False,
) -> outbox.IntentArguments:
    """The intent that starts a run of a version."""
    return {
        "intent": outbox.Intent.START,
        "family": Family.AUTOMATION_RUN,
        "workspace_id": workspace_id,
        "subject_id": run_id,
        "request": start_request(version, source, attributes, in_bulk=in_bulk),
    }


def start_request(
    version: StartedVersion,
    source: RunSource,
    attributes: Mapping[str, str] | None,
    *,
    in_bulk: bool = False,
) -> outbox.StartRequest:
    """The facts of a run that Temporal gets at its start, and operators see."""
    request: outbox.StartRequest = {
        "summary": summary(version.label, version.version, source),
        "resourceId": str(version.automation_id),
        "source": source,
        "weight": outbox.AWAITED if source in _AWAITED and not in_bulk else 1,
    }
    if attributes:
        request["attributes"] = dict(attributes)
    return request


def summary(label: str, version: int, source: RunSource) -> str:
    """The text operators read on the run in the Temporal UI; at most 200 bytes (ecosystem 2.3)."""
    tail = f" · v{version} · {source}"
    room = 200 - len(tail.encode())
    return label.encode()[:room].decode(errors="ignore") + tail


class _AcceptedRun(StartedVersion, Protocol):
    id: Id
    workspace_id: Id
    source: str
    attributes: Mapping[str, str] | None
    parent_run_id: Id | None
    status: str
    created_at: datetime


_run = automation_run.c
_ACCEPTED = PreparedStatement(
    select(
        _run.id,
        _run.workspace_id,
        _run.automation_id,
        _run.source,
        _run.attributes,
        _run.parent_run_id,
        _run.status,
        _run.created_at,
        AUTOMATION.label,
        VERSION.version,
    )
    .select_from(automation_run)
    .join(*automation_of(automation_run))
    .join(*version_of(automation_run))
    .where(_run.id == func.any(bindparam("run_ids", type_=ARRAY(Uuid))))
    .order_by(_run.created_at, _run.id),
    _AcceptedRun,
)


async def accepted_start_request(work: UnitOfWork, run_id: Id) -> outbox.StartRequest | None:
    """`start_request` of a run accepted earlier; None when there is none of this id."""
    for row in await _ACCEPTED.rows(work, {"run_ids": [run_id]}):
        return start_request(row, RunSource(row.source), row.attributes)
    return None


async def append_starts(work: UnitOfWork, run_ids: Sequence[Id]) -> None:
    """Start runs that were accepted earlier and waited for a slot; under a pause they rest.

    A run that another run waits for was started by that one, so it is only signalled that it has
    its slot. The run of a schedule is started and signalled: its fire may have started it already.
    """
    if not run_ids:
        return
    for row in await _ACCEPTED.rows(work, {"run_ids": list(run_ids)}):
        source = RunSource(row.source)
        if row.parent_run_id is None:
            intent = start_intent(row.workspace_id, row.id, row, source, row.attributes)
            await _append(work, row, intent)
        if row.parent_run_id is not None or source is RunSource.SCHEDULE:
            await _append(work, row, admitted_intent(row.workspace_id, row.id))


async def _append(work: UnitOfWork, row: _AcceptedRun, intent: outbox.IntentArguments) -> None:
    """Append an intent, or let it rest; that of a run which has ended tells its execution so."""
    pausable_ids = [row.automation_id, row.workspace_id]
    if row.status != RunStatus.QUEUED:
        pausable_ids = []
    await resting.append(work, pausable_ids, row.created_at, **intent)


async def append_restart(work: UnitOfWork, run_id: Id, restarts: int) -> None:
    """Start a run anew that has begun before, whoever waits for it; see `StartRequest`."""
    for row in await _ACCEPTED.rows(work, {"run_ids": [run_id]}):
        source = RunSource(row.source)
        intent = start_intent(row.workspace_id, row.id, row, source, row.attributes)
        request = start_request(row, source, row.attributes)
        intent["request"] = {**request, "restarts": restarts}
        await outbox.append(work, **intent)


def admitted_intent(workspace_id: Id, run_id: Id) -> outbox.IntentArguments:
    """The signal to the execution of a run that it may begin."""
    return {
        "intent": outbox.Intent.SIGNAL,
        "family": Family.AUTOMATION_RUN,
        "workspace_id": workspace_id,
        "subject_id": run_id,
        "request": {
            "workflowId": Family.AUTOMATION_RUN.workflow_id(run_id),
            "signal": ADMITTED,
            "arguments": [],
        },
    }
