"""Jobs that read the first rows of a source."""

from pathlib import Path

from typing_extensions import override

from activities.data_source_runs.inputs import file_at, read_options_of, scratch
from activities.jobs.open_transactions import keep_open
from activities.jobs.transactions import Chunks
from activities.sources.fetching import HttpSource, fetch_first_page
from activities.sources.reading import reading
from activities.sources.requests import HTTP_KINDS, auth_headers
from models.core.base import JsonObject
from models.messages.jobs.tables import Job
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.tabular.rules.problems import SourceProblem
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient

PROFILED = 1_000
"""Rows by which the kinds of columns are told."""
READ_SECONDS = 30.0
FETCH_SECONDS = 45.0
"""Seconds for the first page: whoever asked is answered within a minute."""


class SourcePreviews(Chunks):
    """Fetches the first page, reads it, and keeps only what is shown."""

    def __init__(self, store: ObjectStore, outbound: OutboundClient, keys: KeyRing) -> None:
        self._store = store
        self._outbound = outbound
        self._keys = keys

    @override
    async def advance(self, work: UnitOfWork, job: Job) -> JsonObject | None:
        if "rows" in job.progress:
            return None
        try:
            return await self._read(work, job)
        except SourceProblem as problem:
            raise ValidationError(problem.message) from problem

    @override
    async def result(self, work: UnitOfWork, job: Job) -> JsonObject:
        return job.progress

    async def _read(self, work: UnitOfWork, job: Job) -> JsonObject:
        kind, config = DataSourceKind(job.input["kind"]), job.input["config"]
        charset = None
        async with scratch() as directory:
            if kind in HTTP_KINDS:
                headers = await auth_headers(work, self._keys, job.workspace_id, config)
                path = directory / "page-0"
                source = HttpSource(self._outbound, kind, config, headers, seconds=FETCH_SECONDS)
                charset = await keep_open(work, fetch_first_page(source, path))
            else:
                path = await file_at(work, self._store, job.workspace_id, config, directory)
            described = await keep_open(work, self._described(path, job, charset))
        if not described["rows"]:
            described["warning"] = "The source has no rows."
        return described

    async def _described(self, path: Path, job: Job, charset: str | None) -> JsonObject:
        options = read_options_of(job.input["kind"], job.input["config"], charset)
        async with reading([path], options, READ_SECONDS) as table:
            return await table.describe(job.input["limit"], PROFILED)
