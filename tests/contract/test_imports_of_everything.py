"""Legacy imports of a bundle with everything: hidden until verified, removed by a rollback.

They are carried out in this process, stage after stage, so that each stage can be looked at.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
import pytest_asyncio
from sqlalchemy import select, update

from activities.maintenance.sweeps import sweep_orphans
from models.core.base import Id
from models.messages.workspace_events.log import workspace_event
from models.workspace.bundles.references import import_id_map
from models.workspace.bundles.registry import KINDS
from models.workspace.legacy_imports import commands, stages
from models.workspace.legacy_imports.queries import (
    ApproveLegacyImport,
    CancelLegacyImport,
    LegacyImport,
    RollBackLegacyImport,
    UpdateImportWorkspace,
    get_run,
    legacy_import_workspace,
)
from models.workspace.legacy_imports.rules import IMPORT_STAGES, ImportStage
from models.workspace.legacy_imports.stages import Held
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.errors import ConflictError
from runtime.object_store import ObjectStore
from tests.contract.catalogue import EXAMPLES
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, operations
from tests.contract.watching import checksums
from tests.support.bundles import exported, sparse
from tests.support.engine import Engine
from tests.support.furnished_fully import furnish_fully
from tests.support.import_driver import ImportDriver
from tests.support.legacy_import_stories import accept
from tests.support.spaces import Space, make_space
from tests.support.watched import WatchedDatabase

pytestmark = pytest.mark.takes(seconds=20)

STAGES = [*IMPORT_STAGES[1:], ImportStage.VERIFYING]
"""At which a run is stopped: all stages before are done."""
READS = [
    one
    for one in operations()
    if one.reads
    and not one.path.startswith("/v1/admin")
    # Each call of these leaves a trace in what the next one answers.
    and one.id not in {"list_request_logs", "get_workspace_usage", "open_realtime_stream"}
    and one.id not in {"open_share_link", "list_share_links", "call_webhook_by_get"}
]
MOMENTS = {"serverTime", "exportedAt", "since", "openMs", "totalOpenMs", "authoritativeElapsedMs"}
"""What tells the time of the call."""


@dataclass(frozen=True, slots=True)
class Imports:
    """Runs of one bundle, made by a user who is no member of its targets."""

    admin: Space
    store: ObjectStore
    driver: ImportDriver
    content: bytes

    async def started(self, target: UUID | None = None) -> Id:
        """A run that is approved and started; without a target it makes a workspace."""
        engine = Engine(
            self.admin.database, None, self.admin.actor, self.store
        )  # the client of Temporal is not used
        run_id = await accept(engine, self.content)
        await self.driver.drive(run_id)
        if target is not None:
            entry = (await self.get(run_id)).workspaces[0].id
            body = UpdateImportWorkspace(targetWorkspaceId=target)
            async with self.admin.database.transaction() as work:
                await commands.update_workspace(work, run_id, entry, body)
            await self.driver.drive(run_id)
        async with self.admin.database.transaction() as work:
            principal = self.admin.actor.principal
            await commands.approve(work, principal, run_id, ApproveLegacyImport())
            await commands.start(work, run_id)
        return run_id

    async def get(self, run_id: Id) -> LegacyImport:
        async with self.admin.database.snapshot() as work:
            return await get_run(work, run_id)

    async def cancelled(self, run_id: Id) -> LegacyImport:
        """The run after it was cancelled and rolled back."""
        async with self.admin.database.transaction() as work:
            principal = self.admin.actor.principal
            await commands.cancel(work, principal, run_id, CancelLegacyImport())
        assert await self.driver.drive(run_id) == "cancelled"
        return await self.get(run_id)

    async def rolled_back(self, run_id: Id, *, force: bool = False) -> LegacyImport:
        """The run after its rollback."""
        body = RollBackLegacyImport(reason="Not yet", force=force)
        async with self.admin.database.transaction() as work:
            await commands.roll_back(work, self.admin.actor.principal, run_id, body)
        assert await self.driver.drive(run_id) == "rolled_back"
        return await self.get(run_id)

    async def objects(self) -> set[str]:
        """The objects of files, once those that no file has are removed."""
        async with self.admin.database.reading() as work:
            later = work.now_after(7 * 24 * 3600)
        await sweep_orphans(self.admin.database, self.store, later)
        return {key async for keys in self.store.older_than("files/", later) for key in keys}


@pytest_asyncio.fixture(scope="module")
async def imports(
    own: Furnished, _watched_database: WatchedDatabase, keys: KeyRing, settings: Settings
) -> AsyncIterator[Imports]:
    await furnish_fully(own)
    store = ObjectStore(settings.object_store)
    content = sparse(await exported(own.space, store, 5_000))
    admin = await make_space(_watched_database, keys)
    yield Imports(admin, store, ImportDriver(_watched_database, store, keys), content)


@pytest.fixture(autouse=True)
def _short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.run_events.LIFETIME_SECONDS", 0.1)


@pytest.mark.long
async def test_nothing_of_an_import_is_seen_in_a_workspace_until_it_is_verified(
    imports: Imports, own: Furnished
) -> None:
    before = await _answers(own)
    run_id = await imports.started(own.space.id)
    assert await imports.driver.drive(run_id, ImportStage.VERIFYING) == "importing"
    assert await _answers(own) == before
    named = await _imported_ids(imports, run_id)
    for operation, ids in _of_imported(own, named):
        answer = await call(own.client, operation, own, ids=ids)
        assert answer.status_code == 404, (operation.id, ids, answer.text)

    assert await imports.driver.drive(run_id) == "completed_with_warnings"
    seen = {
        operation.id: (await call(own.client, operation, own, ids=ids)).status_code
        for operation, ids in _of_imported(own, named)
        if operation.reads and len(ids) == len(operation.ids) and operation.success == 200
    }
    # Not all: an address may need a token, or a form be closed.
    assert len([status for status in seen.values() if status == 200]) > 10, seen
    (entry,) = (await imports.get(run_id)).workspaces
    kept = {one.partition(":")[0] for one in entry.warnings}
    assert kept == {kind.name for kind in KINDS if kind.of_members}
    await imports.rolled_back(run_id)


async def _answers(made: Furnished) -> dict[str, Any]:
    """What every reading operation answers."""
    found = {}
    for operation in READS:
        answer = await call(made.client, operation, made)
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        found[operation.id] = _timeless(answer.json()) if is_json else answer.text
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in MOMENTS}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


async def _imported_ids(imports: Imports, run_id: Id) -> dict[str, str]:
    """Target id by source id, apart from those of people and the workspace."""
    map_ = import_id_map.c
    of_run = map_.run_id == run_id, map_.source_id != map_.target_id
    async with imports.admin.database.reading() as work:
        rows = await work.rows(select(import_id_map).where(*of_run))
    return {str(one.source_id): str(one.target_id) for one in rows}


def _of_imported(made: Furnished, named: dict[str, str]) -> list[tuple[Operation, dict[str, str]]]:
    """Each operation with the ids of what was imported in the place of what that is a copy of."""
    found = []
    for operation in operations():
        renamed = {name: made.ids[as_] for name, as_ in EXAMPLES[operation.id].ids.items()}
        own = {name: renamed.get(name) or made.ids.get(name, "") for name in operation.ids}
        ids = {name: named[value] for name, value in own.items() if value in named}
        if ids and not operation.path.startswith("/v1/admin"):
            found.append((operation, ids))
    return found


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES)
async def test_a_cancel_after_any_stage_leaves_nothing_behind(
    imports: Imports, own: Furnished, stage: ImportStage
) -> None:
    """Alternately in a workspace that is there, and in one that the import makes."""
    target = own.space.id if STAGES.index(stage) % 2 else None
    before, objects = await _held(own), await imports.objects()
    run_id = await imports.started(target)
    await imports.driver.drive(run_id, stage)
    run = await imports.cancelled(run_id)
    (entry,) = run.workspaces
    assert (entry.stage, entry.lifecycle_state, entry.counts) == ("cancelled", "removed", {})
    assert await _held(own) == before
    assert await imports.objects() == objects
    if target is None:
        assert await _left(imports, run) == {}


@pytest.mark.long
async def test_a_workspace_that_failed_in_every_stage_is_imported_whole_and_rolled_back(
    imports: Imports,
) -> None:
    objects = await imports.objects()
    run_id = await imports.started()
    for stage in [*IMPORT_STAGES, ImportStage.VERIFYING]:
        with _failing_once(stage):
            assert await imports.driver.drive(run_id) == "failed"
        (entry,) = (await imports.get(run_id)).workspaces
        assert (entry.stage, entry.last_error) == ("failed", "Not today.")
        async with imports.admin.database.transaction() as work:
            # There are more stages than attempts.
            mine = legacy_import_workspace.c.id == entry.id
            await work.execute(update(legacy_import_workspace).where(mine).values(attempt=4))
            await commands.retry_workspace(work, run_id, entry.id)
    assert await imports.driver.drive(run_id) == "completed"
    run = await imports.get(run_id)
    (entry,) = run.workspaces
    assert (entry.stage, entry.attempt, entry.warnings) == ("done", 5, [])
    assert entry.counts == {kind: rows for kind, rows in entry.source_counts.items() if rows}
    assert entry.counts.keys() == {kind.name for kind in KINDS}
    assert entry.verification.outcome == "equal"
    assert await imports.objects() - objects

    run = await imports.rolled_back(run_id)
    (entry,) = run.workspaces
    assert (entry.rollback_state, entry.lifecycle_state) == ("completed", "removed")
    assert await _left(imports, run) == {}
    assert await imports.objects() == objects


@contextmanager
def _failing_once(stage: ImportStage) -> Iterator[None]:
    """All chunks of a stage are done, and then it fails."""

    async def fail(work: Any, held: Held, *rest: Any) -> Any:
        if held.stage == stage:
            raise ConflictError("Not today.")
        return await original(work, held, *rest)

    name = "stages.verify_counts" if stage == ImportStage.VERIFYING else "stages.end_stage"
    original = stages.verify_counts if stage == ImportStage.VERIFYING else stages.end_stage
    with patch(f"activities.legacy_imports.{name}", fail):
        yield


@pytest.mark.long
async def test_rows_that_people_changed_stay_until_they_are_removed_by_force(
    imports: Imports, own: Furnished
) -> None:
    before = await _held(own)
    run_id = await imports.started(own.space.id)
    assert await imports.driver.drive(run_id) == "completed_with_warnings"
    named = await _imported_ids(imports, run_id)
    record_id = named[own.ids["recordId"]]
    answer = await own.client.patch(f"/v1/records/{record_id}", json={"data": {"price": 7}})
    assert answer.is_success, answer.text
    surface_id = named[own.ids["surfaceId"]]
    surface = (await own.client.get(f"/v1/surfaces/{surface_id}")).json()["data"]
    page = f"/v1/items/{surface['itemId']}"
    assert (await own.client.patch(page, json={"title": "Mine"})).is_success
    whole_id = named[own.ids["wholeId"]]
    listed = (await own.client.get(f"{own.space.path}/databases")).json()["data"]["databases"]
    (whole,) = (one for one in listed if one["id"] == whole_id)
    place = f"/v1/items/{whole['itemId']}"
    assert (await own.client.patch(place, json={"title": "Mine too"})).is_success
    run = await imports.rolled_back(run_id)
    (entry,) = run.workspaces
    assert entry.rollback_state == "partial"
    kept = [one for one in entry.warnings if one.startswith("Kept")]
    (records,) = (one for one in kept if " record: " in one)
    assert record_id in records
    assert named[own.ids["wholeRecordId"]] in records
    shown = await own.client.get(f"/v1/records/{record_id}")
    assert shown.json()["data"]["data"]["price"] == 7
    content = (await own.client.get(f"/v1/surfaces/{surface_id}")).json()["data"]
    assert content["blocks"] == surface["blocks"]
    rows = await own.client.get(f"/v1/databases/{whole_id}/records")
    titles = {one["title"] for one in rows.json()["data"]["records"]}
    assert titles == {"One", "Two"}
    gone = await own.client.get(f"/v1/automations/{named[own.ids['automationId']]}")
    assert gone.status_code == 404

    run = await imports.rolled_back(run_id, force=True)
    assert run.workspaces[0].rollback_state == "completed"
    after = await _held(own)
    # People were notified of the import, and values were computed again.
    told = {"workspace_event", "notification", "job", "outbox", "request_log"}
    assert {name for name in before if after[name] != before[name]} <= told


async def _held(made: Furnished) -> dict[str, Any]:
    """A checksum of each table with rows of a workspace; how an import goes may be logged."""
    own, type_ = workspace_event.c.workspace_id == made.space.id, workspace_event.c.type
    others = select(type_).where(own, type_ != "import.stage")
    async with made.space.database.reading() as work:
        events = Counter(row.type for row in await work.rows(others))
    found = await checksums(made.space.database, str(made.space.id))
    return {**found, "workspace_event": events}


async def _left(imports: Imports, run: LegacyImport) -> dict[str, Any]:
    """A checksum of each table with rows of the target, and of the map of its ids."""
    (entry,) = run.workspaces
    async with imports.admin.database.reading() as work:
        own = import_id_map.c.entry_id == entry.id
        assert await work.rows(select(import_id_map).where(own).limit(1)) == []
    found = await checksums(imports.admin.database, str(entry.target_workspace_id))
    # No relay delivers here.
    return {name: one for name, one in found.items() if one is not None and name != "outbox"}
