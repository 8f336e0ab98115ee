"""Workers that die while folders are mounted and imported: each resource is there, once."""

import signal
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from models.core.base import Id
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection
from models.sources.mounts.commands import accept_mount
from models.sources.mounts.queries import MountResource
from models.sources.resource_imports.commands import ImportResource, accept_import_resource
from runtime.crypto import KeyRing
from runtime.ids import new_id
from runtime.processes.fault_injection import FaultPoint
from tests.chaos.processes import SECRET, Workers
from tests.chaos.queries import fetch
from tests.support.engine import Engine
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=30), pytest.mark.long]

FILES = 130
"""More than one batch of an import."""
POINTS = [
    FaultPoint.AFTER_CHUNK_BEFORE_REPLY,
    FaultPoint.AFTER_ENTRIES_BEFORE_COMMIT,
    FaultPoint.AFTER_CONTENTS_BEFORE_COMMIT,
]


async def test_workers_that_die_in_a_mount_and_an_import_lose_and_double_nothing(
    idle: Engine, workers: Workers, url: str, tmp_path: Path
) -> None:
    armed = {"WORKSPACE_FAULT": ",".join(POINTS), "WORKSPACE_FAULT_MARKS": str(tmp_path)}
    armed["WORKSPACE_OBJECT_STORE"] = (tmp_path / "objects").as_uri()
    mounting, importing = await _accepted(idle)
    # Each point kills once, so that one worker is left.
    started = [await workers.start(**armed) for _ in range(len(POINTS) + 1)]
    for job_id in (mounting, importing):
        await _ended(url, job_id)
    codes = Counter([worker.process.exit_code for worker in started])
    assert codes == {-signal.SIGKILL: len(POINTS), None: 1}

    files = [f"generated-{number}" for number in range(1, FILES + 1)]
    mounted = "SELECT m.external_id FROM mount m JOIN item i ON i.id = m.item_id"
    assert Counter(await fetch(url, mounted)) == Counter((one,) for one in ("generated", *files))
    [(counts,)] = await fetch(url, "SELECT result -> 'counts' FROM job WHERE id = %s", importing)
    assert counts == {"created": FILES + 1, "updated": 0, "unchanged": 0, "kept": 0}
    made = "SELECT kind, count(*) FROM item WHERE kind <> 'external_resource' GROUP BY kind"
    assert dict(await fetch(url, made)) == {"folder": 1, "file": FILES}
    assert await fetch(url, "SELECT count(*) FROM file WHERE object_key IS NOT NULL") == [(FILES,)]


async def _accepted(engine: Engine) -> tuple[Id, Id]:
    """A recursive mount and an import of the same folder, neither of them begun."""
    body = {"provider": "demo", "label": "Demo", "config": {"generated": FILES}}
    mounting, importing = new_id(), new_id()
    async with engine.database.transaction() as work:
        connection = await create_connection(
            work, engine.actor, KeyRing([SECRET]), CreateConnection.model_validate(body)
        )
        folder = {
            "connectionId": str(connection.id),
            "resource": {
                "externalType": "folder",
                "externalId": "generated",
                "name": "Generated files",
                "surfaceKind": "folder",
                "capabilities": [],
            },
        }
        mount = MountResource.model_validate({**folder, "recursive": True})
        await accept_mount(work, engine.actor, mounting, mount)
        copy = ImportResource.model_validate(folder)
        await accept_import_resource(work, engine.actor, importing, copy)
    return mounting, importing


async def _ended(url: str, job_id: Id) -> None:
    async def is_closed() -> bool:
        query = "SELECT status, error FROM job WHERE id = %s"
        try:
            [(status, error)] = await fetch(url, query, job_id)
        except psycopg.OperationalError:
            return False
        assert error is None, error
        return bool(status == "succeeded")

    await eventually(is_closed, f"the end of the job {job_id}")
