"""Replays every recent execution: a check to make before a deployment."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from temporalio.client import Client, WorkflowExecution, WorkflowHistory

from cli.replay.errors import HistoryUnavailableError, sdk_logs_muted
from cli.replay.executions import Execution, fetch, recent
from cli.replay.verdicts import Outcome, Verdict, execution_id, replay_all

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
    """The verdict on every recent execution; `progress` is told how many there are so far."""
    executions = recent(client, selection.within, selection.workflow_type, selection.limit)
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
            yield await fetch(client, Execution(listed.id, listed.run_id))
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
        listed.id, listed.run_id, listed.workflow_type, 0, None, Outcome.SKIPPED, "history is gone"
    )
