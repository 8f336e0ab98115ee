"""Converting a field to another kind: preview, acceptance, staged values, steps of the job.

The job converts values into a staging table, and its last transaction applies them to all records
together with the change of the field. Nothing is visible before, and a conversion that fails
changes nothing. Records in the trash are converted too, because they may be restored; they are not
counted.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import Field, SQLModel

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.values import InvalidValueError, moment
from models.data.databases import field_changes, rules, shapes
from models.data.fields.commands import own_fields, own_schema, write_database, write_field
from models.data.fields.queries import get_field, load_schema
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.shapes import FieldShape
from models.data.formulas.rules import FieldRef
from models.data.records.rows import WRITTEN, recording_creations
from models.data.records.tables import record
from models.messages.jobs import store as job_store
from models.messages.jobs.rules import OPEN_JOB
from runtime.clock import truncate
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.workflow_kinds import WorkflowKind


class FieldConversionValue(SQLModel, table=True):
    """A value converted by the job `job_id`, not yet applied to its record; None when it is lost.

    `record_updated_at` is the `updated_at` of the record when its value was converted.
    """

    __tablename__ = "field_conversion_value"
    __table_args__ = (same_workspace("job_id", "job.id", ondelete="CASCADE"),)

    job_id: Id = Field(primary_key=True)
    record_id: Id = Field(primary_key=True)
    workspace_id: Id
    value: Any = Field(default=None, sa_type=JSONB(none_as_null=True), nullable=True)
    record_updated_at: datetime = Field(sa_type=Timestamp)


conversion_value = table_of(FieldConversionValue)


MAX_EXAMINED = 10_000
MAX_SAMPLES = 20


async def preview_conversion(
    work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id, body: shapes.ConvertField
) -> shapes.ConversionPreview:
    """Preview the outcome of a conversion, judged by the values of the first records.

    Raises what `accept_conversion` raises.
    """
    spec, target, shape = await _planned(work, actor, database_id, field_id, body)
    source = Source(actor.workspace_id, database_id, spec.key)
    rows = await first_values(work, source, MAX_EXAMINED)
    converter = rules.Converter(spec, target, new_id, grows=_grows(target, body))
    values = converter.convert(row.value for row in rows)
    pairs = list(zip(rows, values, strict=True))
    # Lost values first: they are what a preview is for.
    pairs.sort(key=lambda pair: pair[1] is not None)
    lost_count = sum(value is None for value in values)
    return shapes.ConversionPreview(
        field=_as_it_would_be(shape, converter.with_default()),
        total=await number_of_values(work, source),
        examined=len(rows),
        convertible=len(rows) - lost_count,
        lost=lost_count,
        samples=[
            shapes.ConversionSample(record_id=row.id, from_=row.value, to=value)
            for row, value in pairs[:MAX_SAMPLES]
        ],
    )


async def accept_conversion(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    job_id: Id,
    body: shapes.ConvertField,
) -> None:
    """Accept the job that converts a field; nothing happens when `job_id` is accepted already.

    Raises `NotFoundError`, `UnsupportedError` for kinds without values in common,
    `ValidationError`, `ConflictError` when the field was changed since it was read or a derived
    field could not follow, `InProgressError` while another conversion runs.
    """
    if await _accepted(work, actor, field_id, job_id):
        return
    spec, target, _ = await _planned(work, actor, database_id, field_id, body)
    await job_store.accept_job(
        work,
        actor,
        WorkflowKind.FIELD_CONVERSION,
        job_id,
        field_id,
        summary=f"Convert a field from {spec.kind} to {target.kind}",
        input={
            "databaseId": str(database_id),
            "from": rules.described(spec),
            "to": rules.described(target),
            "grows": _grows(target, body),
        },
    )


async def conversion_outcome(
    work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id, job_id: Id, *, last: bool
) -> shapes.ConvertedField | None:
    """The field when its conversion is done, None while it is not.

    Raises `ConflictError` when it failed, `InProgressError` when this is the last time to ask.
    """
    job = await job_store.succeeded_job(
        work,
        actor.workspace_id,
        WorkflowKind.FIELD_CONVERSION,
        job_id,
        failed="The conversion was stopped; the field is unchanged.",
        in_progress=_STILL_CONVERTING if last else None,
    )
    if job is None:
        return None
    field = await get_field(work, actor.workspace_id, database_id, field_id)
    return shapes.ConvertedField(field=field, **(job.result or {}))


_STILL_CONVERTING = (
    "The field is still being converted. Repeat the request with the same Idempotency-Key for the"
    " outcome."
)


async def _accepted(work: UnitOfWork, actor: Actor, field_id: Id, job_id: Id) -> bool:
    """True when this conversion was accepted. Raises `InProgressError` while another runs."""
    rows = await work.rows(
        job_store.jobs_of(
            actor.workspace_id,
            WorkflowKind.FIELD_CONVERSION,
            job_store.JOB.id,
            job_store.JOB.status,
        ).where(job_store.JOB.subject_id == field_id)
    )
    if any(row.id == job_id for row in rows):
        return True
    if any(row.status in OPEN_JOB for row in rows):
        raise InProgressError("The field is already being converted. Try again later.")
    return False


async def _planned(
    work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id, body: shapes.ConvertField
) -> tuple[FieldSpec, FieldSpec, FieldShape]:
    """The field as it is, the field it becomes, and its present shape."""
    expected_updated_at = None
    if body.expected_updated_at is not None:
        try:
            expected_updated_at = truncate(moment(body.expected_updated_at))
        except InvalidValueError as problem:
            raise ValidationError.at("expectedUpdatedAt", str(problem)) from problem
    schema = await load_schema(work, actor.workspace_id, database_id)
    spec = field_changes.held_field(schema, field_id)
    shape = await field_changes.expected_field(
        work, actor, database_id, field_id, expected_updated_at
    )
    target = rules.plan_conversion(spec, body, new_id)
    await field_changes.check_change(
        work, actor.workspace_id, FieldRef(database_id, spec.key), target, actor
    )
    return spec, target, shape


def _grows(target: FieldSpec, body: shapes.ConvertField) -> bool:
    """True when values may add options: none are listed, or the field lets writers add some."""
    return body.options is None or target.settings.get("allowCreate") is True


def _as_it_would_be(shape: FieldShape, target: FieldSpec) -> FieldShape:
    return FieldShape.model_validate(
        {
            **shape.model_dump(),
            "kind": target.kind,
            "settings": target.settings,
            "options": [option.wire() for option in target.options],
            "default_value": target.default,
        }
    )


async def convert_chunk(work: UnitOfWork, job: job_store.JobRow) -> JsonObject | None:
    """One step of the job: convert the values of more records, or apply all of them.

    Gives the progress from which the next step continues, None after the last. Raises
    `ConflictError` when the field was changed since the conversion was accepted.
    """
    progress: JsonObject = job.progress
    if progress.get("read"):
        return await _finish(work, job)
    source, converter = await _resumed(work, job)
    after = progress.get("after")
    rows = await values_after(work, source, None if after is None else Id(after))
    filled = [row for row in rows if row.value is not None]
    await stage_values(work, source, job.id, filled, converter.convert(r.value for r in filled))
    state = {"options": rules.described(converter.to_spec)["options"]}
    if len(rows) < CHUNK:
        await analyze_staged(work)
        return {**state, "read": True}
    return {**state, "after": str(rows[-1].id)}


async def _finish(work: UnitOfWork, job: job_store.JobRow) -> JsonObject | None:
    """Convert values written meanwhile, and apply everything while writers wait."""
    database_id = Id(job.input["databaseId"])
    await own_fields(work, job.workspace_id)
    await own_schema(work, database_id)
    source, converter = await _resumed(work, job)
    rows = await unstaged_values(work, source, job.id)
    behind = rows[:CHUNK]
    await stage_values(work, source, job.id, behind, converter.convert(r.value for r in behind))
    if len(rows) > CHUNK:
        return {**job.progress, "options": rules.described(converter.to_spec)["options"]}
    changed = converter.with_default()
    await field_changes.write_derived(
        work, job.workspace_id, FieldRef(database_id, source.key), changed
    )
    await write_field(work, job.workspace_id, changed, values_change=True)
    await write_database(work, job.workspace_id, database_id)
    await field_changes.remove_invalid_usages(
        work, await load_schema(work, job.workspace_id, database_id), source.key
    )
    converted, lost = await count_staged(work, source, job.id)
    await job_store.record_progress(work, job.id, {"converted": converted, "lost": lost})
    await apply_staged(work, source, job.id)
    while not await delete_staged(work, job.workspace_id, job.id):
        pass
    ref = FieldRef(database_id, source.key)
    await field_changes.recompute_dependents(work, job.workspace_id, ref, job.actor_user_id)
    return None


class Source(NamedTuple):
    """The values of one field."""

    workspace_id: Id
    database_id: Id
    key: str

    @property
    def records(self) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            record.c.workspace_id == self.workspace_id,
            record.c.database_id == self.database_id,
        )

    @property
    def filled(self) -> sa.ColumnElement[bool]:
        """True when a record has a value."""
        return record.c.data.op("?")(self.key)

    @property
    def shown(self) -> tuple[sa.ColumnElement[bool], ...]:
        """The conditions of the records outside the trash that have a value."""
        return (*self.records, self.filled, record.c.deleted_at.is_(None))

    def read(self) -> sa.Select[Any]:
        """Records with their values, as `FieldValueRow`s."""
        return sa.select(
            record.c.id, record.c.data[self.key].label("value"), record.c.updated_at
        ).where(*self.records)


async def _resumed(work: UnitOfWork, job: job_store.JobRow) -> tuple[Source, rules.Converter]:
    """The values of the field, and its converter in the state the last step stored."""
    database_id = Id(job.input["databaseId"])
    schema = await load_schema(work, job.workspace_id, database_id)
    spec = field_changes.held_field(schema, job.subject_id)
    if not rules.is_unchanged(spec, job.input["from"]):
        raise ConflictError("The field was changed while it was being converted.")
    target = {**job.input["to"], **job.progress}
    kept = {name: target[name] for name in ("kind", "settings", "options")}
    converter = rules.Converter(
        spec, rules.with_described(spec, kept), new_id, grows=job.input["grows"]
    )
    return Source(job.workspace_id, database_id, spec.key), converter


async def conversion_result(work: UnitOfWork, job: job_store.JobRow) -> JsonObject:
    """The numbers of values that were converted and that were lost."""
    current_job = await job_store.find_job(
        work, job.workspace_id, WorkflowKind.FIELD_CONVERSION, job.id
    )
    counts: JsonObject = current_job.progress
    return counts


CHUNK = 2_000
"""Records whose values one transaction converts."""
APPLY_BATCH = 20_000
"""Records that one statement changes, well within its timeout."""


class FieldValueRow(Protocol):
    """A record with the value of one field."""

    id: Id
    value: Any
    updated_at: datetime


async def first_values(work: UnitOfWork, source: Source, most: int) -> Sequence[FieldValueRow]:
    """The first records outside the trash that have a value."""
    statement = source.read().where(*source.shown).order_by(record.c.id).limit(most)
    return await work.rows(statement, of=FieldValueRow)


async def number_of_values(work: UnitOfWork, source: Source) -> int:
    """The number of records outside the trash that have a value."""
    counted: int = await work.scalar(
        sa.select(sa.func.count()).select_from(record).where(*source.shown)
    )
    return counted


async def values_after(
    work: UnitOfWork, source: Source, after: Id | None
) -> Sequence[FieldValueRow]:
    """The next records after one, in the order of their ids; their `value` may be None."""
    statement = source.read().order_by(record.c.id).limit(CHUNK)
    if after is not None:
        statement = statement.where(record.c.id > after)
    return await work.rows(statement, of=FieldValueRow)


async def unstaged_values(work: UnitOfWork, source: Source, job_id: Id) -> Sequence[FieldValueRow]:
    """Records whose value is not staged, or was changed since; at most one more than a chunk."""
    prepared = sa.and_(
        conversion_value.c.job_id == job_id,
        conversion_value.c.workspace_id == source.workspace_id,
        conversion_value.c.record_id == record.c.id,
    )
    return await work.rows(
        source.read()
        .outerjoin(conversion_value, prepared)
        .where(
            source.filled,
            sa.or_(
                conversion_value.c.record_id.is_(None),
                conversion_value.c.record_updated_at != record.c.updated_at,
            ),
        )
        .limit(CHUNK + 1),
        of=FieldValueRow,
    )


async def stage_values(
    work: UnitOfWork,
    source: Source,
    job_id: Id,
    rows: Sequence[FieldValueRow],
    values: Sequence[Any],
) -> None:
    """Stage the converted `values` of these records."""
    prepared = [
        {"record_id": row.id, "value": value, "record_updated_at": row.updated_at}
        for row, value in zip(rows, values, strict=True)
    ]
    parameters = {
        "job_id": job_id,
        "workspace_id": source.workspace_id,
        "rows": to_json(prepared).decode(),
    }
    await _STAGE.execute(work, parameters)


_ROWS = (
    sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("rows", type_=sa.Text), JSONB))
    .table_valued(
        sa.column("record_id", sa.Uuid),
        sa.column("value", JSONB),
        sa.column("record_updated_at", Timestamp),
    )
    .render_derived(name="entry", with_types=True)
)
_STAGED_ROWS = insert(conversion_value).from_select(
    ["job_id", "workspace_id", "record_id", "value", "record_updated_at"],
    sa.select(
        sa.bindparam("job_id", type_=sa.Uuid),
        sa.bindparam("workspace_id", type_=sa.Uuid),
        _ROWS.c.record_id,
        _ROWS.c.value,
        _ROWS.c.record_updated_at,
    ),
)
_STAGE = PreparedStatement(
    _STAGED_ROWS.on_conflict_do_update(
        index_elements=["job_id", "record_id"],
        set_={
            "value": _STAGED_ROWS.excluded.value,
            "record_updated_at": _STAGED_ROWS.excluded.record_updated_at,
        },
    )
)


async def analyze_staged(work: UnitOfWork) -> None:
    """Let the planner know how much is staged: it takes a table it knows nothing of for small."""
    await work.execute(sa.text(f"ANALYZE {conversion_value.name}"))


async def apply_staged(work: UnitOfWork, source: Source, job_id: Id) -> None:
    """Write the staged values into their records."""
    upto: Id | None = None
    while (last := await _batch_end(work, source.workspace_id, job_id, upto)) is not None:
        without = record.c.data.op("-", return_type=JSONB())(sa.literal(source.key, sa.Text))
        value = sa.func.jsonb_build_object(source.key, conversion_value.c.value, type_=JSONB)
        conditions = (
            *source.records,
            source.filled,
            *_staged(source.workspace_id, job_id),
            *([] if upto is None else [conversion_value.c.record_id > upto]),
            conversion_value.c.record_id <= last,
            record.c.id == conversion_value.c.record_id,
            record.c.updated_at == conversion_value.c.record_updated_at,
        )
        data = sa.case(
            (conversion_value.c.value.is_(None), without),
            else_=record.c.data.op("||", return_type=JSONB())(value),
        )
        await work.execute(
            sa.update(record)
            .where(*conditions)
            .values({record.c.data: data, **WRITTEN})
            .add_cte(recording_creations(*conditions).cte("creations"))
        )
        upto = last


async def _batch_end(work: UnitOfWork, workspace_id: Id, job_id: Id, after: Id | None) -> Id | None:
    """The last record of the next batch after one; None when no more follow."""
    ids = (
        sa.select(conversion_value.c.record_id)
        .where(*_staged(workspace_id, job_id))
        .order_by(conversion_value.c.record_id)
        .limit(APPLY_BATCH)
    )
    if after is not None:
        ids = ids.where(conversion_value.c.record_id > after)
    chosen = ids.subquery()
    last = sa.select(chosen.c.record_id).order_by(chosen.c.record_id.desc()).limit(1)
    found: Id | None = await work.scalar(last)
    return found


async def count_staged(work: UnitOfWork, source: Source, job_id: Id) -> tuple[int, int]:
    """The numbers of records outside the trash that get a value, and that lose theirs."""
    kept = conversion_value.c.value.is_not(None)
    counts = await work.first(
        sa.select(
            sa.func.count().filter(kept).label("converted"),
            sa.func.count().filter(~kept).label("lost"),
        )
        .select_from(conversion_value)
        .join(record, record.c.id == conversion_value.c.record_id)
        .where(
            *_staged(source.workspace_id, job_id),
            *source.records,
            source.filled,
            record.c.deleted_at.is_(None),
        )
    )
    assert counts is not None, "a count always gives a row"
    return counts.converted, counts.lost


async def delete_staged(work: UnitOfWork, workspace_id: Id, job_id: Id) -> bool:
    """Delete a batch of staged values; True when none are left."""
    last = await _batch_end(work, workspace_id, job_id, None)
    if last is None:
        return True
    await work.execute(
        sa.delete(conversion_value).where(
            *_staged(workspace_id, job_id), conversion_value.c.record_id <= last
        )
    )
    return False


def _staged(workspace_id: Id, job_id: Id) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        conversion_value.c.job_id == job_id,
        conversion_value.c.workspace_id == workspace_id,
    )
