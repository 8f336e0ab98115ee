"""Automations: create, list, read, edit the draft, and move versions."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, QueryId, Router
from models.automation.automations import commands, import_export, queries
from models.automation.automations.import_export import AutomationDocument, ImportAutomation
from models.automation.automations.shapes import (
    AutomationDetail,
    AutomationList,
    AutomationValidation,
    AutomationVersionDetail,
    AutomationVersionList,
    CreateAutomation,
    PublishAutomation,
    UpdateAutomation,
    ValidateAutomation,
)
from models.core.access.rules import Level, Scope
from models.workspace.targets.commands import duplication
from runtime.errors import ConflictError

router = Router(tags=["automations"])

AUTOMATIONS = "/v1/workspaces/{workspaceId}/automations"
AUTOMATION = f"{AUTOMATIONS}/{{automationId}}"
VERSION = f"{AUTOMATION}/versions/{{versionId}}"

READ = Access(scopes=[Scope.AUTOMATIONS_READ], resource="automation", level=Level.VIEW)
WRITE = Access(
    scopes=[Scope.AUTOMATIONS_WRITE], resource="automation", level=Level.EDIT, idempotent=True
)


@router.post(
    AUTOMATIONS,
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_automation(request: ApiRequest, body: CreateAutomation) -> Data[AutomationDetail]:
    """Create an automation whose version 1 is an open draft."""
    return Data(
        await commands.create_automation(request.work, request.actor, request.services.keys, body)
    )


@router.get(AUTOMATIONS, access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW))
async def list_automations(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AutomationList]:
    """List automations, newest first."""
    page = request.page("automations", limit, cursor)
    return Data(await queries.list_automations(request.work, request.actor, page))


@router.get(AUTOMATION, access=READ)
async def get_automation(request: ApiRequest) -> Data[AutomationDetail]:
    """Get an automation with its current graph and what is wrong with it."""
    return Data(
        await queries.detail(
            request.work, request.actor, request.services.keys, request.ids["automationId"]
        )
    )


@router.patch(AUTOMATION, access=WRITE, errors=[ConflictError])
async def update_automation(
    request: ApiRequest, body: UpdateAutomation, if_match: IfUnchanged = None
) -> Data[AutomationDetail]:
    """Update an automation.

    Graph and trigger go to the draft, which is opened when there is none; label and enabled act
    at once. With the header `If-Match: <updatedAt>` an automation that was changed since is left
    as it is.
    """
    automation_id = request.ids["automationId"]
    return Data(
        await commands.update_automation(
            request.work, request.actor, request.services.keys, automation_id, body, if_match
        )
    )


@router.delete(AUTOMATION, access=WRITE)
async def delete_automation(request: ApiRequest) -> Data[AutomationDetail]:
    """Put an automation into the trash with its item, for 30 days; its open runs go on."""
    return Data(
        await commands.delete_automation(
            request.work, request.actor, request.services.keys, request.ids["automationId"]
        )
    )


@router.post(
    f"{AUTOMATION}/duplicate",
    access=replace(WRITE, level=Level.VIEW),
    status_code=201,
    errors=[ConflictError],
)
async def duplicate_automation(request: ApiRequest) -> Data[AutomationDetail]:
    """Copy an automation beside the original: a disabled draft with a webhook of its own."""
    actor, keys = request.actor, request.services.keys
    found = await queries.summary(request.work, actor, request.ids["automationId"])
    copied = await duplication.duplicate_item(
        request.work, actor, keys, found.item_id, request.new_id
    )
    assert copied is not None, "only databases are copied later"
    assert copied.target_id is not None, "an automation's item has a target"
    return Data(await queries.detail(request.work, actor, keys, copied.target_id))


@router.get(f"{AUTOMATION}/export", access=READ, errors=[ConflictError])
async def export_automation(
    request: ApiRequest, version_id: QueryId | None = None
) -> Data[AutomationDocument]:
    """Export what an automation does as a JSON document.

    Without `versionId` that of the draft, or else of the published version. A document holds no
    secret; `references` tells what the ids in it were called.
    """
    automation_id = request.ids["automationId"]
    return Data(
        await import_export.export_automation(
            request.work, request.actor, automation_id, version_id
        )
    )


@router.post(
    f"{AUTOMATIONS}/import",
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def import_automation(request: ApiRequest, body: ImportAutomation) -> Data[AutomationDetail]:
    """Import an automation from a document: a disabled draft.

    `mapping` gives, for ids in the document, the ids that take their place here. What this
    workspace lacks is among the draft's `referenceIssues`.
    """
    return Data(
        await import_export.import_automation(
            request.work, request.actor, request.services.keys, body
        )
    )


@router.post(f"{AUTOMATION}/validate", access=READ)
async def validate_automation(
    request: ApiRequest, body: ValidateAutomation
) -> Data[AutomationValidation]:
    """Check a graph without saving it."""
    return Data(
        await commands.validate(request.work, request.actor, request.ids["automationId"], body)
    )


@router.post(f"{AUTOMATION}/publish", access=WRITE, errors=[ConflictError])
async def publish_automation(
    request: ApiRequest, body: PublishAutomation
) -> Data[AutomationDetail]:
    """Publish the open draft, or the version the body names."""
    return Data(
        await commands.publish(
            request.work, request.actor, request.services.keys, request.ids["automationId"], body
        )
    )


@router.post(f"{AUTOMATION}/discard-draft", access=WRITE, errors=[ConflictError])
async def discard_draft(request: ApiRequest) -> Data[AutomationDetail]:
    """Discard the open draft."""
    return Data(
        await commands.discard_draft(
            request.work, request.actor, request.services.keys, request.ids["automationId"]
        )
    )


@router.get(f"{AUTOMATION}/versions", access=READ)
async def list_automation_versions(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AutomationVersionList]:
    """List the versions of an automation, newest first."""
    automation_id = request.ids["automationId"]
    page = request.page("automation_versions", limit, cursor, automation_id)
    return Data(await queries.list_versions(request.work, request.actor, automation_id, page))


@router.get(VERSION, access=READ)
async def get_automation_version(request: ApiRequest) -> Data[AutomationVersionDetail]:
    """Get one version with its graph."""
    return Data(
        await queries.version_detail(
            request.work, request.actor, request.ids["automationId"], request.ids["versionId"]
        )
    )


@router.post(f"{VERSION}/restore", access=WRITE)
async def restore_automation_version(request: ApiRequest) -> Data[AutomationDetail]:
    """Open a draft with what an earlier version did."""
    return Data(
        await commands.restore_version(
            request.work,
            request.actor,
            request.services.keys,
            request.ids["automationId"],
            request.ids["versionId"],
        )
    )
