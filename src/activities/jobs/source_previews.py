"""Jobs that read the first rows of a source."""

import asyncio
import base64
from pathlib import Path

from typing_extensions import override

from activities.data_source_runs.inputs import read_options_of, scratch
from activities.jobs.transactions import Chunks, ask_outside
from activities.sources.fetchers import Access, Fetchers, Wanted
from activities.sources.fetching import Fetched
from activities.sources.reading import reading
from activities.sources.stored import copied, object_key
from models.core.base import JsonObject
from models.messages.jobs.rows import JobRow
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.tabular.rules.problems import SourceProblem
from runtime.database import Transaction, UnitOfWork
from runtime.errors import ValidationError
from runtime.keyed_limiter import KeyedLimiter
from runtime.object_store import ObjectStore

PROFILED = 1_000
"""Rows by which the kinds of columns are told."""
READ_SECONDS = 30.0
READ_AT_ONCE = 4
"""Previews that one worker reads at once, each in a process of its own."""
READ_OF_ONE = 2
"""Previews of one workspace among them: others find a place at once."""
_PATIENCE_SECONDS = 240.0


class SourcePreviews(Chunks):
    """Fetches the first rows, reads them, and keeps only what is shown."""

    def __init__(self, store: ObjectStore, fetchers: Fetchers) -> None:
        self._store = store
        self._fetchers = fetchers
        self._readers = asyncio.Semaphore(READ_AT_ONCE)
        self._shares = KeyedLimiter(READ_OF_ONE, _PATIENCE_SECONDS)

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        if "rows" in job.progress:
            return None
        try:
            return await self._read(work, job)
        except SourceProblem as problem:
            raise ValidationError(problem.message) from problem

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    async def _read(self, work: Transaction, job: JobRow) -> JsonObject:
        kind, config = DataSourceKind(job.input["kind"]), job.input["config"]
        source = Wanted(job.workspace_id, job.actor_user_id, kind, config)
        if "content" in config:
            described = self._read_sent(source, job.input["limit"])
        elif source.stored:
            key = await object_key(work, job.workspace_id, config)
            described = self._read_stored(source, key, job.input["limit"])
        else:
            access = await self._fetchers.access(work, source)
            described = self._read_sample(source, access, job.input["limit"])
        answer = await ask_outside(work, job, described)
        if not answer["rows"]:
            answer["warning"] = "The source has no rows."
        return answer

    async def _read_stored(self, wanted: Wanted, key: str, limit: int) -> JsonObject:
        async with scratch() as directory:
            path = await copied(self._store, key, directory / "file")
            return await self._described(path, wanted, Fetched(), limit)

    async def _read_sent(self, wanted: Wanted, limit: int) -> JsonObject:
        async with scratch() as directory:
            path = directory / "content"
            path.write_bytes(base64.b64decode(wanted.config["content"]))
            return await self._described(path, wanted, Fetched(), limit)

    async def _read_sample(self, wanted: Wanted, access: Access, limit: int) -> JsonObject:
        async with scratch() as directory:
            path = directory / "sample"
            fetched = await self._fetchers.sample(wanted, access, path, PROFILED)
            return await self._described(path, wanted, fetched, limit)

    async def _described(
        self, path: Path, wanted: Wanted, fetched: Fetched, limit: int
    ) -> JsonObject:
        options = read_options_of(wanted, fetched)
        async with (
            self._shares.slot(wanted.workspace_id),
            self._readers,
            reading([path], options, READ_SECONDS) as table,
        ):
            return await table.describe(limit, PROFILED)
