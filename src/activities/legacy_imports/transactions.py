"""The requests of a run's execution to its rows, each in one transaction."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity

from activities.endings import CLOSED
from models.core.base import Id
from models.workspace.legacy_imports.commands import entries, steps
from models.workspace.legacy_imports.rules import StepKind
from runtime.crypto import KeyRing
from runtime.database import Database


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step of an execution: its kind, the status of the run, and the ids of entries.

    `execution` is the id of the execution, below which the executions of entries stand.
    """

    kind: str
    status: str
    execution: str = ""
    entries: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Trouble:
    """An entry or a run, and why its work came to an unplanned end."""

    subject_id: str
    reason: str
    cancelled: bool = False


class LegacyImportTransactions:
    """Local activities of the workflow `LegacyImport`."""

    def __init__(self, database: Database, keys: KeyRing) -> None:
        self._database = database
        self._keys = keys

    def all(self) -> list[Callable[..., Any]]:
        """The activities a worker registers."""
        return [self.advance, self.fail_workspace, self.close]

    @activity.defn(name="advance_legacy_import")
    async def advance(self, workflow_id: str) -> NextStep:
        """Bring a run as far as its rows say, and give what comes next."""
        _, run_id, *execution = workflow_id.split("/")
        async with self._database.transaction() as work:
            step = await steps.advance(work, Id(run_id), "/".join(execution), self._keys)
        if step is None:
            return NextStep(StepKind.END, CLOSED)
        found = [str(one) for one in step.entries]
        return NextStep(step.kind, step.status, workflow_id, found)

    @activity.defn(name="fail_import_workspace")
    async def fail_workspace(self, trouble: Trouble) -> None:
        """The execution of a workspace is lost: what it was doing has failed."""
        async with self._database.transaction() as work:
            await entries.fail_entry(work, Id(trouble.subject_id), trouble.reason)

    @activity.defn(name="close_legacy_import")
    async def close(self, trouble: Trouble) -> str:
        """Close a run whose execution cannot go on; gives CLOSED."""
        async with self._database.transaction() as work:
            await steps.abandon(
                work, Id(trouble.subject_id), trouble.reason, cancelled=trouble.cancelled
            )
        return CLOSED
