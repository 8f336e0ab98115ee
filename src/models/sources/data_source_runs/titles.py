"""Titles of runs for operators in the Temporal UI: from where rows go where (ADR 0032)."""

from urllib.parse import urlsplit

from models.content.files.queries import find_file
from models.core.base import Id
from models.data.fields.queries import database_label
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_sources.queries import data_source_label
from runtime.database import UnitOfWork

_BYTES = 200
"""The bytes that Temporal takes as a summary (ecosystem 2.3)."""


async def run_title(work: UnitOfWork, run: SourceRunRow) -> str:
    """Such as `Import · cars.csv → Cars`, or `Refresh · Price list → Prices`."""
    verb = "Import" if run.data_source_id is None else "Refresh"
    source = await _source(work, run)
    target = await _target(work, run)
    room = (_BYTES - len(f"{verb} ·  → ".encode())) // 2
    return f"{verb} · {_cut(source, room)} → {_cut(target, room)}"


def _cut(text: str, room: int) -> str:
    return " ".join(text.split()).encode()[:room].decode(errors="ignore")


async def _source(work: UnitOfWork, run: SourceRunRow) -> str:
    """The label of the data source; of an import, the name of what is read, or its host."""
    if run.data_source_id is not None:
        label = await data_source_label(work, run.workspace_id, run.data_source_id)
        return label or "a data source"
    config = run.plan["config"]
    if "fileId" in config:
        found = await find_file(work, run.workspace_id, Id(config["fileId"]))
        return "a file" if found is None else found.name
    if "url" in config:
        # Paths and queries may hold what opens them.
        return urlsplit(config["url"]).hostname or "a URL"
    if "resource" in config:
        return str(config["resource"]["name"])
    return f"{config['format']} of the request"


async def _target(work: UnitOfWork, run: SourceRunRow) -> str:
    if run.database_id is None:
        return f"{run.plan['label']} (new)"
    return await database_label(work, run.workspace_id, run.database_id) or "a database"
