"""Workers and PostgreSQL that die in every stage of a legacy import; rows are imported once."""

import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import insert, select
from sqlalchemy.exc import OperationalError

from models.core.base import Id
from models.people.users import app_user
from models.workspace.bundles.registry import KINDS
from models.workspace.legacy_imports import commands
from models.workspace.legacy_imports.queries import (
    ApproveLegacyImport,
    LegacyImport,
    RollBackLegacyImport,
    get_run,
)
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.database import Database, columns_of
from runtime.object_store import ObjectStore
from runtime.processes.fault_injection import FaultPoint
from tests.chaos.import_process import carrying_on
from tests.chaos.own_postgres import OwnPostgres
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.contract.furnished import furnish
from tests.contract.watching import checksums
from tests.support.bundles import exported
from tests.support.client import Client, Contract
from tests.support.engine import Engine
from tests.support.furnished_fully import furnish_fully
from tests.support.legacy_import_stories import accept
from tests.support.legacy_imports import folders, whole
from tests.support.patience import eventually
from tests.support.spaces import make_space
from tests.support.watched import WatchedDatabase

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60)]

POINTS = [point for point in FaultPoint if point.startswith("import_")]
"""Behind the commit of a chunk in every stage."""
OF_WORKERS = [FaultPoint.IMPORT_CREATING, FaultPoint.IMPORT_ROLLBACK]
ITEMS = 40


@dataclass(frozen=True, slots=True)
class Place:
    """A PostgreSQL to be killed, a store, and the bundle of a workspace with everything."""

    postgres: OwnPostgres
    objects: Path
    content: bytes
    engine: Engine


@pytest_asyncio.fixture(scope="module")
async def place(
    _app: FastAPI,
    contract: Contract,
    _watched_database: WatchedDatabase,
    keys: KeyRing,
    settings: Settings,
) -> AsyncIterator[Place]:
    space = await make_space(_watched_database, keys)
    async with Client(_app, contract, space.token) as client:
        made = await furnish(space, client)
        await furnish_fully(made)
    content = await exported(space, ObjectStore(settings.object_store), 5_000)
    async with _watched_database.reading() as work:
        ids = [space.user_id, UUID(made.ids["userId"])]
        people = await work.rows(select(app_user).where(app_user.c.id.in_(ids)))
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        postgres = OwnPostgres(Path(directory) / "state")
        await postgres.make()
        database = Database(postgres.url)
        async with database.transaction() as work:
            await work.execute(insert(app_user), [columns_of(one) for one in people])
        objects = Path(directory) / "objects"
        engine = Engine(
            database, None, space.actor, ObjectStore(objects.as_uri())
        )  # the client of Temporal is not used
        yield Place(postgres, objects, content, engine)
        await database.close()
        postgres.stop()


@pytest.mark.long
@pytest.mark.parametrize("victim", ["worker", "postgres"])
async def test_a_death_in_every_stage_of_every_kind_loses_and_doubles_no_row(
    place: Place, victim: str, tmp_path: Path
) -> None:
    killing = _Killing(place, victim == "postgres", tmp_path)
    engine, database = place.engine, place.engine.database
    run_id = await accept(engine, place.content)
    await killing.carry_on(run_id)
    async with database.transaction() as work:
        await commands.approve(work, engine.actor.principal, run_id, ApproveLegacyImport())
        await commands.start(work, run_id)
    await killing.carry_on(run_id)
    run = await _shown(database, run_id)
    (entry,) = run.workspaces
    assert (run.status, entry.stage, entry.warnings) == ("completed", "done", [])
    assert entry.counts == entry.source_counts
    assert entry.counts.keys() == {kind.name for kind in KINDS}
    for kind in KINDS:
        query = f"SELECT count(*) FROM {kind.table.name} WHERE workspace_id = %s"  # noqa: S608
        [(there,)] = await fetch(place.postgres.url, query, entry.target_workspace_id)
        planned = "SELECT count(*) FROM import_id_map WHERE entry_id = %s AND source_kind = %s"
        [(mapped,)] = await fetch(place.postgres.url, planned, entry.id, kind.name)
        assert there == entry.counts[kind.name], kind.name
        assert mapped == (there if kind.source_kind == kind.name else 0), kind.name

    async with database.transaction() as work:
        body = RollBackLegacyImport(reason="Not yet")
        await commands.roll_back(work, engine.actor.principal, run_id, body)
    await killing.carry_on(run_id)
    run = await _shown(database, run_id)
    assert (run.status, run.workspaces[0].rollback_state) == ("rolled_back", "completed")
    left = await checksums(database, str(entry.target_workspace_id))
    # No relay delivers here.
    assert {name for name, rows in left.items() if rows is not None} == {"outbox"}
    assert sorted(killing.deaths) == sorted(POINTS)


async def _shown(database: Database, run_id: Id) -> LegacyImport:
    async with database.snapshot() as work:
        return await get_run(work, run_id)


class _Killing:
    """Has processes carry a run on, each of which dies at the next point, or kills PostgreSQL."""

    def __init__(self, place: Place, kills_postgres: bool, marks: Path) -> None:
        self._place, self._kills_postgres, self._marks = place, kills_postgres, marks

    @property
    def deaths(self) -> list[FaultPoint]:
        """The points that have killed."""
        return [FaultPoint(mark.name) for mark in self._marks.iterdir()]

    async def carry_on(self, run_id: Id) -> None:
        """Until a person has the next move, or the run has ended."""
        store = self._place.objects.as_uri()
        while True:
            url, before = self._place.postgres.url, len(self.deaths)
            code = await carrying_on(url, store, run_id, self._armed()).ended()
            if len(self.deaths) == before:
                assert code == 0
                return
            if self._kills_postgres:
                await self._place.postgres.died()
                await self._place.postgres.start()
                await self._notice()
            else:
                assert code == -signal.SIGKILL

    async def _notice(self) -> None:
        """Have the connections of this process, which are dead, replaced."""
        with suppress(OperationalError):
            async with self._place.engine.database.reading() as work:
                await work.execute(select(1))

    def _armed(self) -> dict[str, str]:
        armed = {"WORKSPACE_FAULT": ",".join(POINTS), "WORKSPACE_FAULT_MARKS": str(self._marks)}
        if self._kills_postgres:
            armed["WORKSPACE_FAULT_VICTIM"] = str(self._place.postgres.pid_file)
        return armed


@pytest.mark.long
async def test_an_import_continues_when_a_worker_of_temporal_dies(
    idle: Engine, workers: Workers, url: str, tmp_path: Path
) -> None:
    points = OF_WORKERS
    store = (tmp_path / "objects").as_uri()
    armed = {"WORKSPACE_FAULT": ",".join(points), "WORKSPACE_FAULT_MARKS": str(tmp_path)}
    armed["WORKSPACE_OBJECT_STORE"] = store
    # Each point kills once, so that one worker is left.
    started = [await workers.start(**armed) for _ in range(len(points) + 1)]
    for worker in started:
        # One that began later would suspect the run, and the third death would be the last.
        await worker.ready()
    engine = Engine(idle.database, idle.client, idle.actor, ObjectStore(store))

    run_id = await accept(engine, whole({"Old": folders(ITEMS)}))
    await _becomes(url, run_id, "awaiting_review")
    async with idle.database.transaction() as work:
        await commands.approve(work, idle.actor.principal, run_id, ApproveLegacyImport())
    async with idle.database.transaction() as work:
        await commands.start(work, run_id)
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
        await commands.roll_back(work, idle.actor.principal, run_id, body)
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
