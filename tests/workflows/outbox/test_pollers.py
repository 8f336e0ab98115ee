"""Pollers take turns while something is due for them, and only then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import ColumnElement, delete, exists
from typing_extensions import override

from activities.pollers import DueLook, Poller
from runtime.database import Database
from runtime.ids import new_id
from runtime.temporal.outbox import Intent, append, outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.patience import eventually

pytestmark = pytest.mark.takes(seconds=10)


class Taker(Poller):
    """Takes the intents of one kind out of the outbox."""

    def __init__(self, database: Database, intent: Intent, *, prompt: bool = True) -> None:
        super().__init__(database)
        self.prompt = prompt  # type: ignore[misc]  # Kinds say it once; here each taker does.
        self.due = exists().where(outbox.c.intent == intent.value)  # type: ignore[misc]
        self.intent = intent
        self.turns = 0
        self.taken = 0

    @override
    async def turn(self) -> bool:
        self.turns += 1
        mine: ColumnElement[bool] = outbox.c.intent == self.intent.value
        async with self._database.transaction() as work:
            rows = await work.rows(delete(outbox).where(mine).returning(outbox.c.id))
        self.taken += len(rows)
        return bool(rows)


async def intend(database: Database, intent: Intent) -> None:
    async with database.transaction() as work:
        await append(
            work, intent=intent, workflow_kind=WorkflowKind.AUTOMATION_RUN, workspace_id=new_id(),
            subject_id=new_id(),
        )  # fmt: skip


@asynccontextmanager
async def looking(database: Database, *pollers: Taker) -> AsyncIterator[DueLook]:
    look = DueLook(database, pollers)
    tasks = [asyncio.create_task(one.run()) for one in (look, *pollers)]
    yield look
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_poller_takes_turns_only_while_something_is_due_for_it(quiet: Database) -> None:
    busy, idle = Taker(quiet, Intent.START), Taker(quiet, Intent.CANCEL)
    await intend(quiet, Intent.START)
    async with looking(quiet, busy, idle):
        await eventually(lambda: asyncio.sleep(0, busy.taken == 1))
        await intend(quiet, Intent.START)
        await eventually(lambda: asyncio.sleep(0, busy.taken == 2))
    assert idle.turns == 0


async def test_a_notification_is_for_prompt_pollers_alone(
    quiet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.pollers.POLL_SECONDS", 3_600)
    prompt, late = Taker(quiet, Intent.START), Taker(quiet, Intent.CANCEL, prompt=False)
    await intend(quiet, Intent.START)
    async with looking(quiet, prompt, late) as look:
        await eventually(lambda: asyncio.sleep(0, prompt.taken == 1))
        await intend(quiet, Intent.CANCEL)
        await intend(quiet, Intent.START)
        look.wake()
        await eventually(lambda: asyncio.sleep(0, prompt.taken == 2))
    assert late.turns == 0


@pytest.mark.parametrize("trouble", [psycopg.OperationalError("gone"), MemoryError()])
async def test_no_trouble_ends_the_look(
    quiet: Database, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    monkeypatch.setattr("activities.pollers.POLL_SECONDS", 0.01)
    troubles = iter([trouble])

    @asynccontextmanager
    async def failing() -> AsyncIterator[Any]:
        for one in troubles:
            raise one
        async with Database.statement(quiet) as work:
            yield work

    monkeypatch.setattr(quiet, "statement", failing)
    taker = Taker(quiet, Intent.START)
    await intend(quiet, Intent.START)
    async with looking(quiet, taker):
        await eventually(lambda: asyncio.sleep(0, taker.taken == 1))
