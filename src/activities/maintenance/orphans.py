"""Objects of the store that are not needed any more, below every prefix.

What works with objects removes them when it ends. A process that dies, an execution that is
terminated, and the purge of a workspace leave some. The key of each says which row it is for.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from typing import TypeAlias

from activities.data_source_runs.inputs import PAGES
from activities.jobs.exports import PARTS
from models.content.files.commands import OBJECTS as FILES
from models.content.files.commands import UPLOAD_TIME, keys_of_files
from models.core.base import Id
from models.messages.jobs.store import open_jobs
from models.sources.data_source_runs.lifecycle import open_runs
from models.workspace.bundles.unpacking import UNPACKED
from models.workspace.legacy_imports.commands import OBJECTS as BUNDLES
from models.workspace.legacy_imports.queries import known_runs, named_bundles
from runtime.database import Database, UnitOfWork
from runtime.object_store import PROBES, ObjectStore

_Needed: TypeAlias = Callable[[UnitOfWork, Collection[str]], Awaitable[Collection[str]]]
"""The keys among these that something needs."""
_NeededIds: TypeAlias = Callable[[UnitOfWork, Collection[Id]], Awaitable[Collection[Id]]]


async def _by_id(
    needed: _NeededIds, place: int, work: UnitOfWork, object_keys: Collection[str]
) -> Collection[str]:
    """The keys whose part at a place is the id of something that is needed.

    A key of another form is not ours, so it stays.
    """
    keys_by_id: dict[Id, list[str]] = {}
    foreign_keys: list[str] = []
    for key in object_keys:
        try:
            keys_by_id.setdefault(Id(key.split("/")[place]), []).append(key)
        except (IndexError, ValueError):
            foreign_keys.append(key)
    found = await needed(work, keys_by_id) if keys_by_id else ()
    return {*foreign_keys, *(key for each in found for key in keys_by_id[each])}


async def _none(_work: UnitOfWork, _keys: Collection[str]) -> Collection[str]:
    return ()


_NEEDED: Mapping[str, _Needed] = {
    FILES: keys_of_files,
    PAGES: partial(_by_id, open_runs, 2),
    PARTS: partial(_by_id, open_jobs, 2),
    # A run that ended may be tried again with them until its row is purged.
    UNPACKED: partial(_by_id, known_runs, 1),
    BUNDLES: named_bundles,
    PROBES: _none,
}
"""The objects that are needed, by the prefix of their keys."""


async def sweep_orphans(database: Database, store: ObjectStore, now: datetime) -> int:
    """Remove objects that are a day old and belong to nothing; returns their number.

    Such an object is what is left of an upload or of work whose process died, or whose commit had
    no answer.
    """
    count = 0
    before = now - UPLOAD_TIME
    await store.drop_unfinished(before)
    for prefix, needed in _NEEDED.items():
        async for object_keys in store.older_than(prefix, before):
            if not object_keys:
                continue
            async with database.reading() as work:
                orphans = {*object_keys} - {*await needed(work, object_keys)}
            for key in orphans:
                await store.delete(key)
            count += len(orphans)
    return count
