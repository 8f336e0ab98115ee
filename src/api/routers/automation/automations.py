"""Automations: drafts, versions, canaries, circuit breakers, and the secrets of a workspace."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Data, Deletes, Router
from models.automation import circuit_breakers
from models.automation.automation_runs import canary_releases
from models.automation.automations import commands, import_export, queries, shapes
from models.automation.secrets import store
from models.core.access.rules import Level, Scope
from models.core.references.rules import SubjectKind
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
    calls=commands.create_automation,
)
async def create_automation() -> None:
    """Create an automation whose version 1 is a draft."""


@router.get(
    AUTOMATIONS,
    access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, cookie=True),
    calls=queries.list_automations,
)
async def list_automations() -> None:
    """List automations, newest first."""


@router.get(AUTOMATION, access=READ_BY_PAGE, calls=queries.detail)
async def get_automation() -> None:
    """Get an automation with its current graph and what is wrong with it."""


@router.patch(
    AUTOMATION, access=WRITE_BY_PAGE, errors=[ConflictError], calls=commands.update_automation
)
async def update_automation() -> None:
    """Update an automation.

    Graph and trigger go to the draft, which is opened when there is none; label and enabled act
    at once. With the header `If-Match: <updatedAt>` an automation that was changed since is left
    as it is.
    """


@router.delete(
    AUTOMATION,
    access=WRITE,
    calls=commands.delete_automation,
    deletes=Deletes(SubjectKind.AUTOMATION),
)
async def delete_automation() -> None:
    """Put an automation into the trash with its item, for 30 days; open runs continue."""


@router.post(
    f"{AUTOMATION}/duplicate",
    access=replace(WRITE, level=Level.VIEW),
    status_code=201,
    errors=[ConflictError],
)
async def duplicate_automation(request: ApiRequest) -> Data[shapes.AutomationDetail]:
    """Copy an automation beside the original: a disabled draft with a webhook of its own."""
    actor, keys = request.actor, request.services.keys
    found = await queries.summary(request.work, actor, request.ids["automationId"])
    copied = await duplication.duplicate_item(
        request.work, actor, keys, found.item_id, request.new_id
    )
    assert copied is not None, "only databases are copied later"
    assert copied.target_id is not None, "an automation's item has a target"
    return Data(await queries.detail(request.work, actor, keys, copied.target_id))


@router.get(
    f"{AUTOMATION}/export",
    access=READ,
    errors=[ConflictError],
    calls=import_export.export_automation,
)
async def export_automation() -> None:
    """Export what an automation does as a JSON document.

    Without `versionId` that of the draft, or else of the published version. A document holds no
    secret; `references` has the names of the ids in it.
    """


@router.post(
    f"{AUTOMATIONS}/import",
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=import_export.import_automation,
)
async def import_automation() -> None:
    """Import an automation from a document: a disabled draft.

    `mapping` gives, for ids in the document, the ids that take their place here. What this
    workspace lacks is among the draft's `referenceIssues`.
    """


@router.post(
    f"{AUTOMATION}/validate", access=replace(READ_BY_PAGE, safe=True), calls=commands.validate
)
async def validate_automation() -> None:
    """Check a graph without saving it."""


@router.post(
    f"{AUTOMATION}/publish", access=WRITE_BY_PAGE, errors=[ConflictError], calls=commands.publish
)
async def publish_automation() -> None:
    """Publish the open draft, or the version the body names."""


@router.post(
    f"{AUTOMATION}/discard-draft",
    access=WRITE,
    errors=[ConflictError],
    calls=commands.discard_draft,
)
async def discard_draft() -> None:
    """Discard the open draft."""


@router.get(f"{AUTOMATION}/versions", access=READ, calls=queries.list_versions)
async def list_automation_versions() -> None:
    """List the versions of an automation, newest first."""


@router.get(VERSION, access=READ_BY_PAGE, calls=queries.version_detail)
async def get_automation_version() -> None:
    """Get one version with its graph."""


@router.post(f"{VERSION}/restore", access=WRITE, calls=commands.restore_version)
async def restore_automation_version() -> None:
    """Create a draft from an earlier version."""


CANARY = f"{AUTOMATION}/canary"


@router.get(CANARY, access=READ, calls=canary_releases.canary)
async def get_canary() -> None:
    """Get the canary of an automation, with the runs of both versions by status."""


@router.post(CANARY, access=WRITE, errors=[ConflictError], calls=canary_releases.start)
async def start_canary() -> None:
    """Publish the draft, or another version, and let a share of runs try it.

    The version that was published before keeps the other runs. Tests, retries and backfills are
    not shared out. Publishing any other version ends the canary.
    """


@router.post(
    f"{CANARY}/promote", access=WRITE, errors=[ConflictError], calls=canary_releases.promote
)
async def promote_canary() -> None:
    """End the canary; every run takes the candidate from now on."""


@router.post(f"{CANARY}/stop", access=WRITE, errors=[ConflictError], calls=canary_releases.stop)
async def stop_canary() -> None:
    """End the canary, and publish the version from before again."""


BREAKER = f"{AUTOMATION}/circuit-breaker"


@router.get(BREAKER, access=READ)
async def get_circuit_breaker(request: ApiRequest) -> Data[circuit_breakers.CircuitBreakerShape]:
    """Get the circuit breaker of an automation, its state and the number of queued runs."""
    return await _breaker_answer(request)


@router.put(BREAKER, access=WRITE)
async def set_circuit_breaker(
    request: ApiRequest, body: circuit_breakers.SetCircuitBreaker
) -> Data[circuit_breakers.CircuitBreakerShape]:
    """Add a circuit breaker to an automation, or change its numbers.

    After `failures` consecutive failures it opens: new runs are queued, as by a pause. After
    `pauseSeconds` it probes with the oldest run. Success closes the breaker and starts the others;
    failure opens it for the same time. Tests and cancelled runs do not count. A resume closes it.
    """
    place = request.actor.workspace_id, request.ids["automationId"]
    await circuit_breakers.set_breaker(request.work, *place, body)
    return await _breaker_answer(request)


@router.delete(BREAKER, access=WRITE)
async def remove_circuit_breaker(request: ApiRequest) -> Data[circuit_breakers.CircuitBreakerShape]:
    """Remove the circuit breaker of an automation; its queued runs start."""
    place = request.actor.workspace_id, request.ids["automationId"]
    await circuit_breakers.remove_breaker(request.work, *place)
    return await _breaker_answer(request)


async def _breaker_answer(request: ApiRequest) -> Data[circuit_breakers.CircuitBreakerShape]:
    place = request.actor.workspace_id, request.ids["automationId"]
    return Data(await circuit_breakers.read_breaker(request.work, *place))


secrets_router = Router(tags=["secrets"])

SECRETS = "/v1/workspaces/{workspaceId}/secrets"
SECRET = f"{SECRETS}/{{secretName}}"

_WRITE_SECRETS = Access(scopes=[Scope.INTEGRATIONS_WRITE])


@secrets_router.get(
    SECRETS, access=Access(scopes=[Scope.INTEGRATIONS_READ], cookie=True), calls=store.list_secrets
)
async def list_secrets() -> None:
    """List the secrets of a workspace by name, without their values."""


@secrets_router.put(
    SECRET,
    access=replace(_WRITE_SECRETS, hides_body=True),
    errors=[ConflictError],
    calls=store.put_secret,
)
async def put_secret() -> None:
    """Create a secret, or replace its value."""


@secrets_router.delete(
    SECRET,
    access=_WRITE_SECRETS,
    calls=store.delete_secret,
    deletes=Deletes(SubjectKind.SECRET),
)
async def delete_secret() -> None:
    """Delete a secret; nodes that use it will fail."""
