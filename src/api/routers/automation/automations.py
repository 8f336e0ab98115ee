"""Automations: create, list, read, edit the draft, and move versions."""

from dataclasses import replace

from api.kernel.routing import Access, Call, Cursor, Data, Limit, QueryId, Router
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
from models.core.preconditions import read_if_match
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
async def create_automation(call: Call, body: CreateAutomation) -> Data[AutomationDetail]:
    """Create an automation whose version 1 is an open draft."""
    return Data(await commands.create_automation(call.work, call.actor, call.kernel.keys, body))


@router.get(AUTOMATIONS, access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW))
async def list_automations(
    call: Call, limit: Limit = 30, cursor: Cursor = None
) -> Data[AutomationList]:
    """List automations, newest first."""
    page = call.page("automations", limit, cursor)
    return Data(await queries.list_automations(call.work, call.actor, page))


@router.get(AUTOMATION, access=READ)
async def get_automation(call: Call) -> Data[AutomationDetail]:
    """Get an automation with its current graph and what is wrong with it."""
    return Data(
        await queries.detail(call.work, call.actor, call.kernel.keys, call.ids["automationId"])
    )


@router.patch(AUTOMATION, access=WRITE, errors=[ConflictError])
async def update_automation(call: Call, body: UpdateAutomation) -> Data[AutomationDetail]:
    """Update an automation.

    Graph and trigger go to the draft, which is opened when there is none; label and enabled act
    at once. With the header `If-Match: <updatedAt>` an automation that was changed since is left
    as it is.
    """
    expected = read_if_match(call.headers.get("if-match"))
    automation_id = call.ids["automationId"]
    return Data(
        await commands.update_automation(
            call.work, call.actor, call.kernel.keys, automation_id, body, expected
        )
    )


@router.delete(AUTOMATION, access=WRITE)
async def delete_automation(call: Call) -> Data[AutomationDetail]:
    """Put an automation into the trash with its item, for 30 days; its open runs go on."""
    return Data(
        await commands.delete_automation(
            call.work, call.actor, call.kernel.keys, call.ids["automationId"]
        )
    )


@router.post(
    f"{AUTOMATION}/duplicate",
    access=replace(WRITE, level=Level.VIEW),
    status_code=201,
    errors=[ConflictError],
)
async def duplicate_automation(call: Call) -> Data[AutomationDetail]:
    """Copy an automation beside the original: a disabled draft with a webhook of its own."""
    actor, keys = call.actor, call.kernel.keys
    found = await queries.summary(call.work, actor, call.ids["automationId"])
    copied = await duplication.duplicate_item(call.work, actor, keys, found.item_id, call.new_id)
    assert copied is not None, "only databases are copied later"
    assert copied.target_id is not None, "an automation's item has a target"
    return Data(await queries.detail(call.work, actor, keys, copied.target_id))


@router.get(f"{AUTOMATION}/export", access=READ)
async def export_automation(
    call: Call, version_id: QueryId | None = None
) -> Data[AutomationDocument]:
    """Export what an automation does as a JSON document.

    Without `versionId` that of the draft, or else of the published version. A document holds no
    secret; `references` tells what the ids in it were called.
    """
    automation_id = call.ids["automationId"]
    return Data(
        await import_export.export_automation(call.work, call.actor, automation_id, version_id)
    )


@router.post(
    f"{AUTOMATIONS}/import",
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def import_automation(call: Call, body: ImportAutomation) -> Data[AutomationDetail]:
    """Import an automation from a document: a disabled draft.

    `mapping` gives, for ids in the document, the ids that take their place here. What this
    workspace lacks is among the draft's `referenceIssues`.
    """
    return Data(
        await import_export.import_automation(call.work, call.actor, call.kernel.keys, body)
    )


@router.post(f"{AUTOMATION}/validate", access=READ)
async def validate_automation(call: Call, body: ValidateAutomation) -> Data[AutomationValidation]:
    """Check a graph without saving it."""
    return Data(await commands.validate(call.work, call.actor, call.ids["automationId"], body))


@router.post(f"{AUTOMATION}/publish", access=WRITE, errors=[ConflictError])
async def publish_automation(call: Call, body: PublishAutomation) -> Data[AutomationDetail]:
    """Publish the open draft, or the version the body names."""
    return Data(
        await commands.publish(
            call.work, call.actor, call.kernel.keys, call.ids["automationId"], body
        )
    )


@router.post(f"{AUTOMATION}/discard-draft", access=WRITE, errors=[ConflictError])
async def discard_draft(call: Call) -> Data[AutomationDetail]:
    """Discard the open draft."""
    return Data(
        await commands.discard_draft(
            call.work, call.actor, call.kernel.keys, call.ids["automationId"]
        )
    )


@router.get(f"{AUTOMATION}/versions", access=READ)
async def list_automation_versions(
    call: Call, limit: Limit = 30, cursor: Cursor = None
) -> Data[AutomationVersionList]:
    """List the versions of an automation, newest first."""
    automation_id = call.ids["automationId"]
    page = call.page("automation_versions", limit, cursor, automation_id)
    return Data(await queries.list_versions(call.work, call.actor, automation_id, page))


@router.get(VERSION, access=READ)
async def get_automation_version(call: Call) -> Data[AutomationVersionDetail]:
    """Get one version with its graph."""
    return Data(
        await queries.version_detail(
            call.work, call.actor, call.ids["automationId"], call.ids["versionId"]
        )
    )


@router.post(f"{VERSION}/restore", access=WRITE)
async def restore_automation_version(call: Call) -> Data[AutomationDetail]:
    """Open a draft with what an earlier version did."""
    return Data(
        await commands.restore_version(
            call.work,
            call.actor,
            call.kernel.keys,
            call.ids["automationId"],
            call.ids["versionId"],
        )
    )
