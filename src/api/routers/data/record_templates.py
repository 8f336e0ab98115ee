"""Record templates of a database: make, list, change, delete."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Router, WholeLimit
from models.core.access.rules import Level, Scope
from models.data.record_templates import commands, queries
from models.data.record_templates.shapes import (
    CreateRecordTemplate,
    DeletedRecordTemplate,
    RecordTemplateList,
    RecordTemplateShape,
    UpdateRecordTemplate,
)
from runtime.errors import ConflictError

router = Router(tags=["record templates"])

TEMPLATES = "/v1/databases/{databaseId}/record-templates"
TEMPLATE = f"{TEMPLATES}/{{templateId}}"

READ = Access(scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW)
WRITE = Access(
    scopes=[Scope.DATABASES_WRITE], resource="database", level=Level.EDIT, idempotent=True
)


@router.get(TEMPLATES, access=READ)
async def list_record_templates(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[RecordTemplateList]:
    """List the record templates of a database by label."""
    workspace_id, database_id = request.actor.workspace_id, request.ids["databaseId"]
    page = request.page("record templates", limit, cursor, database_id)
    return Data(await queries.list_templates(request.work, workspace_id, database_id, page))


@router.post(TEMPLATES, access=WRITE, status_code=201, errors=[ConflictError])
async def create_record_template(
    request: ApiRequest, body: CreateRecordTemplate
) -> Data[RecordTemplateShape]:
    """Create a record template.

    Its content is written on the surface `contentSurfaceId`. A new default takes the place of
    the one before.
    """
    database_id = request.ids["databaseId"]
    return Data(await commands.create_template(request.work, request.actor, database_id, body))


@router.patch(TEMPLATE, access=WRITE)
async def update_record_template(
    request: ApiRequest, body: UpdateRecordTemplate
) -> Data[RecordTemplateShape]:
    """Update a record template; `data` and `relations` replace what was there."""
    database_id, template_id = request.ids["databaseId"], request.ids["templateId"]
    return Data(
        await commands.update_template(request.work, request.actor, database_id, template_id, body)
    )


@router.delete(TEMPLATE, access=WRITE)
async def delete_record_template(request: ApiRequest) -> Data[DeletedRecordTemplate]:
    """Delete a record template; records made from it stay."""
    database_id, template_id = request.ids["databaseId"], request.ids["templateId"]
    return Data(
        await commands.delete_template(request.work, request.actor, database_id, template_id)
    )
