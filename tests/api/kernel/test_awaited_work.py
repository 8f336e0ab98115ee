"""Requests that wait for durable work look at its row when they are notified, and else seldom."""

import asyncio
import time
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from api.kernel import awaited_work
from api.kernel.awaited_work import AwaitedWork, Wait
from api.kernel.request import preferred_wait
from runtime.database import Database
from runtime.postgresql.notifier import ANSWER_CHANNEL, Notifier, listen
from tests.support.patience import ENOUGH, eventually

LONG = 10 * ENOUGH


@pytest.fixture(autouse=True)
def _no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaited_work, "FALLBACK_SECONDS", LONG)


async def test_a_notification_wakes_the_requests_that_wait_for_that_work() -> None:
    awaited, work_id = AwaitedWork(), uuid4()
    awaited.wake_all()
    waits = [Wait(awaited, work_id) for _ in range(2)]
    other = asyncio.create_task(Wait(awaited, uuid4()).pause(0, LONG))
    pauses = [asyncio.create_task(wait.pause(0, LONG)) for wait in waits]
    await asyncio.sleep(0)
    awaited.wake(f"{uuid4()} {work_id}")
    await asyncio.wait_for(asyncio.gather(*pauses), ENOUGH)
    assert not other.done()
    other.cancel()


async def test_a_notification_before_the_pause_counts() -> None:
    awaited, work_id = AwaitedWork(), uuid4()
    awaited.wake_all()
    wait = Wait(awaited, work_id)
    awaited.wake(str(work_id))
    await asyncio.wait_for(wait.pause(0, LONG), ENOUGH)


async def test_each_pause_waits_for_a_notification_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(awaited_work, "FALLBACK_SECONDS", 0.2)
    awaited, work_id = AwaitedWork(), uuid4()
    awaited.wake_all()
    wait = Wait(awaited, work_id)
    awaited.wake(str(work_id))
    await wait.pause(0, LONG)
    started = time.monotonic()
    await wait.pause(0, LONG)
    assert time.monotonic() - started >= 0.19


async def test_ends_lost_without_a_listener_are_read_from_the_rows() -> None:
    awaited = AwaitedWork()
    wait = Wait(awaited, uuid4())
    awaited.wake_all()
    await asyncio.wait_for(wait.pause(60, LONG), ENOUGH)


async def test_work_without_a_waiting_request_leaves_nothing() -> None:
    awaited = AwaitedWork()
    Wait(awaited, uuid4())
    assert not awaited._ends


async def _end_and_fail(database: Database) -> None:
    async with database.transaction() as work:
        work.answered.add(uuid4())
        await work.execute(text("SELECT 1 / 0"))


async def test_the_end_of_work_reaches_those_who_listen(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred and fifty ids take more than one notification."""
    heard: set[str] = set()
    listening = asyncio.Event()
    channels = {ANSWER_CHANNEL: lambda ids: heard.update(ids.split())}
    notifier = Notifier(database_url)
    tasks = [
        asyncio.create_task(listen(database_url, channels, listening.set)),
        asyncio.create_task(notifier.run()),
    ]
    await asyncio.wait_for(listening.wait(), ENOUGH)
    ended: list[UUID] = [uuid4() for _ in range(250)]
    monkeypatch.setattr(database, "notify_waiters", notifier.notify_waiters)
    async with database.transaction() as work:
        work.answered.update(ended)
    with pytest.raises(DBAPIError):
        await _end_and_fail(database)

    async def all_heard() -> bool:
        return len(heard) >= 250

    await eventually(all_heard, what="the ends of 250 pieces of work")
    assert heard == {str(work_id) for work_id in ended}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_wait_that_a_caller_asked_for_ends_when_the_process_stops() -> None:
    awaited = AwaitedWork()
    awaited.wake_all()
    patient, other = awaited.patient_wait(uuid4(), "a"), Wait(awaited, uuid4())
    assert patient is not None
    pause = asyncio.create_task(patient.pause(0, LONG))
    await asyncio.sleep(0)
    awaited.close()
    await asyncio.wait_for(pause, ENOUGH)
    await asyncio.wait_for(patient.pause(0, LONG), ENOUGH)
    assert (patient.is_over, other.is_over) == (True, False)


def test_a_workspace_waits_so_often_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaited_work, "MOST_PATIENT", 2)
    awaited = AwaitedWork()
    waits = [awaited.patient_wait(uuid4(), "a") for _ in range(3)]
    assert [wait is None for wait in waits] == [False, False, True]
    assert awaited.patient_wait(uuid4(), "b") is not None
    del waits[0]
    assert awaited.patient_wait(uuid4(), "a") is not None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (["wait=30"], 30),
        (["Wait = 30"], 30),
        (['wait="30"'], 30),
        (["respond-async, wait=5; unit=s"], 5),
        (["respond-async", "wait=5"], 5),
        (["wait=5, wait=9"], 5),
        (["wait=5", "wait=9"], 5),
        (["wait=600"], 60),
        ([f"wait={'9' * 5000}"], 60),
        (["wait=0005"], 5),
        (['note="a, wait=7", wait=3'], 3),
        (["wait=0"], None),
        *[([bad], None) for bad in ("wait", "wait=", "wait=-1", "wait=1.5", "wait=1e1", "wait=x")],
        *[([bad], None) for bad in ('wait="3', "wait=٣", "await=3", "handling=lenient", "", ",;=")],
        ([], None),
    ],
)
def test_an_invalid_preference_is_ignored(headers: list[str], seconds: int | None) -> None:
    assert preferred_wait([one.encode("utf-8") for one in headers]) == seconds
