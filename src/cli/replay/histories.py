"""Histories of executions: found in Temporal, fetched, and kept as files."""

import json
import logging
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecution, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from cli.console import StartError, reported
from cli.supervisor.state import no_platform
from runtime.clock import utc_now
from runtime.configuration.settings import TemporalSettings, load_temporal_settings
from runtime.ids import parse_id
from runtime.temporal.client import connect
from runtime.temporal.workflow_kinds import WorkflowKind

_PATIENCE = 5.0
"""Seconds until a Temporal that does not answer counts as away."""

_GONE = (
    "Execution {name} not found. It was never started, or its history has expired. List executions:"
    " temporal workflow list"
)


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution; without a Temporal run id, the newest of its workflow id."""

    workflow_id: str
    execution_id: str | None = None


async def temporal_of(state_dir: Path, address: str | None) -> Client:
    """Temporal as this machine's platform, the environment or the arguments name it.

    Raises TemporalUnreachableError, SettingsError.
    """
    return await connect(temporal_settings(state_dir, address), seconds=_PATIENCE)


def temporal_settings(state_dir: Path, address: str | None) -> TemporalSettings:
    """The same as settings. Raises SettingsError, StartError where nothing names a platform."""
    address = address or _published(state_dir)
    if not (address or os.environ.get("DATABASE_URL")):
        raise no_platform(state_dir, "set TEMPORAL_ADDRESS")
    return load_temporal_settings(**({"temporal_address": address} if address else {}))


async def choose_execution(client: Client, name: str, execution_id: str | None = None) -> Execution:
    """The execution of a workflow id, or of the id of a run, a job or other work.

    Raises HistoryUnavailableError.
    """
    subject = parse_id(name)
    candidates = (
        [name]
        if subject is None
        else [workflow_kind.workflow_id(subject) for workflow_kind in WorkflowKind]
    )
    for workflow_id in candidates:
        execution = Execution(workflow_id, execution_id)
        if await _exists(client, execution):
            return execution
    subject_name = name if execution_id is None else f"{name} ({execution_id})"
    raise HistoryUnavailableError(_GONE.format(name=subject_name))


async def fetch_history(client: Client, execution: Execution) -> WorkflowHistory:
    """The history of an execution. Raises HistoryUnavailableError."""
    handle = client.get_workflow_handle(execution.workflow_id, run_id=execution.execution_id)
    try:
        return await handle.fetch_history()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise HistoryUnavailableError(_GONE.format(name=execution.workflow_id)) from None


async def workflow_kind_of(
    client: Client, execution: Execution, *, children: bool
) -> list[WorkflowHistory]:
    """The history of an execution; with its children's, theirs, and what each continued as."""
    histories: list[WorkflowHistory] = []
    queue = [execution]
    while queue:
        history = await fetch_history(client, queue.pop(0))
        histories.append(history)
        if children:
            queue += followers(history)
    return histories


def followers(history: WorkflowHistory) -> list[Execution]:
    """The executions an execution started as its children or continued as."""
    executions = []
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            child = event.child_workflow_execution_started_event_attributes.workflow_execution
            executions.append(Execution(child.workflow_id, child.run_id))
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
            went_on = event.workflow_execution_continued_as_new_event_attributes
            executions.append(Execution(history.workflow_id, went_on.new_execution_run_id))
    return executions


async def recent_executions(
    client: Client, within: timedelta, workflow_type: str | None, limit: int | None
) -> AsyncIterator[WorkflowExecution]:
    """The open executions, and the ones that started or ended within this time, newest first.

    The order is that of Temporal's visibility store on SQL.
    """
    since = (utc_now() - within).isoformat()
    query = f"(ExecutionStatus = 'Running' OR StartTime >= '{since}' OR CloseTime >= '{since}')"
    if workflow_type is not None:
        query += f" AND WorkflowType = '{workflow_type}'"
    async for listed in client.list_workflows(query, limit=limit):
        yield listed


async def _exists(client: Client, execution: Execution) -> bool:
    handle = client.get_workflow_handle(execution.workflow_id, run_id=execution.execution_id)
    try:
        await handle.describe()
    except RPCError as error:
        if error.status in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
            return False
        raise
    return True


def _published(state_dir: Path) -> str | None:
    """The address that `workspace up` wrote down, if it runs on this directory."""
    try:
        published = json.loads((state_dir / "connection.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    address = published.get("temporalAddress") if isinstance(published, dict) else None
    return address if isinstance(address, str) else None


_FIRST = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
_PROCESS = re.compile(r"\d+@.+")
"""A process on a machine, as identities and sticky queues name it; no replay reads it."""
_DROPPED = {"stackTrace"}
"""Fields that hold paths of a machine; no replay reads them."""


def golden(history: WorkflowHistory) -> str:
    """The text of a history as temporal/histories keeps them."""
    return json.dumps(_scrubbed(json.loads(history.to_json())), indent=1, sort_keys=True) + "\n"


def read_history(path: Path) -> WorkflowHistory:
    """A history from a file, ours or one that Temporal's own tools wrote.

    Raises HistoryUnavailableError.
    """
    try:
        text = path.read_text(encoding="utf-8")
        history = WorkflowHistory.from_json(path.stem, text)
    except OSError as error:
        raise HistoryUnavailableError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError) as error:
        raise HistoryUnavailableError(f"{path} is not a history of an execution: {error}") from None
    if not history.events or history.events[0].event_type != _FIRST:
        raise HistoryUnavailableError(f"{path} does not have the start of a history.")
    return history


def _scrubbed(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items() if key not in _DROPPED}
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    return "recorder" if isinstance(value, str) and _PROCESS.fullmatch(value) else value


UNAVAILABLE = 2
"""Exit code: there is no history to judge, which says nothing about the code."""


class HistoryUnavailableError(Exception):
    """No history was found, or it cannot be read; the message says what to do."""

    retryable = False


@contextmanager
def reported_errors() -> Iterator[None]:
    """Say why there is no history to judge, and exit with code 2."""
    with reported(UNAVAILABLE):
        try:
            yield
        except HistoryUnavailableError as error:
            raise StartError(str(error)) from None
        except RPCError as error:
            raise StartError(f"Temporal refused the request: {error.message}") from None


@contextmanager
def sdk_logs_muted() -> Iterator[None]:
    """Keep what the SDK logs to itself: what a workflow raises is part of the verdict."""
    logger = logging.getLogger("temporalio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
