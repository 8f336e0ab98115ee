"""Operations on members, invitations, API keys, segments and experiments."""

from api.kernel.routing import Access, Deletes, Router, WholeLimit
from models.content import grants
from models.core.access.rules import Level, Scope
from models.core.references.rules import SubjectKind
from models.people import api_keys, audience_segments, invitations, members
from models.people.experiments import assignments, commands, queries
from models.people.invitations import list_invitations as invitations_to
from models.people.request_logs import page_of_requests
from runtime.errors import ConflictError, NotFoundError

router = Router(tags=["members"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
MEMBER = f"{WORKSPACE}/members/{{userId}}"
INVITATIONS = f"{WORKSPACE}/invitations"
ITEM_ACCESS = "/v1/items/{itemId}/access"


@router.get(
    f"{WORKSPACE}/members",
    access=Access(scopes=[Scope.MEMBERS_READ], cookie=True),
    calls=members.list_members,
)
async def list_members() -> None:
    """List the members of a workspace, longest-standing first."""


@router.patch(
    MEMBER,
    access=Access(scopes=[Scope.MEMBERS_MANAGE], resource="user", idempotent=True),
    errors=[ConflictError],
    calls=members.update_member,
)
async def update_member() -> None:
    """Change the role of a member. You cannot give or change roles above your own."""


@router.delete(
    MEMBER,
    access=Access(scopes=[Scope.WORKSPACE_READ], resource="user", idempotent=True),
    errors=[ConflictError],
    calls=members.remove_member,
    deletes=Deletes(SubjectKind.MEMBER),
)
async def remove_member() -> None:
    """Remove a member (needs members:manage), or leave the workspace.

    The grants and API keys of the member are revoked.
    """


@router.get(INVITATIONS, access=Access(scopes=[Scope.MEMBERS_READ]), calls=invitations_to)
async def list_invitations() -> None:
    """List invitations, newest first, without their tokens."""


@router.post(
    INVITATIONS,
    access=Access(scopes=[Scope.MEMBERS_INVITE], idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=invitations.create_invitation,
)
async def create_invitation() -> None:
    """Invite a person by email. The token is only returned once.

    It expires after seven days and replaces an open invitation of the same person.
    """


@router.delete(
    f"{INVITATIONS}/{{invitationId}}",
    access=Access(scopes=[Scope.MEMBERS_INVITE], resource="invitation", idempotent=True),
    calls=invitations.revoke_invitation,
)
async def revoke_invitation() -> None:
    """Revoke an open invitation; a closed one is returned unchanged."""


@router.post(
    "/v1/invitations/{token}/accept",
    access=Access(credential="session", idempotent=True),
    calls=invitations.accept_invitation,
)
async def accept_invitation() -> None:
    """Accept an invitation to the email of the caller."""


@router.get(
    ITEM_ACCESS,
    access=Access(scopes=[Scope.RESOURCES_READ], resource="item", level=Level.MANAGE),
    calls=grants.item_access,
)
async def get_item_access() -> None:
    """Get the access mode and the grants of an item."""


@router.put(
    ITEM_ACCESS,
    access=Access(
        scopes=[Scope.RESOURCES_WRITE], resource="item", level=Level.MANAGE, idempotent=True
    ),
    calls=grants.replace_access,
)
async def replace_item_access() -> None:
    """Replace the access mode and grants of an item.

    `open` inherits from the parent item, `restricted` needs a grant here or above, up to the
    nearest restricted item. Owners and administrators can always manage items.
    """


api_keys_router = Router(tags=["api keys"])


@api_keys_router.get(
    "/v1/workspaces/{workspaceId}/api-keys",
    access=Access(scopes=[Scope.API_KEYS_READ]),
    calls=api_keys.page_of_keys,
)
async def list_api_keys(limit: WholeLimit = 1000) -> None:
    """List API keys, newest first, without their secrets."""


@api_keys_router.post(
    "/v1/workspaces/{workspaceId}/api-keys",
    access=Access(scopes=[Scope.API_KEYS_WRITE], idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=api_keys.create_key,
)
async def create_api_key() -> None:
    """Create an API key. Its secret is only returned once."""


@api_keys_router.get(
    "/v1/workspaces/{workspaceId}/api-keys/request-logs",
    access=Access(scopes=[Scope.API_KEYS_READ]),
    calls=page_of_requests,
)
async def list_request_logs() -> None:
    """List the API requests of the workspace, newest first."""


@api_keys_router.delete(
    "/v1/workspaces/{workspaceId}/api-keys/{apiKeyId}",
    access=Access(scopes=[Scope.API_KEYS_WRITE], resource="api_key", idempotent=True),
    calls=api_keys.revoke_key,
)
async def revoke_api_key() -> None:
    """Revoke an API key immediately."""


experiments_router = Router(tags=["experiments"])

ADMIN = "/v1/admin/experiments"
SEGMENTS = "/v1/admin/audience-segments"


@experiments_router.post(
    ADMIN,
    access=Access(platform_admin=True, idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=commands.create_experiment,
)
async def create_experiment() -> None:
    """Create an experiment as draft or scheduled.

    It has 2 to 10 variants whose splits add up to 100. Its flag key and target must be unique among
    experiments that are not archived.
    """


@experiments_router.get(ADMIN, access=Access(platform_admin=True), calls=queries.list_experiments)
async def list_experiments() -> None:
    """List experiments with their statistics, newest first."""


@experiments_router.get(
    f"{ADMIN}/{{experimentId}}", access=Access(platform_admin=True), calls=queries.get_experiment
)
async def get_experiment() -> None:
    """Get an experiment with its statistics."""


@experiments_router.patch(
    f"{ADMIN}/{{experimentId}}",
    access=Access(platform_admin=True, idempotent=True),
    errors=[ConflictError],
    calls=commands.update_experiment,
)
async def update_experiment() -> None:
    """Change the status, variants, targeting or texts of an experiment.

    `draft` changes to `scheduled`, `scheduled` to `running`, and `running` to `paused` and back.
    Both change to `completed`, with a `winner` or an `endsAt`. All but running ones can be
    `archived`. A scheduled experiment starts at its `startedAt`, a running one ends at its
    `endsAt`.
    """


@experiments_router.get(
    SEGMENTS, access=Access(platform_admin=True), calls=audience_segments.list_segments
)
async def list_audience_segments(limit: WholeLimit = 1000) -> None:
    """List the segments for flags and experiments."""


@experiments_router.post(
    SEGMENTS,
    access=Access(platform_admin=True, idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=audience_segments.create_segment,
)
async def create_audience_segment() -> None:
    """Create a segment from a rule over facts of a caller and workspace."""


@experiments_router.post(
    "/v1/experiments/assign",
    access=Access(idempotent=True),
    errors=[NotFoundError],
    calls=assignments.assign,
)
async def assign_experiments() -> None:
    """Assign variants to the caller.

    The same unit always gets the same variant. Nothing is counted: record an `exposure` when
    showing a variant. A completed experiment assigns its winner to its whole audience.
    """


@experiments_router.post(
    "/v1/experiments/events",
    access=Access(idempotent=True),
    errors=[NotFoundError],
    calls=assignments.record_events,
)
async def record_experiment_events() -> None:
    """Record events of the caller: exposures, conversions and errors.

    `results` says for each event whether it was counted, or why not.
    """
