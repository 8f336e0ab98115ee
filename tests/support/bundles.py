"""Bundles made by hand, and applied chunk by chunk with no engine between."""

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import zstandard

from activities.jobs.exports import WorkspaceExports
from activities.jobs.transactions import MORE, JobActivities
from models.core.bundles import BundleKind, Findings, ImportTarget
from models.workspace.bundles.applying import (
    apply_chunk,
    check_chunk,
    conclude,
    plan_chunk,
    plan_workspace,
    read_chunk,
)
from models.workspace.bundles.registry import KIND_OF, steps
from models.workspace.bundles.rules import home
from models.workspace.bundles.unpacking import Contents, load_context_rows, read_lines, store_blobs
from models.workspace.workspace_exports import accept_workspace_export, workspace_export
from runtime.database import Database, UnitOfWork
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.patience import eventually
from tests.support.spaces import Space

SOURCE = UUID("0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f")


def line(row_type: str, **values: Any) -> bytes:
    """A row of a bundle."""
    return json.dumps({"type": row_type, **values}).encode() + b"\n"


def manifest(files: Mapping[str, bytes], /, **changed: Any) -> bytes:
    """The manifest of these files."""
    listed = [
        {
            "path": path,
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
            "rows": content.count(b"\n") if path.endswith(".ndjson") else 0,
        }
        for path, content in files.items()
    ]
    told = {
        "format": "workspace-bundle",
        "formatVersion": 1,
        "sourceVersion": "test",
        "converterVersion": "test",
        "snapshotAt": "2026-01-01T00:00:00Z",
        "workspaces": [{"id": str(SOURCE), "name": "Old", "counts": {}}],
        "files": listed,
    }
    return json.dumps({**told, **changed}).encode()


def zipped(entries: Sequence[tuple[str | zipfile.ZipInfo, bytes]]) -> bytes:
    """A zip archive with these entries, under any names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of a name that is there twice
                archive.writestr(name, content)
    return file.getvalue()


def bundle(files: Mapping[str, bytes], /, **changed: Any) -> bytes:
    """A whole bundle as a zip archive."""
    return zipped([("manifest.json", manifest(files, **changed)), *files.items()])


def packed(tar: bytes) -> bytes:
    """A tar archive, packed with Zstandard."""
    return zstandard.ZstdCompressor().compress(tar)


def sparse(content: bytes) -> bytes:
    """A bundle, of which every second row lacks what is null, or what its table has by itself."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    told = json.loads(files.pop("manifest.json"))
    for one in told["files"]:
        if one["path"].endswith(".ndjson"):
            rows = [json.loads(row) for row in files[one["path"]].splitlines()]
            kept = [_needed(row) if number % 2 else row for number, row in enumerate(rows)]
            made = b"".join(json.dumps(row).encode() + b"\n" for row in kept)
            one |= {"sha256": hashlib.sha256(made).hexdigest(), "bytes": len(made)}
            files[one["path"]] = made
    return zipped([("manifest.json", json.dumps(told).encode()), *files.items()])


_DEFAULTS = {"false": False, "0": 0, "1": 1, "'open'": "open", "'{}'::jsonb": {}, "'{}'": "{}"}


def _needed(row: dict[str, Any]) -> dict[str, Any]:
    columns = KIND_OF[row["type"]].columns

    def is_needed(key: str, value: Any) -> bool:
        default = None if key == "type" else columns[key].server_default
        return value is not None and (
            default is None or value != _DEFAULTS.get(str(default.arg), ...)
        )

    return {key: value for key, value in row.items() if is_needed(key, value)}


def target_of(space: Space) -> ImportTarget:
    """An entry of an import run that goes into a workspace."""
    return ImportTarget(
        run_id=new_id(),
        entry_id=new_id(),
        workspace_id=space.id,
        user_id=space.user_id,
        keys=space.keys,
    )


async def bring_in(
    database: Database,
    store: ObjectStore,
    contents: Contents,
    target: ImportTarget,
    *,
    checked: bool = False,
) -> Findings:
    """Plan, check and apply a workspace of a bundle; `rows` counts what is there afterwards.

    One that is to be `checked` is not applied when it has errors.
    """
    findings = Findings()
    source = contents.manifest.workspaces[0].id
    context_rows = await load_context_rows(store, contents, source)
    async with database.transaction() as work:
        await plan_workspace(work, target, source)
    for act in (
        plan_chunk,
        partial(check_chunk, context_rows=context_rows, checked=False),
        apply_lines,
    ):
        findings.rows.clear()
        if checked and act is apply_lines and findings.errors:
            return findings
        for step in steps():
            for path, part in contents.parts.items():
                if not step.reads(path.removeprefix(home(source))):
                    continue
                for chunk in range(part.chunks):
                    lines = await read_lines(store, part, chunk)
                    if act is apply_lines:
                        await store_blobs(store, contents, source, target, step.kinds, lines)
                    async with database.transaction() as work:
                        findings.add(await act(work, target, step.kinds, lines))
    async with database.transaction() as work:
        await conclude(work, target)
    return findings


async def apply_lines(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], lines: Sequence[bytes]
) -> Findings:
    """Read a chunk and apply it in one transaction."""
    return await apply_chunk(work, target, kinds, await read_chunk(work, target, kinds, lines))


async def exported(space: Space, store: ObjectStore, page: int = 2) -> bytes:
    """The bundle of a workspace, its parts no longer than `page`."""
    activities = JobActivities(
        space.database, {WorkflowKind.WORKSPACE_EXPORT: WorkspaceExports(store, page)}
    )
    async with space.database.transaction() as work:
        export_id = await accept_workspace_export(work, space.actor, new_id())
    while await activities.advance_job(str(export_id)) == MORE:
        pass

    async def has_ended() -> bool:
        # The worker of an engine may have taken the job, and be about to end it.
        async with space.database.reading() as work:
            now = await workspace_export(work, space.actor, export_id, space.keys)
        return now.completed_at is not None

    await eventually(has_ended, what="the end of the export")
    async with space.database.reading() as reading:
        made = await workspace_export(reading, space.actor, export_id, space.keys)
    assert made.bundle_object_key is not None, made.error
    content = b"".join([piece async for piece in store.get(made.bundle_object_key)])
    assert made.bundle_checksum == hashlib.sha256(content).hexdigest()
    assert made.bytes == len(content)
    return content
