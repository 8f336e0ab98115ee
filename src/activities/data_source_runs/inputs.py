"""The source of a run's rows: fetched pages, a stored file, or the caller's body."""

import asyncio
import base64
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from activities.data_source_runs.columns import config_digest
from activities.sources.fetchers import Wanted, copied, file_at
from activities.sources.fetching import FORMATS, Fetched, is_blank
from models.sources.data_source_runs.rules import KnownColumns
from models.sources.data_source_runs.tables import SourceRunRow
from models.sources.data_source_runs.targets import known_columns
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.options import ReadOptions, TableFormat, read_options
from runtime.database import Database
from runtime.object_store import ObjectStore

PAGES = "data-source-runs"
"""The prefix of the keys of all fetched pages."""


def page_key(run: SourceRunRow, page: int) -> str:
    """The object of a fetched page."""
    return f"{PAGES}/{run.workspace_id}/{run.id}/{page}"


def wanted_by(run: SourceRunRow) -> Wanted:
    """The source of a run, as it is fetched in the name of the user who requested it."""
    mapping, keys = run.plan["fields"], run.plan["keyFields"]
    return Wanted(
        run.workspace_id,
        run.actor_user_id,
        DataSourceKind(run.plan["kind"]),
        run.plan["config"],
        [one["sourcePath"] for one in mapping if one["fieldKey"] in keys],
    )


def read_options_of(request: Wanted, fetched: Fetched) -> ReadOptions:
    """The options that read the files of a source, by its config and by what it said of them."""
    named = fetched.format or request.config.get("format")
    usual = FORMATS.get(request.kind, TableFormat.JSON)
    options = read_options(request.config, TableFormat(named or usual), fetched.charset)
    if not fetched.queried:
        return options
    return replace(options, query=request.config["query"], params=request.config["params"])


def fetched_by(run: SourceRunRow) -> Fetched:
    """The part of a run's source that has been fetched."""
    return Fetched(**run.progress.get("fetched", {}))


def content_with(before: str, page: Path, state: Fetched) -> str:
    """The digest of all pages with this one: equal ones are read as the same rows."""
    with page.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    read_as = f"{before} {digest} {state.charset} {state.format}"
    return hashlib.sha256(read_as.encode()).hexdigest()


@asynccontextmanager
async def scratch() -> AsyncIterator[Path]:
    """A directory that is removed when the block ends."""
    directory = Path(tempfile.mkdtemp(prefix="workspace-source-"))
    try:
        yield directory
    finally:
        # A directory that cannot be removed must not fail a run that has succeeded.
        shutil.rmtree(directory, ignore_errors=True)


def bytes_in(directory: Path) -> int:
    """The bytes of the files of a directory, while others write and remove them."""
    size = 0
    for path in directory.iterdir():
        # A page that was sent is removed while others are counted.
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def are_blank(files: Sequence[Path]) -> bool:
    """True when files hold nothing but white space."""
    return all(is_blank(path) for path in files)


async def options_as_before(
    database: Database, run: SourceRunRow, source: Wanted, files: Sequence[Path]
) -> tuple[ReadOptions, KnownColumns]:
    """The options that read a source as it was read before, and its known columns.

    A blank file of such a source has no rows in any format.
    """
    async with database.transaction() as work:
        history = await known_columns(work, run)
    options = read_options_of(source, fetched_by(run))
    if options.query is None and history.columns and await asyncio.to_thread(are_blank, files):
        options = replace(options, format=TableFormat.NDJSON)
    if history.config == config_digest(run):
        options = replace(options, usual_path=history.json_path)
    return options, history


async def input_files(
    database: Database, store: ObjectStore, run: SourceRunRow, directory: Path
) -> Sequence[Path]:
    """The files of a run in a directory. Raises SourceProblem when one was deleted."""
    config = run.plan["config"]
    if "content" in config:
        path = directory / "content"
        path.write_bytes(base64.b64decode(config["content"]))
        return [path]
    if "fileId" in config:
        async with database.transaction() as work:
            return [await file_at(work, store, run.workspace_id, config, directory)]
    pages = range(run.progress["pages"])
    return [await copied(store, page_key(run, page), directory / f"{page}") for page in pages]
