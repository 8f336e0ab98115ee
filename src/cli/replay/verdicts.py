"""The commands of a workflow: as a history recorded them, and as the code gives them."""

import asyncio
import json
import multiprocessing
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Any

from google.protobuf.json_format import MessageToDict
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.client import Client, WorkflowExecution, WorkflowHistory
from temporalio.converter import DefaultFailureConverter
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from cli.replay import histories as replay_histories
from cli.work_handlers.registry import WORKFLOWS
from runtime.temporal.executions import data_converter
from runtime.temporal.workflow_kinds import Queue
from workflows.runners import sandboxed_runner

_LOCAL_ACTIVITY, _PATCH = "core_local_activity", "core_patch"


@dataclass(frozen=True, slots=True)
class Step:
    """One command. `number` and `name` tell it from others of its kind."""

    kind: str
    number: str = ""
    name: str = ""
    summary: str = field(default="", compare=False)
    """The name a person gives it: the label of a node."""
    event_id: int = field(default=0, compare=False)

    def words(self) -> str:
        """The step as a sentence names it."""
        label = f" “{self.summary}”" if self.summary else ""
        return " ".join(part for part in (self.kind, self.name) if part) + label


def recorded_steps(history: WorkflowHistory) -> list[Step]:
    return [step for event in history.events if (step := _recorded(event)) is not None]


def given_steps(commands: Sequence[WorkflowCommand]) -> list[Step]:
    return [step for command in commands if (step := _given(command)) is not None]


def event_name(event: HistoryEvent) -> str:
    """`TimerStarted`, as Temporal's own tools call an event."""
    words = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").split("_")
    return "".join(word.capitalize() for word in words)


def _recorded(event: HistoryEvent) -> Step | None:
    attributes = MessageToDict(event).get(_attributes_of(event), {})
    shape = _RECORDED.get(event.event_type)
    summary = _text(event.user_metadata.summary)
    if event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED:
        return _marker(event, summary)
    if shape is None:
        return None
    kind, number, name = shape
    return Step(kind, _at(attributes, number), _at(attributes, name), summary, event.event_id)


def _marker(event: HistoryEvent, summary: str) -> Step | None:
    marker = event.marker_recorded_event_attributes
    data = {
        name: _json(detail.payloads[0])
        for name, detail in marker.details.items()
        if detail.payloads
    }
    if marker.marker_name == _LOCAL_ACTIVITY:
        about = data["data"]
        number, name = str(about["seq"]), about["activity_type"]
        return Step("local activity", number, name, summary, event.event_id)
    if marker.marker_name == _PATCH:
        about = data.get("patch-data") or data.get("patch_data") or {}
        return Step("patch", "", str(about.get("id", "")), summary, event.event_id)
    return Step("marker", "", marker.marker_name, summary, event.event_id)


def _given(command: WorkflowCommand) -> Step | None:
    variant = str(command.WhichOneof("variant"))
    shape = _GIVEN.get(variant)
    if shape is None:
        return None
    kind, number, name = shape
    content = getattr(command, variant)
    return Step(
        kind,
        str(getattr(content, number)) if number else "",
        str(getattr(content, name)) if name else "",
        _text(command.user_metadata.summary),
    )


def _attributes_of(event: HistoryEvent) -> str:
    name = str(event.WhichOneof("attributes"))
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _at(attributes: dict[str, Any], path: str) -> str:
    """The value at a dotted path, or nothing."""
    value: Any = attributes
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def _json(payload: Payload) -> Any:
    try:
        return json.loads(payload.data)
    except ValueError:
        return {}


def _text(payload: Payload) -> str:
    value = _json(payload) if payload.data else ""
    return value if isinstance(value, str) else ""


_RECORDED = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: ("activity", "activityId", "activityType.name"),
    EventType.EVENT_TYPE_TIMER_STARTED: ("timer", "timerId", ""),
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: (
        "child workflow",
        "workflowId",
        "workflowType.name",
    ),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: ("end as completed", "", ""),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: ("end as failed", "", ""),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: ("end as cancelled", "", ""),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: ("continue as new", "", ""),
}
"""Kind, and where the event says which: what core numbers commands by, and the type."""

_GIVEN = {
    "schedule_activity": ("activity", "seq", "activity_type"),
    "schedule_local_activity": ("local activity", "seq", "activity_type"),
    "start_timer": ("timer", "seq", ""),
    "start_child_workflow_execution": ("child workflow", "workflow_id", "workflow_type"),
    "set_patch_marker": ("patch", "", "patch_id"),
    "complete_workflow_execution": ("end as completed", "", ""),
    "fail_workflow_execution": ("end as failed", "", ""),
    "cancel_workflow_execution": ("end as cancelled", "", ""),
    "continue_as_new_workflow_execution": ("continue as new", "", ""),
}
"""The same of a command of the code."""


_ENDS = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: "completed",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: "failed",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: "timed out",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: "cancelled",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: "terminated",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: "continued as new",
}


class Outcome(StrEnum):
    REPLAYS = "replays"
    DIVERGES = "diverges"
    """The code gives other commands than the history holds."""
    RAISES = "raises"
    """The code raises where the history continues, or its type no longer exists."""
    SKIPPED = "skipped"
    """Not of this platform, or its history was deleted: this says nothing about the code."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one replay. `end` is None for an execution that is still open."""

    workflow_id: str
    execution_id: str
    workflow_type: str
    events: int
    end: str | None
    outcome: Outcome
    reason: str = ""
    """The message of the engine, where it did not continue."""

    @property
    def failed(self) -> bool:
        return self.outcome in {Outcome.DIVERGES, Outcome.RAISES}


REPLAY_CONVERTER = replace(data_converter, failure_converter_class=DefaultFailureConverter)
"""The converter of workers, but failures keep the whole exception for the developer who replays."""

FOREIGN = "not a workflow of this platform"

BUILD_ID = "replay"
"""Nothing asks for it. Without one, the SDK reads the code of every module to make it."""
KNOWN = frozenset(workflow.__name__ for workflow in WORKFLOWS)
"""The workflow types of this checkout, each called as its class is."""


@cache
def quiet_runtime() -> Runtime:
    """An engine that writes no log: what it would say is part of the verdict."""
    quiet = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=quiet)))


async def replay(history: WorkflowHistory) -> Verdict:
    return (await replay_all([history]))[0]


async def replay_all(histories: Sequence[WorkflowHistory]) -> list[Verdict]:
    """Replay in the sandbox, with the worker's data converter."""
    ours = [history for history in histories if not _is_foreign(history)]
    verdicts = [
        verdict(history, Outcome.SKIPPED, FOREIGN) for history in histories if _is_foreign(history)
    ]
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_runner=sandboxed_runner(),
        data_converter=REPLAY_CONVERTER,
        runtime=quiet_runtime(),
        build_id=BUILD_ID,
    )
    async with replayer.workflow_replay_iterator(_each(ours)) as results:
        verdicts += [judged(result.history, result.replay_failure) async for result in results]
    return verdicts


async def _each(histories: Sequence[WorkflowHistory]) -> AsyncIterator[WorkflowHistory]:
    for history in histories:
        yield history


def require_judged(verdicts: Sequence[Verdict]) -> None:
    """Raises HistoryUnavailableError when nothing was replayed: that proves nothing."""
    if all(verdict.outcome is Outcome.SKIPPED for verdict in verdicts):
        raise replay_histories.HistoryUnavailableError("Nothing to replay: no executions match.")


def _is_foreign(history: WorkflowHistory) -> bool:
    """True when another program's workers execute it, on queues that are not ours."""
    started = history.events[0].workflow_execution_started_event_attributes
    ours = started.workflow_type.name in KNOWN or started.task_queue.name in set(Queue)
    return not ours


def execution_id(history: WorkflowHistory) -> str:
    """Temporal's run id; after a reset the first event is still that of the execution before it."""
    events = reversed(history.events)
    resets = (event.workflow_task_failed_event_attributes.new_run_id for event in events)
    started = history.events[0].workflow_execution_started_event_attributes
    return next(filter(None, resets), started.original_execution_run_id)


def judged(history: WorkflowHistory, failure: Exception | None) -> Verdict:
    if failure is None:
        return verdict(history, Outcome.REPLAYS)
    diverged = isinstance(failure, NondeterminismError)
    return verdict(history, Outcome.DIVERGES if diverged else Outcome.RAISES, str(failure))


def verdict(history: WorkflowHistory, outcome: Outcome, reason: str = "") -> Verdict:
    """A verdict with what the history says of itself."""
    first, last = history.events[0], history.events[-1]
    started = first.workflow_execution_started_event_attributes
    return Verdict(
        workflow_id=started.workflow_id or history.workflow_id,
        execution_id=execution_id(history),
        workflow_type=started.workflow_type.name or event_name(first),
        events=last.event_id,
        end=_ENDS.get(last.event_type),
        outcome=outcome,
        reason=reason,
    )


BATCH = 25
"""Histories that share a replayer: preparing one costs as much as some replays."""


@dataclass(frozen=True, slots=True)
class Recent:
    """The executions to replay, and the number of processes that replay them."""

    within: timedelta
    workflow_type: str | None = None
    limit: int | None = None
    parallel: int = 1


async def replay_recent(
    client: Client, selection: Recent, progress: Callable[[int], None]
) -> list[Verdict]:
    """The verdict on every recent execution; `progress` is called with their number so far."""
    executions = replay_histories.recent_executions(
        client, selection.within, selection.workflow_type, selection.limit
    )
    listed = [execution async for execution in executions]
    return await replay_listed(client, listed, selection.parallel, progress)


async def replay_listed(
    client: Client,
    listed: Sequence[WorkflowExecution],
    parallel: int,
    progress: Callable[[int], None],
) -> list[Verdict]:
    """The verdict on each of these executions, by this number of processes."""
    verdicts: list[Verdict] = []
    room = asyncio.Semaphore(parallel)

    async def judge(batch: list[WorkflowExecution], pool: ProcessPoolExecutor | None) -> None:
        async with room:
            verdicts.extend(await _judge(client, batch, pool))
            progress(len(verdicts))

    with _processes(parallel) if parallel > 1 else nullcontext() as pool:
        async with asyncio.TaskGroup() as tasks:
            for start in range(0, len(listed), BATCH):
                tasks.create_task(judge(list(islice(listed, start, start + BATCH)), pool))
    return verdicts


async def _judge(
    client: Client, batch: list[WorkflowExecution], pool: ProcessPoolExecutor | None
) -> list[Verdict]:
    histories = [history async for history in _histories(client, batch)]
    fetched = {(item.workflow_id, execution_id(item)) for item in histories}
    gone = [_gone(item) for item in batch if (item.id, item.run_id) not in fetched]
    if pool is None:
        return [*gone, *await replay_all(histories)]
    texts = [(history.workflow_id, history.to_json()) for history in histories]
    loop = asyncio.get_running_loop()
    return [*gone, *await loop.run_in_executor(pool, replay_texts, texts)]


async def _histories(
    client: Client, batch: list[WorkflowExecution]
) -> AsyncIterator[WorkflowHistory]:
    for listed in batch:
        try:
            yield await replay_histories.fetch_history(
                client, replay_histories.Execution(listed.id, listed.run_id)
            )
        except replay_histories.HistoryUnavailableError:
            # Retention removed it between the list and the question.
            continue


def replay_texts(texts: list[tuple[str, str]]) -> list[Verdict]:
    """The same in a process of its own; histories travel as JSON."""
    histories = [WorkflowHistory.from_json(name, text) for name, text in texts]
    with replay_histories.sdk_logs_muted():
        return asyncio.run(replay_all(histories))


def _processes(number: int) -> ProcessPoolExecutor:
    # The SDK's own threads do not survive a fork.
    return ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"))


def _gone(listed: WorkflowExecution) -> Verdict:
    return Verdict(
        listed.id,
        listed.run_id,
        listed.workflow_type,
        0,
        None,
        Outcome.SKIPPED,
        "history not found",
    )
