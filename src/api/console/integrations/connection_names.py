"""The names of connections, for forms in which one is chosen and lists that name some."""

from collections.abc import Collection

from api.kernel.request import ApiRequest
from models.core.base import Id
from models.sources.connections.queries import get_connection, list_connections

_MOST = 100


async def connection_names(
    request: ApiRequest, connection_ids: Collection[Id] = ()
) -> dict[str, str]:
    """The names of the newest connections, and of some others that the person sees, by their ids.

    Raises NotFoundError for one of these that they do not see.
    """
    turn = request.page("console connections", _MOST, None)
    listed = await list_connections(request.work, request.actor, turn)
    names = {str(one.id): one.label for one in listed.connections}
    for connection_id in connection_ids:
        if str(connection_id) not in names:
            one = await get_connection(request.work, request.actor, connection_id)
            names[str(connection_id)] = one.label
    return names
