"""Databases: made, copied and made from templates; their fields, views and forms."""

from dataclasses import replace

from api.anonymous_requests import submitter_of
from api.kernel import routing
from api.kernel.limits import TooOftenError
from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Level, Scope
from models.core.references.rules import SubjectKind
from models.data.database_copies.commands import DuplicateDatabase, accept_copy, copy_outcome
from models.data.database_copies.copying import WAIT_SECONDS
from models.data.database_templates import templates
from models.data.databases import field_changes, field_conversion, shapes, store
from models.data.databases.field_conversion import conversion_outcome
from models.data.forms import commands, queries
from models.data.forms import shapes as form_shapes
from models.data.views import commands as view_commands
from models.data.views import queries as view_queries
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError, UnsupportedError
from runtime.ids import parse_id

copies_router = routing.Router(tags=["databases"])


@copies_router.post(
    "/v1/workspaces/{workspaceId}/databases/{databaseId}/duplicate",
    access=routing.Access(
        scopes=[Scope.DATABASES_READ, Scope.DATABASES_WRITE],
        resource="database",
        level=Level.VIEW,
        idempotent=True,
        joins=True,
    ),
    errors=[ConflictError, InProgressError],
)
async def duplicate_database(
    request: routing.ApiRequest, body: DuplicateDatabase
) -> routing.Data[shapes.DatabaseDetail]:
    """Duplicate a database beside it, optionally with its records.

    With `includeRecords` the scopes records:read and records:write are needed as well. Where the
    caller may not create items beside it, the copy is put at the top of the workspace. A relation
    into a database that the caller does not edit is left out, with the fields that depend on it.
    The copy appears when it is complete, which the call waits for, up to ten minutes. The same call
    made again before it was answered gives the same copy; past ten minutes the answer is
    in_progress.
    """
    actor, copy_id = request.actor, request.new_id
    await accept_copy(request.work, actor, request.ids["databaseId"], copy_id, body)

    async def poll(work: UnitOfWork, last: bool) -> shapes.DatabaseDetail | None:
        return await copy_outcome(work, actor, copy_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


templates_router = routing.Router(tags=["database templates"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
TEMPLATES = f"{WORKSPACE}/database-templates"

CREATE_FROM_TEMPLATE = routing.Access(
    scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True
)


@templates_router.get(TEMPLATES, access=routing.Access(scopes=[Scope.DATABASES_READ]))
async def list_database_templates(
    request: routing.ApiRequest, limit: routing.WholeLimit = 1000, cursor: routing.Cursor = None
) -> routing.Data[templates.DatabaseTemplateList]:
    """List the database templates the platform ships."""
    page = request.page("database templates", limit, cursor).among(templates.list_templates())
    return routing.Data(templates.DatabaseTemplateList.of(page))


@templates_router.post(
    f"{WORKSPACE}/databases/from-template",
    access=CREATE_FROM_TEMPLATE,
    status_code=201,
    errors=[ConflictError],
)
async def create_database_from_template(
    request: routing.ApiRequest, body: templates.CreateFromTemplate
) -> routing.Data[shapes.DatabaseDetail]:
    """Create a database from a template, with its fields, views and record templates."""
    return routing.Data(
        await templates.create_from_template(request.work, request.actor, body.template_id, body)
    )


@templates_router.post(
    f"{TEMPLATES}/{{template}}/databases",
    access=CREATE_FROM_TEMPLATE,
    status_code=201,
    errors=[ConflictError],
)
async def create_database_of_template(
    request: routing.ApiRequest, body: templates.NewFromTemplate
) -> routing.Data[shapes.DatabaseDetail]:
    """Create a database from the template in the path, named by its id or key."""
    template = request.path_params["template"]
    return routing.Data(
        await templates.create_from_template(request.work, request.actor, template, body)
    )


router = routing.Router(tags=["databases"])

DATABASES = "/v1/workspaces/{workspaceId}/databases"
DATABASE = f"{DATABASES}/{{databaseId}}"

WRITE = routing.Access(
    scopes=[Scope.DATABASES_WRITE], resource="database", level=Level.EDIT, idempotent=True
)


@router.post(
    DATABASES,
    access=routing.Access(scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True),
    errors=[ConflictError],
    status_code=201,
    calls=store.create_database,
)
async def create_database() -> None:
    """Create a database with its fields.

    A field with the key `title` is put first unless one is described. A relation gets its inverse
    field in the related database, which needs edit access there.
    """


@router.get(
    DATABASES,
    access=routing.Access(scopes=[Scope.DATABASES_READ], level=Level.VIEW, cookie=True),
    calls=store.list_databases,
)
async def list_databases() -> None:
    """List databases with their fields, newest first."""


@router.get(
    DATABASE,
    access=routing.Access(
        scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW, cookie=True
    ),
    calls=store.get_database,
)
async def get_database() -> None:
    """Get a database with its fields and views."""


@router.patch(DATABASE, access=WRITE, errors=[ConflictError], calls=store.update_database)
async def update_database() -> None:
    """Update a database.

    What the body names is replaced; of `recordLayout`, key by key. With the header
    `If-Match: <updatedAt>` a database that was changed since is left unchanged.
    """


@router.delete(
    DATABASE,
    access=WRITE,
    calls=store.delete_database,
    deletes=routing.Deletes(SubjectKind.DATABASE),
)
async def delete_database() -> None:
    """Put a database into the trash, with everything below its item."""


fields_router = routing.Router(tags=["fields"])

FIELDS = "/v1/databases/{databaseId}/fields"
FIELD = f"{FIELDS}/{{fieldId}}"

CONVERSION_SECONDS = 25
"""The time a request waits for a conversion."""

WRITE_FIELD = routing.Access(
    scopes=[Scope.DATABASES_WRITE], resource="field", level=Level.EDIT, idempotent=True
)
WRITE_FIELD_BY_PAGE = replace(WRITE_FIELD, cookie=True)


@fields_router.post(
    FIELDS,
    access=replace(WRITE_FIELD_BY_PAGE, resource="database"),
    status_code=201,
    errors=[ConflictError],
    calls=field_changes.create_field,
)
async def create_field() -> None:
    """Create a field.

    A relation gets its inverse field in the related database, labelled by the setting
    `inverseLabel` or as this database.
    """


@fields_router.patch(
    FIELD, access=WRITE_FIELD_BY_PAGE, errors=[ConflictError], calls=field_changes.update_field
)
async def update_field() -> None:
    """Update a field.

    Options and settings are replaced as a whole: an option named by its id or key is kept, one that
    is left out is removed from the records. Its key is changed by renaming it, its kind by
    converting it. With the header `If-Match: <updatedAt>` a field that was changed since is left
    unchanged.
    """


@fields_router.delete(
    FIELD,
    access=WRITE_FIELD_BY_PAGE,
    errors=[ConflictError],
    calls=field_changes.delete_field,
    deletes=routing.Deletes(SubjectKind.FIELD),
)
async def delete_field() -> None:
    """Delete a field, with its values and the inverse of a relation.

    It is refused while formulas, rollups or lookups depend on the field.
    """


@fields_router.post(
    f"{FIELD}/convert",
    access=WRITE_FIELD,
    errors=[ConflictError, InProgressError, UnsupportedError],
)
async def convert_field(
    request: routing.ApiRequest, body: shapes.ConvertField
) -> routing.Data[shapes.ConversionPreview | shapes.ConvertedField]:
    """Convert a field to another kind, or preview what that would lose.

    All values change at once when the conversion is done; until then, and when it fails, the field
    is unchanged. A conversion that takes longer than 25 seconds answers `in_progress`: repeat the
    request with the same Idempotency-Key for its outcome.
    """
    place = (request.work, request.actor, request.ids["databaseId"], request.ids["fieldId"])
    request.is_safe = body.preview
    if body.preview:
        return routing.Data(await field_conversion.preview_conversion(*place, body))
    await field_conversion.accept_conversion(*place, request.new_id, body)

    async def poll(work: UnitOfWork, last: bool) -> shapes.ConvertedField | None:
        return await conversion_outcome(work, *place[1:], request.new_id, last=last)

    return request.deferred(poll, within=CONVERSION_SECONDS)


views_router = routing.Router(tags=["views"])

VIEWS = "/v1/databases/{databaseId}/views"
VIEW = f"{VIEWS}/{{viewId}}"

READ_VIEWS = routing.Access(scopes=[Scope.VIEWS_READ], resource="database", level=Level.VIEW)

WRITE_VIEWS = routing.Access(
    scopes=[Scope.VIEWS_WRITE], resource="database", level=Level.EDIT, idempotent=True
)
WRITE_VIEWS_BY_PAGE = replace(WRITE_VIEWS, cookie=True)


@views_router.post(
    VIEWS,
    access=WRITE_VIEWS_BY_PAGE,
    status_code=201,
    errors=[ConflictError],
    calls=view_commands.create_view,
)
async def create_view() -> None:
    """Create a view.

    A personal one is visible to its owner only. `manifest` is checked against the fields of the
    database and what the kind needs; keys it does not know are kept.
    """


@views_router.get(VIEWS, access=replace(READ_VIEWS, cookie=True), calls=view_queries.list_views)
async def list_views() -> None:
    """List views in their order: the shared ones and the caller's own."""


@views_router.get(VIEW, access=replace(READ_VIEWS, cookie=True), calls=view_queries.get_view)
async def get_view() -> None:
    """Get a view."""


@views_router.post(
    f"{VIEW}/duplicate",
    access=WRITE_VIEWS_BY_PAGE,
    status_code=201,
    errors=[ConflictError],
    calls=view_commands.duplicate_view,
)
async def duplicate_view() -> None:
    """Duplicate a view: the copy has its kind and its manifest, and is not locked.

    A body may name another label or scope. A view that has an item is copied into the database.
    """


@views_router.patch(
    VIEW, access=WRITE_VIEWS_BY_PAGE, errors=[ConflictError], calls=view_commands.update_view
)
async def update_view() -> None:
    """Update a view.

    A manifest replaces the one before. With the header `If-Match: <updatedAt>` a view that was
    changed since is left unchanged.
    """


@views_router.delete(
    VIEW,
    access=WRITE_VIEWS_BY_PAGE,
    errors=[ConflictError],
    calls=view_commands.delete_view,
    deletes=routing.Deletes(SubjectKind.VIEW),
)
async def delete_view() -> None:
    """Delete a view; a database needs at least one shared view."""


forms_router = Router(tags=["forms"])

FORMS = "/v1/workspaces/{workspaceId}/forms"
FORM = f"{FORMS}/{{formId}}"
PUBLIC_FORM = "/v1/forms/{itemId}"

CREATE = Access(scopes=[Scope.VIEWS_WRITE], level=Level.EDIT, idempotent=True)
READ = Access(scopes=[Scope.VIEWS_READ], resource="form", level=Level.VIEW)
WRITE_FORMS = replace(CREATE, resource="form")
ANYBODY = Access(credential="none")


@forms_router.post(
    FORMS, access=CREATE, status_code=201, errors=[ConflictError], calls=commands.create_form_item
)
async def create_form() -> None:
    """Create a form and its item.

    It also needs edit access to the database its responses are saved to. Without `fields` it
    includes all fields that a form can ask for. `POST /v1/items` with the kind `form` does the
    same.
    """


@forms_router.get(FORM, access=replace(READ, cookie=True), calls=queries.get_form)
async def get_form() -> None:
    """Get a form; its id is the target of its item."""


@forms_router.patch(FORM, access=WRITE_FORMS, errors=[ConflictError], calls=commands.update_form)
async def update_form() -> None:
    """Change a form, or make it public.

    It also needs edit access to the database its responses are saved to. With the header
    `If-Match: <version>` a form that was changed since is left unchanged.
    """


@forms_router.get(PUBLIC_FORM, access=ANYBODY)
async def get_public_form(request: ApiRequest) -> Data[form_shapes.PublicForm]:
    """Get the questions of a public form; `accepting` says whether it accepts responses now."""
    return Data(await queries.public_form(request.work, parse_id(request.path_params["itemId"])))


@forms_router.post(
    f"{PUBLIC_FORM}/submissions",
    access=replace(ANYBODY, idempotent=True),
    status_code=201,
    errors=[TooOftenError],
)
async def submit_form(
    request: ApiRequest, body: form_shapes.SubmitForm
) -> Data[form_shapes.SubmittedForm]:
    """Submit a response to a public form.

    Submissions that are sent again with the same `Idempotency-Key` make one record and get the same
    answer for 24 hours. They are limited by form and by address, over all processes.
    """
    item_id = parse_id(request.path_params["itemId"])
    submitter = submitter_of(request, item_id)
    return Data(await commands.submit_form(request.work, item_id, body, submitter))
