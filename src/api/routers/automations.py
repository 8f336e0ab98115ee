"""Automations: create, list, read, edit the draft, and move versions."""

from api.kernel.routing import Access, Call, Cursor, Data, Limit, Router
from models.access.rules import Level, Scope
from models.automations import commands, queries
from models.automations.shapes import (
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
    at once.
    """
    return Data(
        await commands.update_automation(
            call.work, call.actor, call.kernel.keys, call.ids["automationId"], body
        )
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
