"""The sweep as a workflow: every kind in turn to its end, even if others fail."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import Worker

from activities.maintenance.sweeps import Expired
from runtime.temporal.workflow_kinds import Queue
from tests.support.patience import ENOUGH, eventually
from tests.support.temporal import time_skipping_server
from workflows.runners import sandboxed_runner
from workflows.schedules import ROUNDS, Retention


@dataclass
class Store:
    """The number of batches of each kind, each of ten rows; a kind of None cannot be removed."""

    batches: dict[Expired, int | None] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    hold: asyncio.Event = field(default_factory=asyncio.Event)

    @activity.defn(name="purge_expired")
    async def purge(self, what: Expired) -> int:
        self.calls.append(what)
        await self.hold.wait()
        left = self.batches.get(what, 0)
        if left is None:
            raise RuntimeError("the database says no")
        self.batches[what] = left - 1
        return 10 if left > 0 else 0

    @activity.defn(name="remove_orphaned_objects")
    async def remove_orphans(self) -> int:
        self.calls.append("orphans")
        return 3


@dataclass(frozen=True)
class Sweeping:
    client: Client
    store: Store

    async def start(self) -> WorkflowHandle[Retention, dict[str, int]]:
        return await self.client.start_workflow(
            Retention.run, id=f"retention/{uuid4()}", task_queue=Queue.AUTOMATION
        )


@pytest_asyncio.fixture(scope="module")
async def client() -> AsyncIterator[Client]:
    """A server on which waiting for another attempt takes no time."""
    async with time_skipping_server() as environment:
        yield environment.client


@pytest_asyncio.fixture
async def sweeping(client: Client) -> AsyncIterator[Sweeping]:
    store = Store()
    store.hold.set()
    async with (
        Worker(
            client,
            task_queue=Queue.AUTOMATION,
            workflows=[Retention],
            workflow_runner=sandboxed_runner(),
        ),
        Worker(client, task_queue=Queue.BULK, activities=[store.purge, store.remove_orphans]),
    ):
        yield Sweeping(client, store)


@pytest.mark.long
async def test_each_kind_is_removed_to_its_end(sweeping: Sweeping) -> None:
    store = sweeping.store
    store.batches = {Expired.FILES: 2, Expired.RUNS: 3}
    removed = await (await sweeping.start()).result()
    assert removed == {**dict.fromkeys(map(str, Expired), 0), "files": 20, "runs": 30, "orphans": 3}
    calls = Counter(store.calls)
    assert calls == {**dict.fromkeys(map(str, Expired), 1), "files": 3, "runs": 4, "orphans": 1}
    assert store.calls[: len(Expired)] == list(Expired)
    assert store.calls[-1] == "orphans"


async def test_files_are_looked_for_before_their_items() -> None:
    kinds = list(Expired)
    assert kinds.index(Expired.FILES) < kinds.index(Expired.ITEMS)


@pytest.mark.long
async def test_a_sweep_continues_until_nothing_is_left(sweeping: Sweeping) -> None:
    batches = 2 * ROUNDS + 5
    sweeping.store.batches = {Expired.RUNS: batches, Expired.ITEMS: 2}
    handle = await sweeping.start()
    assert await handle.result() == {
        **dict.fromkeys(map(str, Expired), 0),
        "runs": 10 * batches,
        "items": 20,
        "orphans": 3,
    }
    assert sweeping.store.calls.count("orphans") == 1
    first = await handle.describe()
    assert first.run_id != handle.first_execution_run_id, "each execution is bounded"


@pytest.mark.long
async def test_a_kind_that_cannot_be_removed_blocks_no_other(sweeping: Sweeping) -> None:
    store = sweeping.store
    store.batches = {Expired.ITEMS: None, Expired.RECORDS: 2}
    with pytest.raises(WorkflowFailureError) as failed:
        await (await sweeping.start()).result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.message == "Not removed: items"
    calls = Counter(store.calls)
    assert calls["items"] > 1
    assert calls["records"] == 3
    assert calls["runs"] == calls["orphans"] == 1


async def test_a_cancelled_sweep_ends_at_once(sweeping: Sweeping) -> None:
    store = sweeping.store
    store.hold.clear()
    handle = await sweeping.start()

    async def begun() -> bool:
        return bool(store.calls)

    await eventually(begun)
    await handle.cancel()
    try:
        with pytest.raises(WorkflowFailureError) as cancelled:
            async with asyncio.timeout(ENOUGH):
                await handle.result()
    finally:
        store.hold.set()
    assert isinstance(cancelled.value.cause, CancelledError)
    assert store.calls == ["files"]
