"""Removing runs that ended long enough ago, with what was kept of their bundles."""

from contextlib import suppress
from datetime import datetime

from sqlalchemy import delete, select

from models.workspace.bundles.id_map import forget_run
from models.workspace.bundles.unpacking import load_contents, remove_unpacked
from models.workspace.legacy_imports.rules import RUN_LIFECYCLE
from models.workspace.legacy_imports.tables import LegacyImportRun, legacy_import_run
from runtime.database import Database
from runtime.object_store import ObjectStore

_run = legacy_import_run.c


async def purge_legacy_imports(database: Database, store: ObjectStore, before: datetime) -> int:
    """Remove one run that ended before a moment; 0 when there is none. What it imported stays.

    Objects go before the row that names them. A bundle that was named by its key is not ours.
    """
    async with database.reading() as work:
        old = (
            select(legacy_import_run)
            .where(_run.completed_at < before, _run.status.in_(sorted(RUN_LIFECYCLE.at_rest)))
            .order_by(_run.completed_at)
            .limit(1)
        )
        run = await work.first(old, of=LegacyImportRun)
    if run is None:
        return 0
    with suppress(FileNotFoundError):
        # A broken bundle was never taken apart as a whole.
        await remove_unpacked(store, run.id, await load_contents(store, run.id))
    if run.uploaded:
        await store.delete(run.bundle_object_key)
    async with database.transaction() as work:
        await forget_run(work, run.id)
        await work.execute(delete(legacy_import_run).where(_run.id == run.id))
    return 1
