"""Values typed into a record or a new one, on a page of their own."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import ConfigDict
from starlette.responses import Response

from api.console.entered import Form
from api.console.forms import paged
from api.console.records import entry
from api.console.records.cells import shown_fields
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.kernel.routing import ApiRequest
from api.routers.data import records
from api.routers.data import records as api
from models.core.base import Id
from models.core.revisions import read_moment
from models.data.databases.queries import get_database
from models.data.fields.rules.fields import FieldSpec
from models.data.records import commands
from models.data.records.queries import get_record
from models.data.records.shapes import CreateRecord, RecordDetail, UpdateRecord
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError, ValidationError

router = page_router()

_RECORD = records.RECORD.removeprefix("/v1")
_RECORDS = records.RECORDS.removeprefix("/v1")


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


@router.get(f"{_RECORD}/edit", access=paged(records.WRITE))
async def get_edit(request: ApiRequest) -> Response:
    """Type the values of a record."""
    record = await get_record(request.work, request.actor, request.ids["recordId"])
    specs = entry.entered(await shown_fields(request, record.database_id), record)
    entries = await entry.entries_of(request, specs, record)
    return await _form_page(request, record, record.database_id, entries)


@router.post(f"{_RECORD}/edit", access=paged(records.WRITE))
async def edit(request: ApiRequest, body: RecordForm) -> Response:
    """Write the values that were typed, unless somebody changed the record meanwhile."""
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


@router.get(f"{_RECORDS}/new", access=paged(records.WRITE_ALL))
async def get_new(request: ApiRequest) -> Response:
    """Type the values of a new record."""
    database_id = request.ids["databaseId"]
    specs = entry.entered(await shown_fields(request, database_id), None)
    return await _form_page(
        request, None, database_id, await entry.entries_of(request, specs, None)
    )


@router.post(f"{_RECORDS}/new", access=paged(records.WRITE_ALL))
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
    """The values that differ: what nobody touched is not written anew."""
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
