"""Bundles made by hand, and applied chunk by chunk with no engine between."""

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import zstandard

from models.core.bundles.kinds import ImportTarget
from models.workspace.bundles.applying import apply_chunk, check_chunk, plan_chunk
from models.workspace.bundles.findings import Findings
from models.workspace.bundles.registry import steps
from models.workspace.bundles.rules import home
from models.workspace.bundles.unpacking import Contents, read_lines
from runtime.database import Database
from runtime.object_store import ObjectStore

SOURCE = UUID("0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f")


def line(kind: str, **values: Any) -> bytes:
    """A row of a bundle."""
    return json.dumps({"kind": kind, **values}).encode() + b"\n"


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
    """A zip archive with these entries, whatever they are called."""
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


async def bring_in(
    database: Database, store: ObjectStore, contents: Contents, target: ImportTarget
) -> Findings:
    """Plan, check and apply a workspace of a bundle; gives what was found."""
    findings = Findings()
    source = contents.manifest.workspaces[0].id
    for act in (plan_chunk, check_chunk, apply_chunk):
        findings.rows.clear()
        for step in steps():
            for path, part in contents.parts.items():
                if not step.reads(path.removeprefix(home(source))):
                    continue
                for chunk in range(part.chunks):
                    lines = await read_lines(store, part, chunk)
                    async with database.transaction() as work:
                        findings.add(await act(work, target, step.kinds, lines))
    return findings
