"""Converting a field to another kind: preview, acceptance, and the steps of the job.

The job converts values into a staging table (`conversion_staging`), and its last transaction
applies them to all records together with the change of the field. Nothing is visible before, and
a conversion that fails changes nothing.
"""

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.values import InvalidValueError, moment
from models.data.databases.commands.conversion_staging import (
    CHUNK,
    Source,
    analyze_staged,
    apply_staged,
    count_staged,
    delete_staged,
    first_values,
    number_of_values,
    stage_values,
    unstaged_values,
    values_after,
)
from models.data.databases.commands.derived_fields import (
    check_change,
    recompute_dependents,
    write_derived,
)
from models.data.databases.commands.field_usages import remove_invalid_usages
from models.data.databases.commands.fields import expect, held_field
from models.data.databases.rules.field_conversion import (
    Converter,
    described,
    is_unchanged,
    with_described,
)
from models.data.databases.rules.plan import plan_conversion
from models.data.databases.shapes import (
    ConversionPreview,
    ConversionSample,
    ConvertedField,
    ConvertField,
)
from models.data.fields.commands import write_database, write_field
from models.data.fields.locks import own_fields, own_schema
from models.data.fields.queries import get_field, load_schema
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.shapes import FieldShape
from models.data.formulas.rules.derived_fields import FieldRef
from models.messages.jobs.commands import accept_job, record_progress
from models.messages.jobs.queries import JOB, find_job, jobs_of, succeeded_job
from models.messages.jobs.rows import JobRow
from models.messages.jobs.rules import OPEN_JOB
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError, ValidationError
from runtime.families import Family
from runtime.ids import new_id
from runtime.timestamps import truncate

MAX_EXAMINED = 10_000
MAX_SAMPLES = 20


async def preview_conversion(
    work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id, body: ConvertField
) -> ConversionPreview:
    """Preview the outcome of a conversion, judged by the values of the first records.

    Raises what `accept_conversion` raises.
    """
    spec, target, shape = await _planned(work, actor, database_id, field_id, body)
    source = Source(actor.workspace_id, database_id, spec.key)
    rows = await first_values(work, source, MAX_EXAMINED)
    converter = Converter(spec, target, new_id, grows=_grows(target, body))
    values = converter.convert(row.value for row in rows)
    pairs = list(zip(rows, values, strict=True))
    # Lost values first: they are what a preview is for.
    pairs.sort(key=lambda pair: pair[1] is not None)
    lost_count = sum(value is None for value in values)
    return ConversionPreview(
        field=_as_it_would_be(shape, converter.with_default()),
        total=await number_of_values(work, source),
        examined=len(rows),
        convertible=len(rows) - lost_count,
        lost=lost_count,
        samples=[
            ConversionSample(record_id=row.id, from_=row.value, to=value)
            for row, value in pairs[:MAX_SAMPLES]
        ],
    )


async def accept_conversion(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    job_id: Id,
    body: ConvertField,
) -> None:
    """Accept the job that converts a field; nothing happens when `job_id` is accepted already.

    Raises `NotFoundError`, `UnsupportedError` for kinds without values in common,
    `ValidationError`, `ConflictError` when the field was changed since it was read or a derived
    field could not follow, `InProgressError` while another conversion runs.
    """
    if await _accepted(work, actor, field_id, job_id):
        return
    spec, target, _ = await _planned(work, actor, database_id, field_id, body)
    await accept_job(
        work,
        actor,
        Family.FIELD_CONVERSION,
        job_id,
        field_id,
        summary=f"Convert a field from {spec.kind} to {target.kind}",
        input={
            "databaseId": str(database_id),
            "from": described(spec),
            "to": described(target),
            "grows": _grows(target, body),
        },
    )


async def conversion_outcome(
    work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id, job_id: Id, *, last: bool
) -> ConvertedField | None:
    """The field when its conversion is done, None while it is not.

    Raises `ConflictError` when it failed, `InProgressError` when this is the last time to ask.
    """
    job = await succeeded_job(
        work,
        actor.workspace_id,
        Family.FIELD_CONVERSION,
        job_id,
        failed="The conversion was ended; the field is as it was.",
        in_progress=_STILL_CONVERTING if last else None,
    )
    if job is None:
        return None
    field = await get_field(work, actor.workspace_id, database_id, field_id)
    return ConvertedField(field=field, **(job.result or {}))


_STILL_CONVERTING = (
    "The field is still being converted; until that is done it is as it was. Repeat the"
    " request with the same Idempotency-Key for the outcome."
)


async def _accepted(work: UnitOfWork, actor: Actor, field_id: Id, job_id: Id) -> bool:
    """True when this conversion was accepted. Raises `InProgressError` while another runs."""
    rows = await work.rows(
        jobs_of(actor.workspace_id, Family.FIELD_CONVERSION, JOB.id, JOB.status).where(
            JOB.subject_id == field_id
        )
    )
    if any(row.id == job_id for row in rows):
        return True
    if any(row.status in OPEN_JOB for row in rows):
        raise InProgressError("The field is being converted already. Try again later.")
    return False


async def _planned(
    work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id, body: ConvertField
) -> tuple[FieldSpec, FieldSpec, FieldShape]:
    """The field as it is, the field it becomes, and its present shape."""
    expected_updated_at = None
    if body.expected_updated_at is not None:
        try:
            expected_updated_at = truncate(moment(body.expected_updated_at))
        except InvalidValueError as problem:
            raise ValidationError.at("expectedUpdatedAt", str(problem)) from problem
    schema = await load_schema(work, actor.workspace_id, database_id)
    spec = held_field(schema, field_id)
    shape = await expect(work, actor, database_id, field_id, expected_updated_at)
    target = plan_conversion(spec, body, new_id)
    await check_change(work, actor.workspace_id, FieldRef(database_id, spec.key), target, actor)
    return spec, target, shape


def _grows(target: FieldSpec, body: ConvertField) -> bool:
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


async def convert_chunk(work: UnitOfWork, job: JobRow) -> JsonObject | None:
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
    state = {"options": described(converter.to_spec)["options"]}
    if len(rows) < CHUNK:
        await analyze_staged(work)
        return {**state, "read": True}
    return {**state, "after": str(rows[-1].id)}


async def _finish(work: UnitOfWork, job: JobRow) -> JsonObject | None:
    """Convert what was written meanwhile, and apply everything while nobody can write."""
    database_id = Id(job.input["databaseId"])
    await own_fields(work, job.workspace_id)
    await own_schema(work, database_id)
    source, converter = await _resumed(work, job)
    rows = await unstaged_values(work, source, job.id)
    behind = rows[:CHUNK]
    await stage_values(work, source, job.id, behind, converter.convert(r.value for r in behind))
    if len(rows) > CHUNK:
        return {**job.progress, "options": described(converter.to_spec)["options"]}
    changed = converter.with_default()
    await write_derived(work, job.workspace_id, FieldRef(database_id, source.key), changed)
    await write_field(work, job.workspace_id, changed, values_change=True)
    await write_database(work, job.workspace_id, database_id)
    await remove_invalid_usages(
        work, await load_schema(work, job.workspace_id, database_id), source.key
    )
    converted, lost = await count_staged(work, source, job.id)
    await record_progress(work, job.id, {"converted": converted, "lost": lost})
    await apply_staged(work, source, job.id)
    while not await delete_staged(work, job.workspace_id, job.id):
        pass
    ref = FieldRef(database_id, source.key)
    await recompute_dependents(work, job.workspace_id, ref, job.actor_user_id)
    return None


async def _resumed(work: UnitOfWork, job: JobRow) -> tuple[Source, Converter]:
    """The values of the field, and its converter in the state the last step stored."""
    database_id = Id(job.input["databaseId"])
    schema = await load_schema(work, job.workspace_id, database_id)
    spec = held_field(schema, job.subject_id)
    if not is_unchanged(spec, job.input["from"]):
        raise ConflictError("The field was changed while it was being converted.")
    target = {**job.input["to"], **job.progress}
    kept = {name: target[name] for name in ("kind", "settings", "options")}
    converter = Converter(spec, with_described(spec, kept), new_id, grows=job.input["grows"])
    return Source(job.workspace_id, database_id, spec.key), converter


async def conversion_result(work: UnitOfWork, job: JobRow) -> JsonObject:
    """The numbers of values that were converted and that were lost."""
    current_job = await find_job(work, job.workspace_id, Family.FIELD_CONVERSION, job.id)
    counts: JsonObject = current_job.progress
    return counts
