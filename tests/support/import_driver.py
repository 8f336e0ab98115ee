"""Legacy import runs carried out in one process, stage after stage, with no Temporal between."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.legacy_imports import (
    BundleActivities,
    LegacyImportTransactions,
    NextStep,
    WorkspaceActivities,
)
from models.core.base import Id
from models.workspace.legacy_imports.executions import workflow_id
from models.workspace.legacy_imports.queries import entries_of, find_run
from models.workspace.legacy_imports.rules import ImportStage, StepKind
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.object_store import ObjectStore


class ReachedError(Exception):
    """A workspace of the run has come to the stage at which the test stops it."""


class ImportDriver:
    """Does what the workflows `LegacyImport` and `ImportWorkspace` do, by the same activities."""

    def __init__(self, database: Database, store: ObjectStore, keys: KeyRing) -> None:
        self._database = database
        self._transactions = LegacyImportTransactions(database, keys)
        self._bundles = BundleActivities(database, store)
        self._workspaces = WorkspaceActivities(database, store, keys)

    async def drive(self, run_id: Id, stop_at: ImportStage | None = None) -> str:
        """Work until a person has the next move, the run ends, or a workspace is at a stage.

        Gives the status of the run.
        """
        while True:
            async with self._database.reading() as work:
                run = await find_run(work, run_id)
            step = await self._transactions.advance(workflow_id(run))
            if step.kind in {StepKind.WAIT, StepKind.END}:
                return step.status
            with suppress(ReachedError):
                await self._do(run_id, step, stop_at)
                continue
            return step.status

    async def _do(self, run_id: Id, step: NextStep, stop_at: ImportStage | None) -> None:
        await self._stop(run_id, stop_at)
        match step.kind:
            case StepKind.VALIDATE:
                await _run(self._bundles.validate, str(run_id))
            case StepKind.COMPARE:
                await _run(self._bundles.compare, str(run_id))
            case _:
                for entry_id in step.entries:
                    while not (await _run(self._workspaces.work_on, entry_id)).done:
                        await self._stop(run_id, stop_at)
        await self._stop(run_id, stop_at)

    async def _stop(self, run_id: Id, stage: ImportStage | None) -> None:
        async with self._database.reading() as work:
            if any(one.stage == stage for one in await entries_of(work, run_id)):
                raise ReachedError


async def _run(activity: Callable[[str], Awaitable[Any]], subject_id: str) -> Any:
    return await ActivityEnvironment().run(activity, subject_id)
