"""Providers and connections: create, list, read, change, delete."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WholeLimit
from models.core.access.rules import Scope
from models.sources.authorizations.revocation import disconnect
from models.sources.connections import commands, features, queries
from models.sources.connections.shapes import (
    ConnectionDetail,
    ConnectionList,
    CreateConnection,
    DeletedConnection,
    ProviderDetail,
    ProviderList,
    SwitchProvider,
    UpdateConnection,
)
from runtime.errors import ConflictError

router = Router(tags=["integrations"])

INTEGRATIONS = "/v1/workspaces/{workspaceId}/integrations"
CONNECTIONS = f"{INTEGRATIONS}/connections"
CONNECTION = f"{CONNECTIONS}/{{connectionId}}"

READ = Access(scopes=[Scope.INTEGRATIONS_READ])
WRITE = Access(scopes=[Scope.INTEGRATIONS_WRITE], idempotent=True)


@router.get(f"{INTEGRATIONS}/providers", access=READ)
async def list_providers(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[ProviderList]:
    """List the providers that a workspace can connect to, and whether each is switched on."""
    listed = await features.list_providers(request.work, request.actor)
    page = request.page("providers", limit, cursor).among(listed)
    return Data(ProviderList(providers=page.items, cursor=page.cursor))


@router.put(
    f"{INTEGRATIONS}/providers/{{provider}}",
    access=Access(scopes=[Scope.INTEGRATIONS_WRITE, Scope.WORKSPACE_UPDATE], idempotent=True),
)
async def switch_provider(request: ApiRequest, body: SwitchProvider) -> Data[ProviderDetail]:
    """Switch a provider on or off for the workspace.

    While it is off its connections stay, and nothing is asked of the provider.
    """
    name = request.path_params["provider"]
    return Data(await features.switch_provider(request.work, request.actor, name, body))


@router.post(CONNECTIONS, access=WRITE, status_code=201, errors=[ConflictError])
async def create_connection(request: ApiRequest, body: CreateConnection) -> Data[ConnectionDetail]:
    """Create a connection. Its credentials are encrypted and never returned."""
    keys = request.services.keys
    return Data(await commands.create_connection(request.work, request.actor, keys, body))


@router.get(CONNECTIONS, access=READ)
async def list_connections(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[ConnectionList]:
    """List connections, newest first: one's own, and the shared ones."""
    page = request.page("connections", limit, cursor)
    return Data(await queries.list_connections(request.work, request.actor, page))


@router.get(CONNECTION, access=READ)
async def get_connection(request: ApiRequest) -> Data[ConnectionDetail]:
    """Get a connection."""
    connection_id = request.ids["connectionId"]
    return Data(await queries.get_connection(request.work, request.actor, connection_id))


@router.patch(CONNECTION, access=WRITE)
async def update_connection(request: ApiRequest, body: UpdateConnection) -> Data[ConnectionDetail]:
    """Update a connection; a new `config` needs its credentials again."""
    return Data(
        await commands.update_connection(
            request.work,
            request.actor,
            request.services.keys,
            request.ids["connectionId"],
            body,
        )
    )


@router.delete(CONNECTION, access=WRITE)
async def delete_connection(request: ApiRequest) -> Data[DeletedConnection]:
    """Delete a connection with its credentials; what names it fails from now on.

    Tokens that a provider gave to a user who signed in there are ended there too.
    """
    keys, connection_id = request.services.keys, request.ids["connectionId"]
    return Data(await disconnect(request.work, request.actor, keys, connection_id))
