"""Reading a bundle: whole, to check it and take it apart, and once more before it is applied."""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import Any

from temporalio import activity

from activities.heartbeats import heartbeats
from models.core.base import Id
from models.workspace.bundles.errors import BundleError, Fault
from models.workspace.bundles.unpacking import unpack
from models.workspace.legacy_imports.commands import entries, steps
from models.workspace.legacy_imports.queries import find_run
from models.workspace.legacy_imports.rows import ImportRunRow
from runtime.database import Database
from runtime.fault_injection import FaultPoint, inject_fault
from runtime.object_store import ObjectStore


class BundleActivities:
    """The work on the bundle of a run as a whole."""

    def __init__(self, database: Database, store: ObjectStore) -> None:
        self._database = database
        self._store = store

    def all(self) -> list[Callable[..., Any]]:
        """The activities a worker registers."""
        return [self.validate, self.compare]

    @activity.defn(name="validate_bundle")
    async def validate(self, run_id: str) -> None:
        """Check a bundle, take it apart, and record what is in it; a broken one fails the run.

        Safe to repeat: it writes the same objects again.
        """
        run = await self._run(run_id)
        counts = {"bytes": 0}
        async with heartbeats(counts):
            try:
                with tempfile.TemporaryFile() as file:  # written aside
                    async for piece in self._pieces(run, counts):
                        await asyncio.to_thread(file.write, piece)
                    contents = await unpack(self._store, file, counts["bytes"], run.id)
            except BundleError as error:
                await self._fail(run.id, error.message)
                return
            if not contents.manifest.workspaces:
                await self._fail(run.id, "The bundle has no workspace.")
                return
            inject_fault(FaultPoint.IMPORT_UNPACKED, run.id)
            async with self._database.transaction() as work:
                await entries.record_manifest(work, run.id, contents.manifest)

    @activity.defn(name="compare_bundle")
    async def compare(self, run_id: str) -> None:
        """See that the bundle is still the one that was approved; else the run fails."""
        run = await self._run(run_id)
        counts = {"bytes": 0}
        async with heartbeats(counts):
            try:
                async for _ in self._pieces(run, counts):
                    pass
            except BundleError as error:
                await self._fail(run.id, error.message)
                return
            async with self._database.transaction() as work:
                await entries.record_comparison(work, run.id)

    async def _pieces(self, run: ImportRunRow, counts: dict[str, int]) -> AsyncIterator[bytes]:
        """The bytes of a bundle, counted. Raises BundleError when their checksum differs."""
        digest = hashlib.sha256()
        try:
            async for piece in self._store.get(run.bundle_object_key):
                digest.update(piece)
                counts["bytes"] += len(piece)
                yield piece
        except FileNotFoundError:
            raise BundleError(
                Fault.MISSING_FILE, f"There is no object {run.bundle_object_key} in the store."
            ) from None
        if digest.hexdigest() != run.bundle_checksum:
            difference = (
                "has changed since it was approved" if run.approved_at else "is another one"
            )
            raise BundleError(
                Fault.CHANGED if run.approved_at else Fault.CHECKSUM,
                f"The bundle {difference}: its checksum is {digest.hexdigest()}.",
            )

    async def _run(self, run_id: str) -> ImportRunRow:
        async with self._database.reading() as work:
            return await find_run(work, Id(run_id))

    async def _fail(self, run_id: Id, reason: str) -> None:
        async with self._database.transaction() as work:
            await steps.fail_run(work, run_id, [reason])
