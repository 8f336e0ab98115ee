"""Rows that go into a workspace that is there are out of sight until all of them are shown."""

from dataclasses import replace

from sqlalchemy import func, select, text

from models.content.items.commands import ITEMS
from models.content.items.joins import item
from models.core.bundles import ImportTarget
from models.workspace.bundles.applying import plan_chunk, show
from runtime.database import UnitOfWork
from tests.support.bundles import apply_lines, target_of
from tests.support.legacy_imports import folders
from tests.support.spaces import Space

CHUNK = 40
_TOUCHED = text(
    "SELECT n_tup_ins AS added, n_tup_upd + n_tup_del AS changed,"
    " seq_tup_read + idx_tup_fetch AS read"
    " FROM pg_stat_xact_user_tables WHERE relname = 'item'"
)


async def _apply(space: Space, target: ImportTarget, lines: list[bytes]) -> tuple[int, int, int]:
    """Apply a chunk of items; the numbers of added, changed and read rows of their table."""
    async with space.database.transaction() as work:
        await plan_chunk(work, target, [ITEMS], lines)
    async with space.database.transaction() as work:
        # Where a table is small, reading all of it is no sign of a loop over it.
        await work.execute(text("SET LOCAL enable_seqscan = off"))
        # What the session has not reported of transactions before is counted too.
        (before,) = await work.rows(_TOUCHED)
        await apply_lines(work, target, [ITEMS], lines)
        (after,) = await work.rows(_TOUCHED)
    added, changed, read = (now - then for now, then in zip(after, before, strict=True))
    return added, changed, read


async def _seen(work: UnitOfWork, space: Space) -> int:
    count: int = await work.scalar(
        select(func.count()).where(item.c.workspace_id == space.id, item.c.deleted_at.is_(None))
    )
    return count


async def test_a_chunk_hides_its_own_rows_and_touches_no_others(space: Space) -> None:
    target = replace(target_of(space), hidden=True)
    async with space.database.reading() as work:
        before = await _seen(work, space)
    chunks = [folders(CHUNK) for _ in range(4)]
    touched = [await _apply(space, target, lines) for lines in chunks]
    # Four of five have one above them, which is looked for.
    assert [(added, changed) for added, changed, _ in touched] == [(CHUNK, 0)] * len(chunks)
    assert max(read for _, _, read in touched) <= CHUNK, touched
    assert (await _apply(space, target, chunks[0]))[:2] == (0, 0), "once more changes nothing"
    async with space.database.transaction() as work:
        assert await _seen(work, space) == before
        await show(work, target)
        assert await _seen(work, space) == before + CHUNK * len(chunks)
