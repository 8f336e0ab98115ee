"""Replays of one history, or of every recent one, against the code of this checkout."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import cache
from itertools import islice

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecution, WorkflowHistory
from temporalio.converter import DefaultFailureConverter
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from cli.families.registry import WORKFLOWS
from cli.replay.histories import (
    Execution,
    HistoryUnavailableError,
    fetch_history,
    recent_executions,
    sdk_logs_muted,
)
from cli.replay.steps import event_name
from runtime.temporal.executions import data_converter
from runtime.temporal.families import Queue
from workflows.runners import sandboxed_runner

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
        raise HistoryUnavailableError("Nothing to replay: no executions match.")


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
    executions = recent_executions(
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
            yield await fetch_history(client, Execution(listed.id, listed.run_id))
        except HistoryUnavailableError:
            # Retention removed it between the list and the question.
            continue


def replay_texts(texts: list[tuple[str, str]]) -> list[Verdict]:
    """The same in a process of its own; histories travel as JSON."""
    histories = [WorkflowHistory.from_json(name, text) for name, text in texts]
    with sdk_logs_muted():
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
