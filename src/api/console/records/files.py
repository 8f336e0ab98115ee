"""Files of records: added with a form, shown with their downloads, taken out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ConfigDict
from starlette.responses import Response

from api.console.forms import Form, paged
from api.console.records.cells import cells_of, legend_of
from api.console.records.entry import Choice
from api.console.records.fields import shown_fields
from api.console.rendering import is_htmx, page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.kernel.request import ApiRequest
from api.routers.data import records
from models.content.files.commands import record_upload
from models.content.files.queries import readable_files
from models.core.access.rules import Scope
from models.core.base import Id
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.kinds import FieldKind
from models.data.records.commands.records import update_record
from models.data.records.queries.records import get_record
from models.data.records.shapes import RecordDetail, UpdateRecord
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.ids import new_id

router = page_router()

_FILES = f"{records.RECORD.removeprefix('/v1')}/files/{{key}}"
_ADD = replace(
    paged(records.WRITE), scopes=[*records.WRITE.scopes, Scope.FILES_WRITE], upload=True, joins=True
)


@dataclass(frozen=True, slots=True)
class Attachment(Choice):
    """A file that a record holds; without a path nobody here may read it."""

    path: str = ""


class Chosen(Form):
    """The fields beside a file."""

    model_config = ConfigDict(extra="ignore")


@router.post(_FILES, access=_ADD, errors=[ConflictError])
async def add_file(request: ApiRequest, body: Chosen) -> Response:  # noqa: ARG001
    """Add a file to a field of a record."""
    work, actor = request.work, request.actor
    record = await get_record(work, actor, request.ids["recordId"])
    spec = await _spec(request, record)
    if request.uploaded is None or request.upload.byte_size == 0:
        raise ValidationError.at(spec.label, "Choose a file that holds something.")
    keys, file_id = request.services.keys, new_id()
    await record_upload(work, actor, keys, file_id, request.upload, None)
    return await _write(request, record, spec, [*_ids(record, spec), str(file_id)])


@router.post(
    f"{_FILES}/{{heldFileId}}/remove",
    access=paged(replace(records.WRITE, joins=True)),
    errors=[ConflictError],
)
async def remove_file(request: ApiRequest) -> Response:
    """Take a file out of a field of a record; the file itself stays."""
    record = await get_record(request.work, request.actor, request.ids["recordId"])
    spec = await _spec(request, record)
    file_id = str(request.ids["heldFileId"])
    ids = _ids(record, spec)
    if file_id not in ids:
        raise NotFoundError("file")
    return await _write(request, record, spec, [one for one in ids if one != file_id])


async def attachments(
    request: ApiRequest, specs: Sequence[FieldSpec], record: RecordDetail
) -> Sequence[tuple[FieldSpec, Sequence[Attachment]]]:
    """The fields of files with what a record holds in them."""
    fields = [spec for spec in specs if spec.kind is FieldKind.FILE]
    ids = {file_id for spec in fields for file_id in _ids(record, spec)}
    work, actor, keys = request.work, request.actor, request.services.keys
    files = await readable_files(work, actor, [Id(file_id) for file_id in ids], keys)
    known = {str(file.file_id): file for file in files}

    def attachment(file_id: str) -> Attachment:
        file = known.get(file_id)
        if file is None:
            return Attachment(file_id, "a file that you do not see")
        return Attachment(file_id, file.name, file.download_url)

    return [(spec, [attachment(file_id) for file_id in _ids(record, spec)]) for spec in fields]


def _ids(record: RecordDetail, spec: FieldSpec) -> Sequence[str]:
    ids: Sequence[str] = record.data.get(spec.key) or []
    return ids


async def _spec(request: ApiRequest, record: RecordDetail) -> FieldSpec:
    """The field of the path. Raises NotFoundError for one that holds no files."""
    for spec in await shown_fields(request, record.database_id):
        if spec.key == request.path_params["key"] and spec.kind is FieldKind.FILE:
            return spec
    raise NotFoundError("field")


async def _write(
    request: ApiRequest, record: RecordDetail, spec: FieldSpec, ids: Sequence[str]
) -> Response:
    """Write the files of a field, unless somebody changed the record meanwhile."""
    work, actor = request.work, request.actor
    change = UpdateRecord(data={spec.key: list(ids)})
    changed = await update_record(work, actor, record.id, change, record.updated_at)
    if not is_htmx(request):
        return see_other(f"/records/{record.id}#{spec.key}")
    legend = await legend_of(work, actor, [changed], [spec])
    (cell,) = cells_of(changed, [spec], legend)
    return page(request, "cell.html", await shell_of(request), cell=cell, record=changed)
