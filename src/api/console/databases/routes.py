"""The page of a database; databases are made, exported and removed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field
from starlette.responses import JSONResponse, Response

from api.console.databases import listing as arrangements
from api.console.entered import BLANK, Form, given, read_as
from api.console.forms import paged
from api.console.records.entry import COMPARISONS, Comparison
from api.console.rendering import Shell, console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.views.routes import page_facts
from api.kernel.routing import Access, ApiRequest, Cursor, Flag, QueryId, Router
from api.routers.data import databases as api
from api.routers.data import records as records_api
from api.routers.data.databases import DATABASE, DATABASES
from models.content.files.queries import readable_files
from models.core.access.rules import Level, Scope, level_on
from models.core.base import Id
from models.data.database_templates import templates
from models.data.databases import store
from models.data.databases.shapes import CreateDatabase, DatabaseDetail
from models.data.databases.store import create_database
from models.data.fields.rules.settings import Aggregate
from models.data.record_exports import exports
from models.data.record_exports.exports import export_detail
from models.data.record_exports.shapes import CreateExport
from models.data.records.queries import records_by_id, revisions
from models.data.views.rules.kinds import Placement, ViewKind
from models.messages.jobs.rules import OPEN_JOB
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError
from runtime.ids import parse_id

router = page_router()
table_router = Router(tags=["console"])
"""Routes that the script of a table reads beside the operations of the API."""

_EXPORT = "/workspaces/{workspaceId}/exports/{exportId}"
_DATABASES = DATABASES.removeprefix("/v1")
_DATABASE = DATABASE.removeprefix("/v1")
_READ = Access(
    scopes=[Scope.DATABASES_READ, Scope.RECORDS_READ],
    resource="database",
    heavy=True,
    # A query without an index asks for one.
    writes=True,
)
_CREATE = Access(scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True)
_TEMPLATES: Mapping[ViewKind, str] = {
    ViewKind.BOARD: "board.html",
    ViewKind.GALLERY: "gallery.html",
    ViewKind.CALENDAR: "calendar.html",
    ViewKind.TIMELINE: "calendar.html",
}

_SCRIPTED = frozenset(
    {ViewKind.BOARD, ViewKind.CALENDAR, ViewKind.TIMELINE, ViewKind.GALLERY, ViewKind.CHART}
)
"""Kinds that a script draws where there is one."""


class NewDatabase(Form):
    """The name of a new database, and the template it is made from."""

    label: str | None = None
    template: str | None = None


@router.post(_DATABASES, access=paged(_CREATE), errors=[ConflictError])
async def create(request: ApiRequest, body: NewDatabase) -> Response:
    """Create a database, empty or from a template, and lead to it."""
    work, actor = request.work, request.actor
    if body.template is None:
        empty = read_as(CreateDatabase, given({"label": body.label or "Untitled"}))
        database = await create_database(work, actor, empty)
    else:
        fields = {"templateId": body.template, "label": body.label}
        copy = read_as(templates.CreateFromTemplate, given(fields))
        database = await templates.create_from_template(work, actor, copy.template_id, copy)
    return see_other(f"/workspaces/{actor.workspace_id}/databases/{database.id}")


@router.get(f"{_DATABASES}/new", access=paged(_CREATE))
async def get_new(request: ApiRequest) -> Response:
    """Choose what a new database is made from."""
    return await console_page(
        request,
        "new_database.html",
        (api.create_database_from_template, {"templateId": "tasks"}),
        api.create_database,
        entered=BLANK,
        templates=templates.list_templates(),
    )


@router.get(_DATABASE, access=paged(replace(_READ, level=Level.VIEW)))
async def get_database(  # noqa: PLR0913  # the filters of a list
    request: ApiRequest,
    *,
    cursor: Cursor = None,
    view: QueryId | None = None,
    search: str | None = None,
    sort: str | None = None,
    field: str | None = None,
    comparison: Comparison | None = None,
    value: str | None = None,
    columns: Annotated[str, Field(max_length=2_000)] | None = None,
    group: str | None = None,
    total: Aggregate | None = None,
    month: str | None = None,
    archived: Flag = False,
) -> Response:
    """Look at the records of a database, as one of its views shows them."""
    selection = arrangements.Selection(
        view=view,
        search=search,
        sort=sort,
        field=field,
        comparison=comparison,
        value=value,
        columns=columns,
        group=group,
        total=total,
        archived=archived,
    )
    database = await store.get_database(request.work, request.actor, request.ids["databaseId"])
    return await _database_page(request, database, selection, cursor, month)


async def _database_page(
    request: ApiRequest,
    database: DatabaseDetail,
    selection: arrangements.Selection,
    cursor: str | None,
    month: str | None,
) -> Response:
    views = [view for view in database.views if view.placement is Placement.DATABASE]
    view = next(iter(view for view in views if view.id == selection.view), None)
    selection = selection if view is not None else replace(selection, view=None)
    is_arranged = arrangements.is_arranged(view)
    limit = arrangements.MOST if is_arranged else arrangements.PAGE
    listed = await arrangements.listing(request, database, view, selection, cursor, limit)
    shell = await shell_of(request)
    today = request.work.now.date()
    return page(
        request,
        "database.html",
        shell,
        database=database,
        views=views,
        view=view,
        body=_TEMPLATES[view.kind] if view and is_arranged else "grid.html",
        arrangements=arrangements,
        is_scripted=view is not None and view.kind in _SCRIPTED,
        month=arrangements.month_of(listed, view, month, today) if view else None,
        selection=selection,
        cursor=cursor,
        listed=listed,
        comparisons=COMPARISONS,
        fields=[("", "Any field"), *((key, spec.label) for key, spec in listed.fields.items())],
        totals=arrangements.totals_of(listed.columns),
        facts=await page_facts(request, database, views, view, listed.fields),
        may_write=shell.may("records:write"),
        table=_table(request, shell, database, selection, listed),
        calls=arrangements.equal_call(shell, selection, listed),
    )


def _table(
    request: ApiRequest,
    shell: Shell,
    database: DatabaseDetail,
    selection: arrangements.Selection,
    listed: arrangements.Listing,
) -> Mapping[str, str | None]:
    """The attributes that the script of the table reads: ids, rights, and the query of the URL."""
    assert request.placement is not None, "the page is about a database"
    level = level_on(request.placement, request.actor.role)
    return {
        "id": "table",
        "data-workspace": str(database.workspace_id),
        "data-database-id": str(database.id),
        "data-view-id": None if selection.view is None else str(selection.view),
        "data-me": str(request.actor.user_id),
        "data-query": json.dumps(arrangements.query_of(selection, listed)),
        **{
            f"data-can-{name}": str(level >= least and shell.may(scope)).lower()
            for name, (scope, least) in _RIGHTS.items()
        },
    }


_RIGHTS = {
    "write": ("records:write", Level.EDIT),
    "comment": ("records:comment", Level.COMMENT),
    "design": ("databases:write", Level.EDIT),
    "arrange": ("views:write", Level.EDIT),
}
_MOST_NAMED = 100
_FOR_TABLE = Access(scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW, cookie=True)
Ids = Annotated[str, Field(max_length=4_000)]
"""Ids with commas between them."""


@table_router.get(f"{_DATABASE}/files", access=_FOR_TABLE, documented=False)
async def get_files(request: ApiRequest, ids: Ids) -> Response:
    """Get the names and addresses of files that a table shows."""
    work, actor, keys = request.work, request.actor, request.services.keys
    files = await readable_files(work, actor, _read_ids(ids), keys)
    return _as_data([one.model_dump(mode="json", by_alias=True) for one in files])


@table_router.get(f"{_DATABASE}/revisions", access=_FOR_TABLE, documented=False)
async def get_revisions(request: ApiRequest, ids: Ids) -> Response:
    """Get when records that a table shows were changed last; what was deleted is left out."""
    place = request.work, request.actor.workspace_id, request.ids["databaseId"]
    changes = await revisions(*place, _read_ids(ids))
    return _as_data({str(one): wire_timestamp(at) for one, at in changes.items()})


@table_router.get(f"{_DATABASE}/current", access=_FOR_TABLE, documented=False)
async def get_current(request: ApiRequest, ids: Ids) -> Response:
    """Get records that a table shows as they are now; what was deleted is left out."""
    place = request.work, request.actor, request.ids["databaseId"]
    records = await records_by_id(*place, _read_ids(ids))
    return _as_data([one.model_dump(mode="json", by_alias=True) for one in records])


def _read_ids(text: str) -> list[Id]:
    ids = [record_id for part in text.split(",") if (record_id := parse_id(part)) is not None]
    return ids[:_MOST_NAMED]


def _as_data(data: object) -> Response:
    return JSONResponse({"data": data}, headers={"Cache-Control": "no-store"})


act(router, f"{_DATABASE}/delete", api.delete_database, then="/workspaces/{workspaceId}/items")


class Export(Form):
    """The format of an export, and the view whose records it has."""

    format: str = "csv"
    view_id: str | None = None


@router.post(
    f"{DATABASE.removeprefix('/v1')}/export",
    access=paged(
        Access(scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW, idempotent=True)
    ),
)
async def begin_export(request: ApiRequest, body: Export) -> Response:
    """Begin an export, and lead to where its file will be."""
    choice = read_as(CreateExport, given({"format": body.format, "viewId": body.view_id}))
    export_id = request.new_id
    await exports.accept_export(
        request.work, request.actor, request.ids["databaseId"], export_id, choice
    )
    return see_other(f"/workspaces/{request.workspace_id}/exports/{export_id}")


@router.get(
    _EXPORT,
    access=paged(Access(scopes=[Scope.RECORDS_READ])),
)
async def get_export(request: ApiRequest) -> Response:
    """Follow an export, and fetch its file."""
    keys, export_id = request.services.keys, request.ids["exportId"]
    export = await export_detail(request.work, request.actor, export_id, keys)
    return await console_page(
        request,
        "export.html",
        records_api.get_export,
        records_api.cancel_export,
        export=export,
        going=export.status in OPEN_JOB,
    )


act(
    router,
    f"{_EXPORT}/cancel",
    records_api.cancel_export,
    message="Export cancelled.",
    then=_EXPORT,
)
