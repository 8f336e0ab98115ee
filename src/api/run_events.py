"""The stream of events that the page of a run follows, and the links in a run's `metadata`."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Protocol

import anyio
from fastapi.sse import format_sse_event

from api.kernel.responses import as_refusal
from api.kernel.services import Services
from models.automation import run_overviews
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.shapes import AutomationRunShape
from models.core.base import Id, JsonObject, Shape
from models.core.page_addresses import run_page
from models.sources.data_source_runs.overviews import state
from models.sources.data_source_runs.rules import OPEN_RUN as OPEN_SOURCE_RUN
from models.sources.data_source_runs.shapes import SourceRunState
from models.workspace.legacy_imports.queries import LegacyImport
from models.workspace.legacy_imports.queries import get_run as get_legacy_import
from models.workspace.legacy_imports.rules import RUN_LIFECYCLE as LEGACY_IMPORT_LIFECYCLE
from runtime.configuration.settings import Settings
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.temporal.workflow_kinds import temporal_ui_url


def temporal_link(settings: Settings, workflow_id: str) -> JsonObject:
    """The newest execution of a workflow id, and where the Temporal UI shows it if there is one."""
    if settings.temporal_ui_url is None:
        return {"workflowId": workflow_id}
    url = temporal_ui_url(settings.temporal_ui_url, settings.temporal_namespace, workflow_id)
    return {"workflowId": workflow_id, "uiUrl": url}


def add_links(settings: Settings, run: AutomationRunShape) -> None:
    """Add both to the metadata of an automation run."""
    run.metadata["temporal"] = temporal_link(settings, run.metadata["temporalWorkflowId"])
    run.metadata["pageUrl"] = run_page(run.id)


POLL_SECONDS = 0.25
PAUSE_PER_READ = 10
"""A pause is at least this number of times as long as the read before it."""
LONGEST_PAUSE_SECONDS = 5.0
"""Also after a very slow read: the page must not stay without news."""
LIFETIME_SECONDS = 60.0
"""Then the client reconnects and its rights are checked again. For at most this long a revoked key
still gets events."""


class Watch(Protocol):
    """A run as one client has seen it so far."""

    over: bool
    """The run has ended."""

    async def change(self, work: UnitOfWork) -> Shape | None:
        """The news since what was sent so far; None when there is none.

        Raises `NotFoundError` for a run that is gone.
        """


class AutomationRunWatch:
    """A run of an automation: its state, and the nodes that changed."""

    def __init__(self, workspace_id: Id, run_id: Id) -> None:
        self.over = False
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._loops: Collection[str] | None = None
        self._run: run_overviews.RunState | None = None
        self._nodes: dict[str, run_overviews.NodeProgress] = {}

    async def change(self, work: UnitOfWork) -> run_overviews.RunChange | None:
        if self._loops is None:
            self._loops = await run_overviews.loops_of(work, self._workspace_id, self._run_id)
        now = await run_overviews.state(work, self._workspace_id, self._run_id, self._loops)
        if now is None:
            raise NotFoundError("run")
        self.over = now.run.status not in OPEN_RUN
        return self.changes(now)

    def changes(self, now: run_overviews.RunChange) -> run_overviews.RunChange | None:
        """The news since that; None when there is none."""
        changed = [node for node in now.nodes if self._nodes.get(node.node_id) != node]
        if not changed and now.run == self._run:
            return None
        self._run = now.run
        self._nodes |= {node.node_id: node for node in changed}
        return run_overviews.RunChange(run=now.run, nodes=changed)


class SourceRunWatch:
    """A run of a data source, or an import."""

    def __init__(self, workspace_id: Id, run_id: Id) -> None:
        self.over = False
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._last: SourceRunState | None = None

    async def change(self, work: UnitOfWork) -> SourceRunState | None:
        now = await state(work, self._workspace_id, self._run_id)
        self.over = now.status not in OPEN_SOURCE_RUN
        if now == self._last:
            return None
        self._last = now
        return now


class LegacyImportWatch:
    """A legacy import run."""

    def __init__(self, run_id: Id) -> None:
        self.over = False
        self._run_id = run_id
        self._last: LegacyImport | None = None

    async def change(self, work: UnitOfWork) -> LegacyImport | None:
        now = await get_legacy_import(work, self._run_id)
        self.over = now.status in LEGACY_IMPORT_LIFECYCLE.at_rest
        if now == self._last:
            return None
        self._last = now
        return now


async def run_events(services: Services, watch: Watch) -> AsyncIterator[bytes | None]:
    """The events of a run until it ends; None each time nothing is new.

    No connection to the database is held between two reads.

    The run is read again and again, and what changed is sent. Its watch knows what a run is.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIFETIME_SECONDS
    while loop.time() < deadline and not services.streams.closing:
        start = loop.time()
        try:
            # A page that is closed meanwhile cancels this, and a connection whose statement is
            # cancelled is lost to its pool, and to PostgreSQL an accident.
            with anyio.CancelScope(shield=True):
                async with services.database.snapshot() as work:
                    change = await watch.change(work)
        except Exception as error:  # noqa: BLE001  # the answer has begun, so it can only end
            as_refusal(error)
            return
        if change is None:
            yield None
        else:
            yield format_sse_event(event="state", data_str=change.model_dump_json(by_alias=True))
        if watch.over:
            yield format_sse_event(event="end", data_str="{}")
            return
        pause = max(POLL_SECONDS, PAUSE_PER_READ * (loop.time() - start))
        await asyncio.sleep(min(pause, LONGEST_PAUSE_SECONDS))
