"""The page of a database, and what is done there: new records, exports."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from api.console.databases import arrangements
from api.console.databases.listing import COMPARISONS, PAGE, Asked, Comparison, equal_call, listing
from api.console.forms import Form, body_of, done, paged
from api.console.refusals import refuse
from api.console.rendering import page, see_other
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest, Cursor, Flag, QueryId, Router
from api.routers.data import databases
from api.routers.data.databases import DATABASE, DATABASES
from models.core.access.rules import Level, Scope
from models.data.database_templates.commands import create_from_template
from models.data.database_templates.queries import list_templates
from models.data.database_templates.shapes import CreateFromTemplate
from models.data.databases import queries
from models.data.databases.commands.databases import create_database, delete_database
from models.data.databases.shapes import CreateDatabase
from models.data.record_exports import commands
from models.data.record_exports.queries import export_detail
from models.data.record_exports.shapes import CreateExport
from models.data.views.rules.kinds import Placement, ViewKind
from models.messages.jobs.rules import OPEN_JOB
from runtime.errors import ConflictError

router = Router(tags=["console"], refuse=refuse)

_DATABASES = DATABASES.removeprefix("/v1")
_DATABASE = DATABASE.removeprefix("/v1")
_READ = Access(scopes=[Scope.DATABASES_READ, Scope.RECORDS_READ], resource="database", heavy=True)
_CREATE = Access(scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True)
_TEMPLATES: Mapping[ViewKind, str] = {
    ViewKind.BOARD: "board.html",
    ViewKind.GALLERY: "gallery.html",
    ViewKind.CALENDAR: "calendar.html",
    ViewKind.TIMELINE: "calendar.html",
}


class NewDatabase(Form):
    """The name of a new database, and the template it is made from."""

    label: str | None = None
    template: str | None = None


class Export(Form):
    """The format of an export, and the view whose records it has."""

    format: str = "csv"
    view_id: str | None = None


@router.post(_DATABASES, access=paged(_CREATE), errors=[ConflictError], documented=False)
async def create(request: ApiRequest, body: NewDatabase) -> Response:
    """Create a database, empty or from a template, and lead to it."""
    work, actor = request.work, request.actor
    if body.template is None:
        empty = body_of(CreateDatabase, {"label": body.label or "Untitled"})
        made = await create_database(work, actor, empty)
    else:
        given = {"templateId": body.template, "label": body.label}
        wanted = body_of(CreateFromTemplate, given)
        made = await create_from_template(work, actor, wanted.template_id, wanted)
    return see_other(f"/workspaces/{actor.workspace_id}/databases/{made.id}")


@router.get(f"{_DATABASES}/new", access=paged(_CREATE), documented=False)
async def get_new(request: ApiRequest) -> Response:
    """Choose what a new database is made from."""
    shell = await shell_of(request)
    call = curl(
        shell.base,
        "POST",
        f"/v1/workspaces/{request.workspace_id}/databases/from-template",
        '{"templateId": "tasks"}',
    )
    return page(request, "new_database.html", shell, templates=list_templates(), call=call)


@router.get(_DATABASE, access=paged(replace(_READ, level=Level.VIEW)), documented=False)
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
    month: str | None = None,
    archived: Flag = False,
) -> Response:
    """Look at the records of a database, as one of its views shows them."""
    asked = Asked(
        view=view,
        search=search,
        sort=sort,
        field=field,
        comparison=comparison,
        value=value,
        archived=archived,
    )
    database = await queries.get_database(request.work, request.actor, request.ids["databaseId"])
    views = [one for one in database.views if one.placement is Placement.DATABASE]
    shown = next((one for one in views if one.id == view), None)
    asked = asked if shown is not None else replace(asked, view=None)
    arranged = arrangements.is_arranged(shown)
    limit = arrangements.MOST if arranged else PAGE
    listed = await listing(request, database, shown, asked, cursor, limit)
    shell = await shell_of(request)
    first = arrangements.month_of(listed, shown, month, request.work.now.date()) if shown else None
    return page(
        request,
        "database.html",
        shell,
        database=database,
        views=views,
        view=shown,
        body=_TEMPLATES[shown.kind] if shown and arranged else "grid.html",
        arrangements=arrangements,
        month=first,
        asked=asked,
        cursor=cursor,
        listed=listed,
        comparisons=COMPARISONS,
        fields=[("", "Any field"), *((one.key, one.label) for one in listed.fields.values())],
        may_write=request.placement is not None and shell.may("records:write"),
        call=equal_call(shell.base, database.id, asked, listed.fields),
    )


@router.post(f"{_DATABASE}/delete", access=paged(databases.WRITE), documented=False)
async def delete(request: ApiRequest) -> Response:
    """Put a database into the trash."""
    await delete_database(request.work, request.actor, request.ids["databaseId"])
    return see_other(f"/workspaces/{request.workspace_id}/items")


@router.post(
    f"{_DATABASE}/export",
    access=paged(
        Access(scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW, idempotent=True)
    ),
    documented=False,
)
async def export(request: ApiRequest, body: Export) -> Response:
    """Begin an export, and lead to where its file will be."""
    wanted = body_of(CreateExport, {"format": body.format, "viewId": body.view_id})
    export_id = request.new_id
    await commands.accept_export(
        request.work, request.actor, request.ids["databaseId"], export_id, wanted
    )
    return see_other(f"/workspaces/{request.workspace_id}/exports/{export_id}")


@router.get(
    "/workspaces/{workspaceId}/exports/{exportId}",
    access=paged(Access(scopes=[Scope.RECORDS_READ])),
    documented=False,
)
async def get_export(request: ApiRequest) -> Response:
    """Follow an export, and fetch its file."""
    keys, export_id = request.services.keys, request.ids["exportId"]
    made = await export_detail(request.work, request.actor, export_id, keys)
    shell = await shell_of(request)
    path = f"/v1/workspaces/{request.workspace_id}/exports/{export_id}"
    return page(
        request,
        "export.html",
        shell,
        export=made,
        going=made.status in OPEN_JOB,
        call=curl(shell.base, "GET", path),
    )


@router.post(
    "/workspaces/{workspaceId}/exports/{exportId}/cancel",
    access=paged(Access(scopes=[Scope.RECORDS_READ])),
    documented=False,
)
async def cancel_export(request: ApiRequest) -> Response:
    """Cancel an export."""
    await commands.cancel_export(request.work, request.actor, request.ids["exportId"])
    path = f"/workspaces/{request.workspace_id}/exports/{request.ids['exportId']}"
    return done(request, "The export is cancelled.", path)
