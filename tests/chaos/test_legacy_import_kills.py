"""Workers that die in every stage of a legacy import: all rows come in, once (G25)."""

import signal
from collections import Counter
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from models.core.base import Id
from models.workspace.legacy_imports.commands import decisions, recovery
from models.workspace.legacy_imports.shapes import ApproveLegacyImport, RollBackLegacyImport
from runtime.fault_injection import FaultPoint
from runtime.object_store import ObjectStore
from tests.chaos.processes import Workers
from tests.chaos.story import fetch
from tests.support.engine import Engine
from tests.support.legacy_import_stories import accept
from tests.support.legacy_imports import folders, whole
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60)]

CHECKING = [
    FaultPoint.IMPORT_UNPACKED,
    FaultPoint.IMPORT_VALIDATING,
    FaultPoint.IMPORT_DRY_RUN,
]
WRITING = [FaultPoint.IMPORT_CREATING, FaultPoint.IMPORT_VERIFYING]
TAKING_BACK = [FaultPoint.IMPORT_ROLLBACK]
ITEMS = 40


async def test_workers_that_die_in_every_stage_lose_and_double_no_row(
    idle: Engine, workers: Workers, url: str, tmp_path: Path
) -> None:
    points = [*CHECKING, *WRITING, *TAKING_BACK]
    store = (tmp_path / "objects").as_uri()
    armed = {"WORKSPACE_FAULT": ",".join(points), "WORKSPACE_FAULT_MARKS": str(tmp_path)}
    armed["WORKSPACE_OBJECT_STORE"] = store
    # Each point kills once, so that one worker is left.
    started = [await workers.start(**armed) for _ in range(len(points) + 1)]
    engine = Engine(idle.database, idle.client, idle.actor, ObjectStore(store))

    run_id = await accept(engine, whole({"Old": folders(ITEMS)}))
    await _becomes(url, run_id, "awaiting_review")
    async with idle.database.transaction() as work:
        await decisions.approve(work, idle.actor.principal, run_id, ApproveLegacyImport())
    async with idle.database.transaction() as work:
        await decisions.start(work, run_id)
    await _becomes(url, run_id, "completed")
    [(workspace_id, counts)] = await fetch(
        url, "SELECT target_workspace_id, counts FROM legacy_import_workspace WHERE run_id = %s",
        run_id,
    )  # fmt: skip
    assert counts == {"item": ITEMS}
    titles = await fetch(url, "SELECT title FROM item WHERE workspace_id = %s", workspace_id)
    assert Counter(title for (title,) in titles) == Counter(f"Folder {n}" for n in range(ITEMS))

    async with idle.database.transaction() as work:
        body = RollBackLegacyImport(reason="Not yet")
        await recovery.roll_back(work, idle.actor.principal, run_id, body)
    await _becomes(url, run_id, "rolled_back")
    assert await fetch(url, "SELECT FROM item WHERE workspace_id = %s", workspace_id) == []
    assert await fetch(url, "SELECT FROM workspace WHERE id = %s", workspace_id) == []
    codes = Counter([worker.process.exit_code for worker in started])
    assert codes == {-signal.SIGKILL: len(points), None: 1}


async def _becomes(url: str, run_id: Id, wanted: str) -> None:
    async def is_there() -> bool:
        query = "SELECT status, errors FROM legacy_import_run WHERE id = %s"
        try:
            [(status, errors)] = await fetch(url, query, UUID(str(run_id)))
        except psycopg.OperationalError:
            return False  # it is being killed
        assert status not in {"failed", "rollback_failed"}, errors
        return bool(status == wanted)

    await eventually(is_there, f"run {run_id} as {wanted}")
