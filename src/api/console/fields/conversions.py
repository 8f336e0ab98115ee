"""The conversion of a field to another kind: what it would lose, the button, and its outcome."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Form, read_as, redisplays
from api.console.fields.routes import CHANGE, FIELD_PAGE, field_of, fields_path
from api.console.forms import paged
from api.console.integrations.resources import Outcome, outcome_of
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.routing import page_router
from api.console.words import plain, sentence_case
from api.kernel.routing import ApiRequest
from api.routers.data import databases as api
from api.routers.data.databases import WRITE_FIELD
from models.core.base import JsonObject
from models.data.databases import field_conversion
from models.data.databases.shapes import ConversionPreview, ConvertedField, ConvertField
from models.data.databases.store import get_database
from models.data.fields.rules.fields import TITLE_KEY, FieldKind
from models.data.fields.rules.value_conversion import convertible
from models.data.fields.shapes import FieldShape
from models.messages.jobs.store import own_job
from runtime import errors
from runtime.clock import wire_timestamp
from runtime.temporal.workflow_kinds import WorkflowKind

router = page_router()

_CONVERT = f"{FIELD_PAGE}/convert"


class Conversion(Form):
    """The new kind, and the moment of the field that the page knew."""

    kind: str = ""
    updated_at: str | None = None


@router.get(_CONVERT, access=paged(WRITE_FIELD))
async def get_conversion_preview(request: ApiRequest, kind: FieldKind | None = None) -> Response:
    """Look at what a conversion to another kind would lose."""
    return await _preview_page(request, BLANK, kind)


async def _preview_page(
    request: ApiRequest, entered: Entered, kind: FieldKind | None = None
) -> Response:
    field = await field_of(request)
    kinds = {kind.value: kind for kind in FieldKind}
    kind = kind or kinds.get(entered.texts.get("kind", "")) or next(iter(_kinds(field)), None)
    preview, problem = await _preview(request, field, kind)
    shell = await shell_of(request)
    place = fields_path(field.database_id)
    body: JsonObject = {"kind": "" if kind is None else kind.value, "preview": True}
    return page(
        request,
        "convert.html",
        shell,
        refusal=entered.refusal,
        database=await get_database(request.work, request.actor, field.database_id),
        field=field,
        kind=kind,
        kind_name="" if kind is None else _name(kind),
        kinds=[(one.value, _name(one)) for one in _kinds(field)],
        place=place,
        known=wire_timestamp(field.updated_at),
        preview=preview,
        lost=[] if preview is None else [one for one in preview.samples if one.to is None],
        problem=entered.refusal or problem,
        may_read=shell.may("records:read"),
        api=shell.calls((api.convert_field, body)),
    )


@router.post(_CONVERT, access=CHANGE, errors=[errors.ConflictError, errors.InProgressError])
@redisplays(_preview_page)
async def convert_field_by_form(request: ApiRequest, body: Conversion) -> Response:
    """Convert a field, and lead to where its outcome will be."""
    field = await field_of(request)
    fields = {"kind": body.kind, "expectedUpdatedAt": body.updated_at}
    conversion = read_as(ConvertField, fields)
    place = (request.work, request.actor, field.database_id, field.id)

    await field_conversion.accept_conversion(*place, request.new_id, conversion)
    path = f"{fields_path(field.database_id)}/{field.id}/conversions/{request.new_id}"
    return see_other(path)


@router.get(f"{FIELD_PAGE}/conversions/{{conversionId}}", access=paged(WRITE_FIELD))
async def get_conversion(request: ApiRequest) -> Response:
    """Follow a conversion, and look at what it lost."""
    work, actor, field = request.work, request.actor, await field_of(request)
    job_id = request.ids["conversionId"]
    job = await own_job(work, actor, WorkflowKind.FIELD_CONVERSION, job_id)
    if job.subject_id != field.id:
        raise errors.NotFoundError("field conversion")
    outcome: Outcome[ConvertedField] = await outcome_of(
        field_conversion.conversion_outcome(
            work, actor, field.database_id, field.id, job_id, last=False
        )
    )
    return await console_page(
        request,
        "conversion.html",
        database=await get_database(work, actor, field.database_id),
        field=field,
        place=fields_path(field.database_id),
        outcome=outcome,
        kind_name=_name(FieldKind(job.input["to"]["kind"])),
    )


def _kinds(field: FieldShape) -> list[FieldKind]:
    """The kinds that a field can be converted to."""
    if field.key == TITLE_KEY:
        return []
    return [kind for kind in FieldKind if convertible(field.kind, kind)]


def _name(kind: FieldKind) -> str:
    return sentence_case(plain(kind))


async def _preview(
    request: ApiRequest, field: FieldShape, kind: FieldKind | None
) -> tuple[ConversionPreview | None, errors.PlatformError | None]:
    """The losses of a conversion, or the reason that it is refused."""
    if kind is None:
        return None, None
    wanted = read_as(ConvertField, {"kind": kind.value, "preview": True})
    place = (request.work, request.actor, field.database_id, field.id)
    try:
        return await field_conversion.preview_conversion(*place, wanted), None
    except (errors.ConflictError, errors.UnsupportedError, errors.ValidationError) as problem:
        return None, problem
