"""Jobs of data sources: the first rows of a source, and the reversal of a run."""

import asyncio
import base64
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from activities.data_source_runs import inputs
from activities.jobs.transactions import Chunks, ask_outside
from activities.sources.fetchers import Access, Fetchers, Wanted, copied, object_key
from activities.sources.fetching import Fetched
from activities.sources.reading import reading
from activities.sources.reading_process import PROFILED, Check
from models.core.base import Id, JsonObject
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldSpecs, Schema
from models.messages.jobs.store import JobRow, job_actor
from models.sources.data_source_runs.comparison import count_keyed
from models.sources.data_source_runs.reversal import revert_run
from models.sources.data_source_runs.rules import missing_rows
from models.sources.data_source_runs.targets import fields_of
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import SourceProblem
from runtime.database import Transaction, UnitOfWork
from runtime.errors import ValidationError
from runtime.keyed_limiter import KeyedLimiter
from runtime.object_store import ObjectStore

SAMPLED = 1_000
"""Rows that are asked of a database."""
READ_SECONDS = 30.0
READ_AT_ONCE = 4
"""Previews that one worker reads at once, each in a process of its own."""
READ_OF_ONE = 2
"""Previews of one workspace among them: others find a place at once."""
_PATIENCE_SECONDS = 240.0


class _Request(NamedTuple):
    """The rows to show, and the fields that all that are read are checked against."""

    limit: int
    fields: Sequence[JsonObject]
    schema: Schema | None
    row_keys: Sequence[str]

    @property
    def schema_fields(self) -> FieldSpecs | None:
        return None if self.schema is None else self.schema.fields


class SourcePreviews(Chunks):
    """Fetches and reads the first rows, and keeps only the shown ones."""

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
        request = await _asked(work, job)
        if "content" in config:
            described = self._read_sent(source, request)
        elif source.stored:
            key = await object_key(work, job.workspace_id, config)
            described = self._read_stored(source, key, request)
        else:
            access = await self._fetchers.access(work, source)
            described = self._read_sample(source, access, request)
        answer = await ask_outside(work, job, described)
        keyed = answer.pop("keyed", [])
        if request.schema is not None and request.row_keys:
            answer["changes"] = await count_keyed(work, request.schema, keyed, request.row_keys)
        if not answer["rows"]:
            answer["warning"] = "The source has no rows."
        return answer

    async def _read_stored(self, wanted: Wanted, key: str, request: _Request) -> JsonObject:
        async with inputs.scratch() as directory:
            path = await copied(self._store, key, directory / "file")
            return await self._described(path, wanted, Fetched(), request)

    async def _read_sent(self, wanted: Wanted, request: _Request) -> JsonObject:
        async with inputs.scratch() as directory:
            path = directory / "content"
            path.write_bytes(base64.b64decode(wanted.config["content"]))
            return await self._described(path, wanted, Fetched(), request)

    async def _read_sample(self, wanted: Wanted, access: Access, request: _Request) -> JsonObject:
        async with inputs.scratch() as directory:
            path = directory / "sample"
            fetched = await self._fetchers.sample(wanted, access, path, SAMPLED)
            described = await self._described(path, wanted, fetched, request)
            # A further page, or a database query that was limited to its first rows.
            is_first = access.address is not None and fetched.rows >= SAMPLED
            is_part = fetched.next is not None or is_first
            stated = max(described["stated"] or 0, fetched.stated or 0)
            missing = stated - described["rowsRead"]
            if missing > 0 and not is_part and not described["sampled"]:
                described["warning"] = described["warning"] or missing_rows(missing)
            return {**described, "sampled": described["sampled"] or is_part}

    async def _described(
        self, path: Path, wanted: Wanted, fetched: Fetched, request: _Request
    ) -> JsonObject:
        options = inputs.read_options_of(wanted, fetched)
        async with (
            self._shares.slot(wanted.workspace_id),
            self._readers,
            reading([path], options, READ_SECONDS) as table,
        ):
            described = await table.describe(
                request.limit,
                PROFILED,
                sources=inputs.kinds_of(request.fields, request.schema_fields or {}),
                targets={key: spec.kind for key, spec in (request.schema_fields or {}).items()},
            )
            mapping = inputs.mapping_of(request.fields, described)
            fields = fields_of(mapping, request.schema_fields, suggested=not request.fields)
            places = inputs.places_of(mapping, described["headers"])
            check = await table.check(
                Check(
                    [places.get(entry.field_key) for entry in mapping],
                    fields,
                    Conventions.of(described["conventions"]),
                    described["rowsRead"],
                    request.row_keys if request.schema is not None else (),
                )
            )
        for column in described["columns"]:
            column["options"] = column.pop("choices") or None
        return {**described, **check, "rowCount": described["rowsRead"]}


async def _asked(work: UnitOfWork, job: JobRow) -> _Request:
    """The request of a preview to its source.

    Raises NotFoundError for a target that was deleted.
    """
    target, schema = job.input.get("targetDatabaseId"), None
    if target is not None:
        schema = await load_schema(work, job.workspace_id, Id(target))
    keys = job.input.get("keyFields", ())
    return _Request(job.input["limit"], job.input.get("fields", ()), schema, keys)


class SourceReversals(Chunks):
    """Reverts a run in one chunk, so that no reader sees half of it."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        await revert_run(work, await job_actor(work, job), job.subject_id)
        return None
