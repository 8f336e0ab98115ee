"""Database templates: list them, make databases from them."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Router, WholeLimit
from models.core.access.rules import Level, Scope
from models.data.database_templates import commands, queries
from models.data.database_templates.shapes import (
    CreateFromTemplate,
    DatabaseTemplateList,
    NewFromTemplate,
)
from models.data.databases.shapes import DatabaseDetail
from runtime.errors import ConflictError

router = Router(tags=["database templates"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
TEMPLATES = f"{WORKSPACE}/database-templates"

CREATE = Access(scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True)


@router.get(TEMPLATES, access=Access(scopes=[Scope.DATABASES_READ]))
async def list_database_templates(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[DatabaseTemplateList]:
    """List the database templates the platform ships."""
    page = request.page("database templates", limit, cursor).among(queries.list_templates())
    return Data(DatabaseTemplateList(templates=page.items, cursor=page.cursor))


@router.post(
    f"{WORKSPACE}/databases/from-template",
    access=CREATE,
    status_code=201,
    errors=[ConflictError],
)
async def create_database_from_template(
    request: ApiRequest, body: CreateFromTemplate
) -> Data[DatabaseDetail]:
    """Create a database from a template, with its fields, views and record templates."""
    return Data(
        await commands.create_from_template(request.work, request.actor, body.template_id, body)
    )


@router.post(
    f"{TEMPLATES}/{{template}}/databases",
    access=CREATE,
    status_code=201,
    errors=[ConflictError],
)
async def create_database_of_template(
    request: ApiRequest, body: NewFromTemplate
) -> Data[DatabaseDetail]:
    """Create a database from the template in the path, named by its id or key."""
    template = request.path_params["template"]
    return Data(await commands.create_from_template(request.work, request.actor, template, body))
