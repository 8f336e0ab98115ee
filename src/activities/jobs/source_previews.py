"""Jobs that read the first rows of a source."""

from pathlib import Path

from typing_extensions import override

from activities.data_source_runs.inputs import read_options_of, scratch
from activities.jobs.transactions import Chunks
from activities.open_transactions import keep_open
from activities.sources.fetchers import Fetchers, Wanted
from activities.sources.fetching import Fetched
from activities.sources.reading import reading
from activities.sources.stored import file_at
from models.core.base import JsonObject
from models.messages.jobs.rows import JobRow
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.tabular.rules.options import ReadOptions
from models.sources.tabular.rules.problems import SourceProblem
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.object_store import ObjectStore

PROFILED = 1_000
"""Rows by which the kinds of columns are told."""
READ_SECONDS = 30.0


class SourcePreviews(Chunks):
    """Fetches the first rows, reads them, and keeps only what is shown."""

    def __init__(self, store: ObjectStore, fetchers: Fetchers) -> None:
        self._store = store
        self._fetchers = fetchers

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        if "rows" in job.progress:
            return None
        try:
            return await self._read(work, job)
        except SourceProblem as problem:
            raise ValidationError(problem.message) from problem

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    async def _read(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        kind, config = DataSourceKind(job.input["kind"]), job.input["config"]
        wanted = Wanted(job.workspace_id, job.actor_user_id, kind, config)
        fetched = Fetched()
        async with scratch() as directory:
            if wanted.stored:
                path = await file_at(work, self._store, job.workspace_id, config, directory)
            else:
                path = directory / "sample"
                access = await self._fetchers.access(work, wanted)
                sampled = self._fetchers.sample(wanted, access, path, PROFILED)
                fetched = await keep_open(work, sampled)
            options = read_options_of(wanted, fetched)
            described = await keep_open(work, _described(path, options, job.input["limit"]))
        if not described["rows"]:
            described["warning"] = "The source has no rows."
        return described


async def _described(path: Path, options: ReadOptions, limit: int) -> JsonObject:
    async with reading([path], options, READ_SECONDS) as table:
        return await table.describe(limit, PROFILED)
