"""The log of a workspace."""

from typing import Annotated

from pydantic import Field

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Scope
from models.messages.workspace_events.shapes import WorkspaceEventList
from models.workspace.feeds.queries import list_events

router = Router(tags=["workspaces"])

Sequence = Annotated[int, Field(ge=0, le=2**63 - 1)]


@router.get("/v1/workspaces/{workspaceId}/events", access=Access(scopes=[Scope.WORKSPACE_READ]))
async def list_workspace_events(
    request: ApiRequest, since: Sequence = 0, limit: Limit = 30, cursor: Cursor = None
) -> Data[WorkspaceEventList]:
    """List what happened in a workspace behind the event `since`, oldest first.

    Who remembers the last `seq` they saw misses nothing. An event of an item is shown to who sees
    the item and holds the scope that reads its kind; what concerns one user alone, such as their
    notifications, to that user. Events are kept for 30 days. Go on while there is a
    cursor: a page may show few events, or none, of a part of the log in which a reader sees few.
    """
    page = request.page("events", limit, cursor, since)
    return Data(await list_events(request.work, request.actor, since, page))
