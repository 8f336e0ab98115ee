"""Providers and connections: sign in, browse and read their resources, limit the calls of them.

Calls that leave the machine are made by a worker; the answer of the request waits for it.
"""

from dataclasses import replace

from starlette.responses import Response

from api.kernel import routing
from api.kernel.awaited_work import Then
from api.pages.assets import shell
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.references.rules import SubjectKind
from models.sources import provider_calls
from models.sources.authorizations import store as authorization_commands
from models.sources.authorizations.rules import CALLBACK
from models.sources.connections import providers, store
from models.sources.outbound_limits import commands as limit_commands
from models.sources.outbound_limits import queries as limit_queries
from runtime import errors
from runtime.database import UnitOfWork

router = routing.Router(tags=["integrations"])

INTEGRATIONS = "/v1/workspaces/{workspaceId}/integrations"
CONNECTIONS = f"{INTEGRATIONS}/connections"
CONNECTION = f"{CONNECTIONS}/{{connectionId}}"

READ = routing.Access(scopes=[Scope.INTEGRATIONS_READ])
WRITE = routing.Access(scopes=[Scope.INTEGRATIONS_WRITE], idempotent=True)


@router.get(f"{INTEGRATIONS}/providers", access=READ)
async def list_providers(
    request: routing.ApiRequest, limit: routing.WholeLimit = 1000, cursor: routing.Cursor = None
) -> routing.Data[providers.ProviderList]:
    """List the providers that a workspace can connect to, and whether each is switched on."""
    listed = await store.list_providers(request.work, request.actor)
    page = request.page("providers", limit, cursor).among(listed)
    return routing.Data(providers.ProviderList.of(page))


@router.put(
    f"{INTEGRATIONS}/providers/{{provider}}",
    access=routing.Access(
        scopes=[Scope.INTEGRATIONS_WRITE, Scope.WORKSPACE_UPDATE], idempotent=True
    ),
)
async def switch_provider(
    request: routing.ApiRequest, body: providers.SwitchProvider
) -> routing.Data[providers.ProviderDetail]:
    """Enable or disable a provider for the workspace.

    While it is disabled, its connections are kept but not used.
    """
    name = request.path_params["provider"]
    return routing.Data(await store.switch_provider(request.work, request.actor, name, body))


@router.post(
    CONNECTIONS,
    access=WRITE,
    status_code=201,
    errors=[errors.ConflictError],
    calls=store.create_connection,
)
async def create_connection() -> None:
    """Create a connection. Its credentials are encrypted and never returned."""


@router.get(CONNECTIONS, access=replace(READ, cookie=True), calls=store.list_connections)
async def list_connections() -> None:
    """List connections, newest first: one's own, and the shared ones."""


@router.get(CONNECTION, access=READ, calls=store.get_connection)
async def get_connection() -> None:
    """Get a connection."""


@router.patch(CONNECTION, access=WRITE, calls=store.update_connection)
async def update_connection() -> None:
    """Update a connection; a new `config` needs its credentials again."""


@router.delete(
    CONNECTION,
    access=WRITE,
    calls=authorization_commands.disconnect,
    deletes=routing.Deletes(SubjectKind.CONNECTION),
)
async def delete_connection() -> None:
    """Delete a connection with its credentials; what uses it will fail.

    Tokens that a provider gave to a user who signed in there are ended there too.
    """


RESOURCES = f"{INTEGRATIONS}/resources"
CALL_SECONDS = 55
PROVIDER_ERRORS = (
    errors.InProgressError,
    errors.InvalidError,
    errors.UnsupportedError,
    errors.UpstreamError,
)


def _forgetting(actor: Actor, call_id: Id) -> Then:
    """The removal of what a call found, once it is answered."""

    async def forget(work: UnitOfWork) -> None:
        await provider_calls.forget_call(work, actor, call_id)

    return forget


@router.post(
    f"{RESOURCES}/browse",
    access=routing.Access(scopes=[Scope.INTEGRATIONS_READ], safe=True),
    errors=PROVIDER_ERRORS,
)
async def browse_connection(
    request: routing.ApiRequest, body: provider_calls.BrowseConnection
) -> routing.Data[provider_calls.BrowsedResources]:
    """Browse a connection: the resources below one, or at the top; `limit` is at most 100.

    The listing may be two minutes old. A `null` cursor is returned when nothing follows.
    """
    actor, keys, call_id = request.actor, request.services.keys, request.new_id
    known = await provider_calls.accept_browse(request.work, actor, keys, call_id, body)
    if known is not None:
        return routing.Data(known)

    async def poll(work: UnitOfWork, last: bool) -> provider_calls.BrowsedResources | None:
        return await provider_calls.browse_outcome(work, actor, keys, call_id, body, last=last)

    return request.deferred(poll, within=CALL_SECONDS, then=_forgetting(actor, call_id))


@router.post(
    f"{RESOURCES}/read",
    access=routing.Access(scopes=[Scope.RESOURCES_READ, Scope.INTEGRATIONS_READ], safe=True),
    errors=PROVIDER_ERRORS,
)
async def read_resource(
    request: routing.ApiRequest, body: provider_calls.NamedResource
) -> routing.Data[provider_calls.ResourceContent]:
    """Read a resource by reference.

    The provider is asked each time whether it still shows the resource. Content that has no format
    here, or is larger than 1 MiB, is a `link` with its `fallbackUrl`.
    """
    actor, call_id = request.actor, request.new_id
    await provider_calls.accept_read(request.work, actor, call_id, body)

    async def poll(work: UnitOfWork, last: bool) -> provider_calls.ResourceContent | None:
        return await provider_calls.read_outcome(work, actor, call_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS, then=_forgetting(actor, call_id))


@router.post(
    f"{CONNECTION}/test",
    access=routing.Access(scopes=[Scope.INTEGRATIONS_WRITE]),
    errors=PROVIDER_ERRORS,
)
async def test_connection(
    request: routing.ApiRequest,
) -> routing.Data[provider_calls.ConnectionTest]:
    """Test a connection: one small question that needs its credentials.

    A connection that does not work is an answer, too: `ok` is false, and `message` says why.
    """
    actor, call_id = request.actor, request.new_id
    await provider_calls.accept_test(request.work, actor, call_id, request.ids["connectionId"])

    async def poll(work: UnitOfWork, last: bool) -> provider_calls.ConnectionTest | None:
        return await provider_calls.test_outcome(work, actor, call_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS, then=_forgetting(actor, call_id))


LIMITS = "/v1/workspaces/{workspaceId}/integrations/outbound-limits"
LIMIT = f"{LIMITS}/{{limitId}}"

WRITE_LIMITS = routing.Access(
    scopes=[Scope.INTEGRATIONS_WRITE, Scope.WORKSPACE_UPDATE], idempotent=True
)


@router.get(LIMITS, access=READ, calls=limit_queries.list_limits)
async def list_outbound_limits() -> None:
    """List the limits of outbound calls, and how their places are called now.

    Limits of connections that the caller does not see are left out.
    """


@router.post(
    LIMITS,
    access=WRITE_LIMITS,
    status_code=201,
    errors=[errors.ConflictError],
    calls=limit_commands.create_limit,
)
async def create_outbound_limit() -> None:
    """Limit the calls of a host or of a connection, per second and concurrently.

    The limit is shared by all runs, refreshes and jobs of the workspace. Calls over the limit are
    queued, lose no attempt, and are made in their turn.
    """


@router.get(LIMIT, access=READ, calls=limit_queries.get_limit)
async def get_outbound_limit() -> None:
    """Get a limit, with its waiting calls and the time of the next one."""


@router.patch(
    LIMIT, access=WRITE_LIMITS, errors=[errors.ConflictError], calls=limit_commands.update_limit
)
async def update_outbound_limit() -> None:
    """Change a limit; waiting calls are rescheduled.

    With the header `If-Match: <updatedAt>` a limit that was changed since is left as it is.
    """


@router.delete(LIMIT, access=WRITE_LIMITS, calls=limit_commands.delete_limit)
async def delete_outbound_limit() -> None:
    """Remove a limit; waiting calls start, unless the host asked to wait."""


authorizations_router = routing.Router(tags=["integrations"])

OAUTH = "/v1/workspaces/{workspaceId}/integrations/oauth"

EXCHANGE_SECONDS = 30


@authorizations_router.post(f"{OAUTH}/start", access=WRITE, errors=[errors.UnsupportedError])
async def start_authorization(
    request: routing.ApiRequest, body: authorization_commands.StartAuthorization
) -> routing.Data[authorization_commands.StartedAuthorization]:
    """Start authorization: where a user signs in at a provider, and comes back from within ten
    minutes.

    The provider sends them to a page of this API, which shows the body of finish authorization.
    """
    services = request.services
    platform = authorization_commands.Registered(
        services.settings.providers, services.settings.public_url
    )
    return routing.Data(
        await authorization_commands.start_authorization(
            request.work, request.actor, services.keys, platform, body
        )
    )


@authorizations_router.post(
    f"{OAUTH}/callback",
    access=WRITE,
    errors=[errors.ConflictError, errors.InProgressError, errors.UpstreamError],
)
async def finish_authorization(
    request: routing.ApiRequest, body: authorization_commands.FinishAuthorization
) -> routing.Data[providers.ConnectionDetail]:
    """Finish authorization: exchange the code for tokens, and make the connection they belong to.

    Only who started it finishes it, once. The tokens are encrypted and never returned.
    """
    actor, job_id = request.actor, request.new_id
    await authorization_commands.accept_return(
        request.work, actor, request.services.keys, job_id, body
    )

    async def poll(work: UnitOfWork, last: bool) -> providers.ConnectionDetail | None:
        return await authorization_commands.exchange_outcome(work, actor, job_id, last=last)

    return request.deferred(poll, within=EXCHANGE_SECONDS)


# Providers add parameters of their own.
@authorizations_router.get(
    CALLBACK,
    access=routing.Access(credential="none", transaction=False, raw=True),
    documented=False,
)
async def get_authorization_page(request: routing.ApiRequest) -> Response:  # noqa: ARG001  # as all
    """Show the page a provider sends a user to; it finishes the authorization in their name."""
    return shell("authorized")
