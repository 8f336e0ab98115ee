"""What an export writes, an import brings in; a second export shows the same."""

import io
import json
import zipfile
from typing import Any

import pytest
from sqlalchemy import func, select

from activities.jobs.records import Recomputation
from activities.jobs.transactions import MORE, JobActivities
from models.content.surfaces.queries import surface
from models.core.access.rules import Role
from models.core.bundles import Findings, ImportTarget, rewritten
from models.messages.jobs.store import JOB, jobs_of
from models.people.members import members_of
from models.people.workspaces import add_member
from models.workspace.bundles.references import import_id_map
from models.workspace.bundles.registry import KIND_OF
from models.workspace.bundles.unpacking import unpack
from runtime.configuration.settings import Settings
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.contract.furnished import furnish
from tests.support.bundles import SOURCE, bring_in, bundle, exported, target_of
from tests.support.client import Client
from tests.support.furnished_fully import EVERYTHING, furnish_fully
from tests.support.spaces import MakeSpace, Space

PAGE = 7
"""Rows that one chunk of an export reads: fewer than there are of most kinds."""


@pytest.mark.long
async def test_a_workspace_comes_back_as_it_was(
    workspace: MakeSpace, space: Space, client: Client, settings: Settings
) -> None:
    await furnish_fully(await furnish(space, client))
    store = ObjectStore(settings.object_store)
    first = await exported(space, store, PAGE)
    _check_whole(first)
    other = await workspace()
    await _let_in(other, space)
    findings, target = await _imported(other, store, first)
    assert findings.to_json() == {"rows": findings.rows, "warnings": [], "errors": []}
    await _compute(other)
    second = await exported(other, store, PAGE)
    expected, found = _canonical(first, await _ids(other, target)), _canonical(second, {})
    for people in (expected.pop("members.ndjson"), found.pop("members.ndjson")):
        assert {"type": "member", "userId": str(space.user_id), "role": "owner"}.items() <= (
            next(one for one in people if one["userId"] == str(space.user_id)).items()
        )
    for path in expected.keys() | found.keys():
        for left, right in zip(found[path], expected[path], strict=True):
            assert left == right, path


async def _let_in(space: Space, source: Space) -> None:
    """Make the members of another workspace members: none of them enters by a bundle."""
    async with space.database.transaction() as work:
        for member in await work.rows(members_of(source.id)):
            await add_member(work, space.id, member.user_id, Role(member.role))


def _check_whole(content: bytes) -> None:
    """What is compared has something of every kind."""
    rows = [row for rows in _canonical(content, {}).values() for row in rows if "type" in row]
    assert {row["type"] for row in rows} == set(KIND_OF)
    found: dict[str, set[str]] = {name: set() for name in EVERYTHING}
    for row in rows:
        if row["type"] in EVERYTHING:
            found[row["type"]].add(row["kind"])
        if row["type"] == "automation_version":
            found["trigger"].add(row["triggerConfig"]["kind"])
            found["node"] |= {node["kind"] for node in row["graph"]["nodes"]}
    assert found == EVERYTHING


async def _imported(
    space: Space, store: ObjectStore, content: bytes
) -> tuple[Findings, ImportTarget]:
    contents = await unpack(store, io.BytesIO(content), len(content), new_id())
    target = target_of(space)
    return await bring_in(space.database, store, contents, target), target


async def _compute(space: Space) -> None:
    """Carry out the jobs that compute values anew."""
    activities = JobActivities(space.database, {WorkflowKind.RECOMPUTATION: Recomputation()})
    async with space.database.reading() as work:
        asked = await work.rows(jobs_of(space.id, WorkflowKind.RECOMPUTATION, JOB.id))
    for one in asked:
        while await activities.advance_job(str(one.id)) == MORE:
            pass


async def _ids(space: Space, target: ImportTarget) -> dict[str, str]:
    """Target id by source id."""
    async with space.database.reading() as work:
        rows = await work.rows(
            select(import_id_map).where(import_id_map.c.entry_id == target.entry_id)
        )
    return {str(row.source_id): str(row.target_id) for row in rows}


def _canonical(content: bytes, ids: dict[str, str]) -> dict[str, list[Any]]:
    """The rows by file, with the ids of the target, in an order of their own."""
    found: dict[str, list[Any]] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            path = name.split("/", 2)[-1].removeprefix("/")
            if path.endswith(".ndjson"):
                rows = [_settled(json.loads(line), ids) for line in archive.read(name).splitlines()]
                found[path] = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
            elif "/blobs/" in name:
                found[path] = [archive.read(name).hex()]
    return {_renamed(path, ids): rows for path, rows in found.items()}


def _settled(row: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """A row with the ids of the target; automations and sources are not started by the import."""
    made: Any = rewritten(row, ids)
    return {**made, "enabled": False} if row["type"] in {"automation", "data_source"} else made


def _renamed(path: str, ids: dict[str, str]) -> str:
    """The path of a file of records, with the id that its database has in the target."""
    folder, _, name = path.rpartition("/")
    own, _, rest = name.partition(".")
    return f"{folder}/{ids.get(own, own)}.{rest}".removeprefix("/")


@pytest.mark.long
async def test_rows_that_depend_on_missing_rows_are_left_out(
    workspace: MakeSpace, space: Space, client: Client, settings: Settings
) -> None:
    await furnish(space, client)
    other = await workspace()
    findings = await _imported_without("items.ndjson", other, space, settings)
    assert findings.errors == {}
    assert ("missing_reference", "database: item_id is not in the bundle.") in findings.warnings
    hanging = {"database", "field", "record", "form", "action", "automation", "automation_version"}
    assert hanging & {kind for kind, rows in findings.rows.items() if rows} == set()


@pytest.mark.long
async def test_a_form_whose_surface_is_missing_gets_one(
    workspace: MakeSpace, space: Space, client: Client, settings: Settings
) -> None:
    await furnish(space, client)
    other = await workspace()
    findings = await _imported_without("surfaces.ndjson", other, space, settings)
    assert findings.rows["form"] > 0
    async with other.database.reading() as work:
        own = select(func.count()).where(
            surface.c.workspace_id == other.id, surface.c.kind == "form"
        )
        assert await work.scalar(own) == findings.rows["form"]


async def _imported_without(file: str, space: Space, source: Space, settings: Settings) -> Findings:
    """Bring in the export of another workspace, under the id of test bundles, less a file."""
    store = ObjectStore(settings.object_store)
    with zipfile.ZipFile(io.BytesIO(await exported(source, store))) as archive:
        left = {
            f"workspaces/{SOURCE}/{name.split('/', 2)[2]}": archive.read(name)
            for name in archive.namelist()
            if name.startswith("workspaces/") and not name.endswith(f"/{file}")
        }
    findings, _ = await _imported(space, store, bundle(left))
    return findings


async def test_a_bundle_adds_no_members(space: Space, foreign: Space, settings: Settings) -> None:
    store = ObjectStore(settings.object_store)
    findings, _ = await _imported(foreign, store, await exported(space, store))
    assert ("unknown_person", "member: no member has that address.") in findings.warnings
    async with foreign.database.reading() as work:
        members = await work.rows(members_of(foreign.id))
    assert [one.user_id for one in members] == [foreign.user_id]
