"""The log of a workspace: a reader that remembers one number misses nothing, in any order of
commits.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import insert, update

from models.messages.workspace_events.log import EventRow, append_event, events_between, head
from models.messages.workspace_events.rules import EventType
from models.workspace.legacy_imports.queries import legacy_import_run
from models.workspace.legacy_imports.queries import legacy_import_workspace as table
from runtime.database import Database, UnitOfWork
from runtime.ids import new_id
from tests.support.spaces import Space


async def tell(work: UnitOfWork, space: Space, word: str) -> None:
    """Write one event."""
    await append_event(
        work, space.actor.principal, space.id, EventType.IMPORT_STAGE, {"word": word}
    )


async def read(database: Database, space: Space, after: int = 0) -> tuple[list[EventRow], int]:
    """What a reader is given behind a number, and the number it remembers."""
    async with database.reading() as work:
        until = await head(work, space.id)
        rows = await events_between(
            work,
            space.id,
            after,
            until,
            types=[EventType.IMPORT_STAGE],
            user_ids=[],
            most=1000,
        )
    return list(rows), max(after, until)


async def words(database: Database, space: Space) -> list[str]:
    rows, _ = await read(database, space)
    return [row.data["word"] for row in rows]


@asynccontextmanager
async def telling(space: Space, word: str) -> AsyncIterator[UnitOfWork]:
    """A transaction that has written an event, and commits when the block ends."""
    async with space.database.transaction() as work:
        await tell(work, space, word)
        yield work


async def test_a_later_commit_is_not_skipped(space: Space, foreign: Space) -> None:
    database = space.database
    async with telling(space, "first"):
        async with telling(space, "second"):
            pass
        async with telling(foreign, "theirs"):
            pass
        assert await words(database, space) == [], "the first may still come"
        assert await words(database, foreign) == ["theirs"], "no workspace waits for another"
    assert await words(database, space) == ["first", "second"]


async def test_a_cancelled_writer_holds_up_no_other(space: Space) -> None:
    async def give_up() -> None:
        async with telling(space, "never"):
            async with telling(space, "second"):
                pass
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        await give_up()
    assert await words(space.database, space) == ["second"]


async def test_one_that_began_to_write_later_holds_up_to_its_place(space: Space) -> None:
    async with telling(space, "first"):
        pass
    async with telling(space, "second") as work:
        async with telling(space, "fourth"):
            pass
        await tell(work, space, "fifth")
        assert await words(space.database, space) == ["first"]
    assert await words(space.database, space) == ["first", "second", "fourth", "fifth"]


async def test_stages_of_an_import_are_reported(space: Space) -> None:
    async with space.database.transaction() as work:
        run: dict[str, Any] = {"id": new_id(), "created_at": work.now, "updated_at": work.now}
        asked = {"bundle_object_key": "k", "bundle_checksum": "c", "status": "importing"}
        asks = {**asked, "mode": "apply", "created_by_user_id": space.user_id, "uploaded": False}
        await work.execute(insert(legacy_import_run).values(**run, **asks))
        entry = {**run, "id": new_id(), "run_id": run["id"], "position": 0, "creates": True}
        states = {"lifecycle_state": "hidden", "rollback_state": "none", "stage": "ready"}
        source = {"source_workspace_id": "1", "source_name": "One", "selected": True}
        target = {"target_workspace_id": space.id}
        await work.execute(insert(table).values(**entry, **states, **source, **target))
    async with space.database.transaction() as work:
        await work.execute(update(table).where(table.c.id == entry["id"]).values(stage="records"))
    (told,), _ = await read(space.database, space)
    assert (told.data["stage"], told.data["entryId"]) == ("records", str(entry["id"]))


async def test_a_reader_that_follows_misses_nothing(space: Space) -> None:
    chance, writers, each = random.Random(7), 6, 12  # noqa: S311

    async def write(name: int) -> None:
        for number in range(each):
            async with telling(space, f"{name}-{number}") as work:
                await asyncio.sleep(chance.random() / 200)
                await tell(work, space, f"{name}-{number}+")

    seen: list[EventRow] = []
    writing = [asyncio.create_task(write(name)) for name in range(writers)]
    after = 0
    while len(seen) < 2 * writers * each:
        rows, after = await read(space.database, space, after)
        seen += rows
        await asyncio.sleep(0)
        if all(task.done() for task in writing) and not rows:
            break
    await asyncio.gather(*writing)
    rows, _ = await read(space.database, space, after)
    found = [row.data["word"] for row in [*seen, *rows]]
    assert len(found) == len(set(found)) == 2 * writers * each
    for name in range(writers):
        own = [word for word in found if word.startswith(f"{name}-")]
        expected = [f"{name}-{number}{end}" for number in range(each) for end in ("", "+")]
        assert own == expected
