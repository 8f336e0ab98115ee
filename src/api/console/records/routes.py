"""The page of a record with its files and actions, and pages on which values are typed."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ConfigDict
from starlette.responses import Response

from api.console.entered import Form
from api.console.forms import paged
from api.console.records import entry
from api.console.records.cells import cells_of, in_words, legend_of, shown_fields
from api.console.records.entry import BEFORE_ID, Choice
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.kernel.routing import ApiRequest
from api.routers.data import records as api
from models.automation.written_records import list_record_history
from models.content.files.commands import record_upload
from models.content.files.queries import readable_files
from models.core.access.rules import Scope
from models.core.base import Id
from models.core.values import read_moment
from models.data import record_comments
from models.data.databases.store import get_database
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.record_exports.exports import names_of
from models.data.records import commands
from models.data.records.commands import update_record
from models.data.records.queries import QueryTooSlowError, get_record
from models.data.records.search import choices
from models.data.records.shapes import CreateRecord, RecordDetail, UpdateRecord
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.ids import new_id

router = page_router()

_RECORD = api.RECORD.removeprefix("/v1")
_RECORDS = api.RECORDS.removeprefix("/v1")
_SHOWN_CHANGES = 20
_SHOWN_COMMENTS = 100
_SUGGESTED = 10
_LONGEST_TEXT = 200


@router.get(_RECORD, access=paged(api.READ))
async def get_page(request: ApiRequest) -> Response:
    """Look at a record: its values, comments and history."""
    work, actor, record_id = request.work, request.actor, request.ids["recordId"]
    record = await get_record(work, actor, record_id)
    database = await get_database(work, actor, record.database_id)
    specs = await shown_fields(request, record.database_id)
    legend = await legend_of(work, actor, [record], specs)
    comments = await record_comments.list_comments(
        work, actor.workspace_id, record_id, request.page("comments", _SHOWN_COMMENTS, None)
    )
    history = await list_record_history(
        work, actor, record_id, request.page("history", _SHOWN_CHANGES, None)
    )
    people = {str(one.author_user_id) for one in comments.comments}
    people |= {str(user_id) for one in comments.comments for user_id in one.mentions}
    people |= {str(one.actor_user_id) for one in history.changes if one.actor_user_id}
    return await console_page(
        request,
        "record.html",
        api.get_record,
        api.update_record,
        api.delete_record,
        record=record,
        database=database,
        values=list(zip(specs, cells_of(record, specs, legend, whole=True), strict=True)),
        files={spec.key: held for spec, held in await attachments(request, specs, record)},
        changes=in_words(history.changes, specs, legend),
        comments=comments.comments,
        words=comment_words,
        names=await names_of(work, actor.workspace_id, people),
    )


def comment_words(
    comment: record_comments.RecordCommentDetail, names: Mapping[str, str]
) -> Iterator[tuple[str, bool]]:
    """The text of a comment in parts, and whether each is a mention: `@` with a member's name."""
    if comment.deleted_at is not None:
        yield "This comment was deleted.", False
        return
    known = {f"@{names[str(one)]}" for one in comment.mentions if names.get(str(one))}
    pattern = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    for part in re.split(f"({pattern})", comment.body) if pattern else [comment.body]:
        if part:
            yield part, part in known


# The bound on its time needs a transaction.
@router.get(f"{_RECORDS}/choices", access=paged(replace(api.READ_ALL, writes=True)))
async def get_choices(request: ApiRequest, q: str = "") -> Response:
    """Suggest records of a database by a part of their titles, for the forms of relations."""
    text = q.strip()[:_LONGEST_TEXT]
    place = request.work, request.actor, request.ids["databaseId"]
    try:
        titles = await choices(*place, text, _SUGGESTED) if text else {}
    except QueryTooSlowError:
        titles = {}
    several = {title for title, count in Counter(titles.values()).items() if count > 1}
    return await console_page(
        request, "choices.html", titles=titles, several=several, before=BEFORE_ID
    )


act(router, f"{_RECORD}/comments", api.create_record_comment, then=f"{_RECORD}#comments")


act(router, f"{_RECORD}/archive", api.archive_record, message="Record archived.", then=_RECORD)


act(router, f"{_RECORD}/restore", api.restore_record, message="Record restored.", then=_RECORD)


act(
    router,
    f"{_RECORD}/delete",
    api.delete_record,
    then="/workspaces/{answer.workspace_id}/databases/{answer.database_id}",
)


_FILES = f"{_RECORD}/files/{{key}}"
_ADD = replace(
    paged(api.WRITE), scopes=[*api.WRITE.scopes, Scope.FILES_WRITE], upload=True, joins=True
)


@dataclass(frozen=True, slots=True)
class Attachment(Choice):
    """A file that a record holds; without a path no one here may read it."""

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
        raise ValidationError.at(spec.label, "The file is empty. Choose another file.")
    keys, file_id = request.services.keys, new_id()
    await record_upload(work, actor, keys, file_id, request.upload, None)
    return await _write(request, record, spec, [*_ids(record, spec), str(file_id)])


@router.post(
    f"{_FILES}/{{heldFileId}}/remove",
    access=paged(replace(api.WRITE, joins=True)),
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
            return Attachment(file_id, "A file you can't access")
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
    """Write the files of a field, unless someone changed the record meanwhile."""
    work, actor = request.work, request.actor
    change = UpdateRecord(data={spec.key: list(ids)})
    await update_record(work, actor, record.id, change, record.updated_at)
    return see_other(f"/records/{record.id}#{spec.key}")


class RecordForm(Form):
    """The fields of a record as texts, and the moment of the record that the page knew."""

    model_config = ConfigDict(extra="allow")

    updated_at: str | None = None

    def texts(self) -> Mapping[str, Any]:
        """The texts of fields by the names of their inputs. Raises ValidationError for others."""
        given = self.model_extra or {}
        for name in given:
            if not name.startswith(entry.PREFIX):
                raise ValidationError.at(name[:100], "Unknown field.")
        return given


@router.get(f"{_RECORD}/edit", access=paged(api.WRITE))
async def get_edit(request: ApiRequest) -> Response:
    """Type the values of a record."""
    record = await get_record(request.work, request.actor, request.ids["recordId"])
    specs = entry.entered(await shown_fields(request, record.database_id), record)
    entries = await entry.entries_of(request, specs, record)
    return await _form_page(request, record, record.database_id, entries)


@router.post(f"{_RECORD}/edit", access=paged(api.WRITE))
async def edit(request: ApiRequest, body: RecordForm) -> Response:
    """Write the values that were typed, unless someone changed the record meanwhile."""
    work, actor, record_id = request.work, request.actor, request.ids["recordId"]
    record = await get_record(work, actor, record_id)
    specs = entry.entered(await shown_fields(request, record.database_id), record)
    typed = await entry.read_fields(request, specs, body.texts())
    if typed.problems:
        return await _again(request, record, record.database_id, specs, body, _by_label(typed))
    try:
        async with work.savepoint():
            await commands.update_record(
                work, actor, record_id, _changes(typed, record), _known(body)
            )
    except ValidationError as refusal:
        wrong = {one.path: one.message for one in refusal.details}
        return await _again(request, record, record.database_id, specs, body, wrong)
    except ConflictError:
        return await _again(request, record, record.database_id, specs, body, {"": _CONFLICT})
    return see_other(f"/records/{record_id}")


_CONFLICT = "Someone else edited this record. Your values are kept below. Save again to overwrite."


@router.get(f"{_RECORDS}/new", access=paged(api.WRITE_ALL))
async def get_new(request: ApiRequest) -> Response:
    """Type the values of a new record."""
    database_id = request.ids["databaseId"]
    specs = entry.entered(await shown_fields(request, database_id), None)
    return await _form_page(
        request, None, database_id, await entry.entries_of(request, specs, None)
    )


@router.post(f"{_RECORDS}/new", access=paged(api.WRITE_ALL))
async def create(request: ApiRequest, body: RecordForm) -> Response:
    """Create a record of the values that were typed; what was left empty gets its default."""
    work, actor, database_id = request.work, request.actor, request.ids["databaseId"]
    specs = entry.entered(await shown_fields(request, database_id), None)
    typed = await entry.read_fields(request, specs, body.texts())
    if typed.problems:
        return await _again(request, None, database_id, specs, body, _by_label(typed))
    data = {key: value for key, value in typed.data.items() if value not in (None, [])}
    try:
        async with work.savepoint():
            content = CreateRecord(data=data, relations=typed.relations)
            made = await commands.create_record(work, actor, database_id, content)
    except ValidationError as refusal:
        wrong = {one.path: one.message for one in refusal.details}
        return await _again(request, None, database_id, specs, body, wrong)
    return see_other(f"/records/{made.id}")


def _changes(typed: entry.Typed, record: RecordDetail) -> UpdateRecord:
    """The values that differ: what no one touched is not written anew."""
    held = {**record.data, "title": record.title}
    data = {
        key: value
        for key, value in typed.data.items()
        if value != held.get(key) and not (value in (None, []) and not held.get(key))
    }
    relations = {
        key: ids for key, ids in typed.relations.items() if ids != record.relations.get(key, [])
    }
    return UpdateRecord(data=data, relations=relations)


def _known(body: RecordForm) -> datetime | None:
    return read_moment(body.updated_at, "updatedAt")


def _by_label(typed: entry.Typed) -> Mapping[str, str]:
    return {one.path: one.message for one in typed.problems}


async def _form_page(
    request: ApiRequest,
    record: RecordDetail | None,
    database_id: Id,
    entries: Sequence[entry.Entry],
    problem: str = "",
) -> Response:
    database = await get_database(request.work, request.actor, database_id)
    shell = await shell_of(request)
    if record is None:
        call = shell.calls((api.create_record, {"title": "…"}), database_id=database_id)
    else:
        change = {"data": {entries[-1].spec.key: "…"}}
        call = shell.calls((api.update_record, change), record_id=record.id)
    return page(
        request,
        "record_form.html",
        shell,
        record=record,
        database=database,
        entries=entries,
        people=await entry.people(request, entries),
        problem=problem,
        known=None if record is None else wire_timestamp(record.updated_at),
        api=call,
    )


async def _again(
    request: ApiRequest,
    record: RecordDetail | None,
    database_id: Id,
    specs: Sequence[FieldSpec],
    body: RecordForm,
    problems: Mapping[str, str],
) -> Response:
    """The form with what was typed, and what is wrong with it."""
    known = {spec.label for spec in specs}
    keys = tuple(f"{part}.{spec.key}" for spec in specs for part in ("data", "relations"))
    others = [text for at, text in problems.items() if at not in known and not at.startswith(keys)]
    general = " ".join(others)
    filled = await entry.again(request, specs, body.texts(), problems)
    answer = await _form_page(request, record, database_id, filled, general)
    answer.status_code = ConflictError.status if _CONFLICT in general else ValidationError.status
    return answer
