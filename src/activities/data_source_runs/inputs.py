"""Where a run's rows come from: fetched pages, a stored file, or what the caller sent."""

import base64
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from activities.sources.fetching import FORMATS
from models.content.files.queries import find_file
from models.core.base import Id, JsonObject
from models.sources.data_source_runs.tables import DataSourceRun
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.tabular.rules.configs import read_options
from models.sources.tabular.rules.options import ReadOptions, TableFormat
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.database import Database, UnitOfWork
from runtime.object_store import ObjectStore


def page_key(run: DataSourceRun, page: int) -> str:
    """The object of a fetched page."""
    return f"data-source-runs/{run.workspace_id}/{run.id}/{page}"


def read_options_of(kind: str, config: JsonObject, charset: str | None = None) -> ReadOptions:
    """How the files of a config are read, which their server says are written in `charset`."""
    named = config.get("format") or FORMATS.get(DataSourceKind(kind), TableFormat.JSON)
    return read_options(config, TableFormat(named), charset)


@asynccontextmanager
async def scratch() -> AsyncIterator[Path]:
    """A directory that is removed when the block ends."""
    directory = Path(tempfile.mkdtemp(prefix="workspace-source-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def bytes_in(directory: Path) -> int:
    """The bytes of the files of a directory, while others write and remove them."""
    size = 0
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


async def input_files(
    database: Database, store: ObjectStore, run: DataSourceRun, directory: Path
) -> Sequence[Path]:
    """The files of a run in a directory. Raises SourceProblem when one is gone."""
    config = run.plan["config"]
    if "content" in config:
        path = directory / "content"
        path.write_bytes(base64.b64decode(config["content"]))
        return [path]
    if DataSourceKind(run.plan["kind"]) is DataSourceKind.FILE:
        async with database.transaction() as work:
            return [await file_at(work, store, run.workspace_id, config, directory)]
    pages = range(run.progress["pages"])
    return [await _copied(store, page_key(run, page), directory / f"{page}") for page in pages]


async def file_at(
    work: UnitOfWork, store: ObjectStore, workspace_id: Id, config: JsonObject, directory: Path
) -> Path:
    """The stored file that a config names, in a directory. Raises SourceProblem when it is gone."""
    found = await find_file(work, workspace_id, Id(config["fileId"]))
    if found is None:
        raise SourceProblem(ErrorKind.FETCH, "The file is gone. Name another fileId.", final=True)
    return await _copied(store, found.object_key, directory / "file")


async def _copied(store: ObjectStore, key: str, path: Path) -> Path:
    with path.open("wb") as file:
        try:
            async for piece in store.get(key):
                file.write(piece)
        except FileNotFoundError:
            message = "The content of the file is gone."
            raise SourceProblem(ErrorKind.FETCH, message, final=True) from None
    return path
