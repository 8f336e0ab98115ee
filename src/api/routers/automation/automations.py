"""Automations: drafts, versions, canaries, circuit breakers, and the secrets of a workspace."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, QueryId, Router
from models.automation import circuit_breakers
from models.automation.automation_runs import canary_releases
from models.automation.automation_runs.canary_releases import CanaryAnswer, StartCanary
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
from models.automation.circuit_breakers import CircuitBreakerShape, SetCircuitBreaker, read_breaker
from models.automation.secrets import store
from models.automation.secrets.store import DeletedSecret, PutSecret, SecretBody, SecretList
from models.core.access.rules import Level, Scope
from models.workspace.targets import duplication
from runtime.errors import ConflictError

router = Router(tags=["automations"])

AUTOMATIONS = "/v1/workspaces/{workspaceId}/automations"
AUTOMATION = f"{AUTOMATIONS}/{{automationId}}"
VERSION = f"{AUTOMATION}/versions/{{versionId}}"

READ = Access(scopes=[Scope.AUTOMATIONS_READ], resource="automation", level=Level.VIEW)
WRITE = Access(
    scopes=[Scope.AUTOMATIONS_WRITE], resource="automation", level=Level.EDIT, idempotent=True
)
READ_BY_PAGE, WRITE_BY_PAGE = replace(READ, cookie=True), replace(WRITE, cookie=True)
"""For what the editor asks for in the session of a browser."""


@router.post(
    AUTOMATIONS,
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_automation(request: ApiRequest, body: CreateAutomation) -> Data[AutomationDetail]:
    """Create an automation whose version 1 is a draft."""
    return Data(
        await commands.create_automation(request.work, request.actor, request.services.keys, body)
    )


@router.get(
    AUTOMATIONS,
    access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, cookie=True),
)
async def list_automations(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AutomationList]:
    """List automations, newest first."""
    page = request.page("automations", limit, cursor)
    return Data(await queries.list_automations(request.work, request.actor, page))


@router.get(AUTOMATION, access=READ_BY_PAGE)
async def get_automation(request: ApiRequest) -> Data[AutomationDetail]:
    """Get an automation with its current graph and what is wrong with it."""
    return Data(
        await queries.detail(
            request.work, request.actor, request.services.keys, request.ids["automationId"]
        )
    )


@router.patch(AUTOMATION, access=WRITE_BY_PAGE, errors=[ConflictError])
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
    """Put an automation into the trash with its item, for 30 days; open runs continue."""
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
    secret; `references` has the names of the ids in it.
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


@router.post(f"{AUTOMATION}/validate", access=READ_BY_PAGE)
async def validate_automation(
    request: ApiRequest, body: ValidateAutomation
) -> Data[AutomationValidation]:
    """Check a graph without saving it."""
    return Data(
        await commands.validate(request.work, request.actor, request.ids["automationId"], body)
    )


@router.post(f"{AUTOMATION}/publish", access=WRITE_BY_PAGE, errors=[ConflictError])
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


@router.get(VERSION, access=READ_BY_PAGE)
async def get_automation_version(request: ApiRequest) -> Data[AutomationVersionDetail]:
    """Get one version with its graph."""
    return Data(
        await queries.version_detail(
            request.work, request.actor, request.ids["automationId"], request.ids["versionId"]
        )
    )


@router.post(f"{VERSION}/restore", access=WRITE)
async def restore_automation_version(request: ApiRequest) -> Data[AutomationDetail]:
    """Create a draft from an earlier version."""
    return Data(
        await commands.restore_version(
            request.work,
            request.actor,
            request.services.keys,
            request.ids["automationId"],
            request.ids["versionId"],
        )
    )


CANARY = f"{AUTOMATION}/canary"


@router.get(CANARY, access=READ)
async def get_canary(request: ApiRequest) -> Data[CanaryAnswer]:
    """Get the canary of an automation, with the runs of both versions by status."""
    automation_id = request.ids["automationId"]
    return Data(await canary_releases.canary(request.work, request.actor, automation_id))


@router.post(CANARY, access=WRITE, errors=[ConflictError])
async def start_canary(request: ApiRequest, body: StartCanary) -> Data[CanaryAnswer]:
    """Publish the draft, or another version, and let a share of runs try it.

    The version that was published before keeps the other runs. Tests, retries and backfills are
    not shared out. Publishing any other version ends the canary.
    """
    place = request.services.keys, request.ids["automationId"], request.new_id
    return Data(await canary_releases.start(request.work, request.actor, *place, body))


@router.post(f"{CANARY}/promote", access=WRITE, errors=[ConflictError])
async def promote_canary(request: ApiRequest) -> Data[CanaryAnswer]:
    """End the canary; every run takes the candidate from now on."""
    automation_id = request.ids["automationId"]
    return Data(await canary_releases.promote(request.work, request.actor, automation_id))


@router.post(f"{CANARY}/stop", access=WRITE, errors=[ConflictError])
async def stop_canary(request: ApiRequest) -> Data[CanaryAnswer]:
    """End the canary, and publish the version from before again."""
    place = request.services.keys, request.ids["automationId"]
    return Data(await canary_releases.stop(request.work, request.actor, *place))


BREAKER = f"{AUTOMATION}/circuit-breaker"


@router.get(BREAKER, access=READ)
async def get_circuit_breaker(request: ApiRequest) -> Data[CircuitBreakerShape]:
    """Get the circuit breaker of an automation, its state and the number of queued runs."""
    return await _breaker_answer(request)


@router.put(BREAKER, access=WRITE)
async def set_circuit_breaker(
    request: ApiRequest, body: SetCircuitBreaker
) -> Data[CircuitBreakerShape]:
    """Add a circuit breaker to an automation, or change its numbers.

    After `failures` consecutive failures it opens: new runs are queued, as by a pause. After
    `pauseSeconds` it probes with the oldest run. Success closes the breaker and starts the others;
    failure opens it for the same time. Tests and cancelled runs do not count. A resume closes it.
    """
    place = request.actor.workspace_id, request.ids["automationId"]
    await circuit_breakers.set_breaker(request.work, *place, body)
    return await _breaker_answer(request)


@router.delete(BREAKER, access=WRITE)
async def remove_circuit_breaker(request: ApiRequest) -> Data[CircuitBreakerShape]:
    """Remove the circuit breaker of an automation; its queued runs start."""
    place = request.actor.workspace_id, request.ids["automationId"]
    await circuit_breakers.remove_breaker(request.work, *place)
    return await _breaker_answer(request)


async def _breaker_answer(request: ApiRequest) -> Data[CircuitBreakerShape]:
    place = request.actor.workspace_id, request.ids["automationId"]
    return Data(await read_breaker(request.work, *place))


secrets_router = Router(tags=["secrets"])

SECRETS = "/v1/workspaces/{workspaceId}/secrets"
SECRET = f"{SECRETS}/{{secretName}}"

_WRITE_SECRETS = Access(scopes=[Scope.INTEGRATIONS_WRITE])


@secrets_router.get(SECRETS, access=Access(scopes=[Scope.INTEGRATIONS_READ], cookie=True))
async def list_secrets(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[SecretList]:
    """List the secrets of a workspace by name, without their values."""
    page = request.page("secrets", limit, cursor)
    return Data(await store.list_secrets(request.work, request.actor, page))


@secrets_router.put(SECRET, access=_WRITE_SECRETS, errors=[ConflictError])
async def put_secret(request: ApiRequest, body: PutSecret) -> Data[SecretBody]:
    """Create a secret, or replace its value."""
    name = request.path_params["secretName"]
    return Data(
        await store.put_secret(request.work, request.actor, request.services.keys, name, body)
    )


@secrets_router.delete(SECRET, access=_WRITE_SECRETS)
async def delete_secret(request: ApiRequest) -> Data[DeletedSecret]:
    """Delete a secret; nodes that use it will fail."""
    name = request.path_params["secretName"]
    return Data(await store.delete_secret(request.work, request.actor, name))
