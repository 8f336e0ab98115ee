"""Notifications: the caller's own, in one workspace or in all of them."""

from collections.abc import Sequence

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Flag, Limit, QueryId, Router
from models.core.access.rules import Scope
from models.core.base import Id
from models.core.pagination import PageRequest
from models.messages.notifications import commands, queries
from models.messages.notifications.shapes import (
    ArchiveNotifications,
    MarkRead,
    NotificationList,
    NotificationsArchived,
    NotificationsRead,
)
from runtime.errors import DeniedError, NotFoundError

router = Router(tags=["notifications"])

OWN = "/v1/workspaces/{workspaceId}/notifications"
INBOX = "/v1/notifications"

READ = Access(scopes=[Scope.WORKSPACE_READ])


@router.get(OWN, access=READ)
async def list_notifications(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    unread_only: Flag = False,
    include_archived: Flag = False,
) -> Data[NotificationList]:
    """List what the caller is told in a workspace, newest first."""
    flags = {"unread_only": unread_only, "include_archived": include_archived}
    places = [request.actor.workspace_id]
    page = request.page("notifications", limit, cursor, *flags.values())
    return await _listed(request, places, page, **flags)


@router.post(f"{OWN}/read", access=Access(scopes=[Scope.WORKSPACE_READ], idempotent=True))
async def mark_notifications_read(request: ApiRequest, body: MarkRead) -> Data[NotificationsRead]:
    """Mark notifications of a workspace read: by their ids, or all of them.

    The answer names the notifications that are read now. `all` reaches the newest 10,000.
    """
    places = [request.actor.workspace_id]
    return Data(await commands.mark_read(request.work, request.principal, places, body))


@router.get(INBOX, access=Access(), errors=[NotFoundError, DeniedError])
async def list_inbox(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    unread_only: Flag = False,
    include_archived: Flag = False,
    workspace_id: QueryId | None = None,
) -> Data[NotificationList]:
    """List what the caller is told in every workspace they may read, newest first."""
    flags = {"unread_only": unread_only, "include_archived": include_archived}
    places = queries.readable_places(request.principal, request.roles, workspace_id)
    page = request.page("inbox", limit, cursor, workspace_id, *flags.values())
    return await _listed(request, places, page, **flags)


@router.post(f"{INBOX}/read", access=Access(idempotent=True), errors=[NotFoundError, DeniedError])
async def mark_inbox_read(
    request: ApiRequest, body: MarkRead, workspace_id: QueryId | None = None
) -> Data[NotificationsRead]:
    """Mark notifications read, in every workspace or in the one that is named."""
    places = queries.readable_places(request.principal, request.roles, workspace_id)
    return Data(await commands.mark_read(request.work, request.principal, places, body))


@router.post(
    f"{INBOX}/archive", access=Access(idempotent=True), errors=[NotFoundError, DeniedError]
)
async def archive_notifications(
    request: ApiRequest, body: ArchiveNotifications, workspace_id: QueryId | None = None
) -> Data[NotificationsArchived]:
    """Archive notifications that are read, in every workspace or in the one that is named.

    The answer names the notifications that are archived now; unread ones stay. `allRead` reaches
    the newest 10,000.
    """
    places = queries.readable_places(request.principal, request.roles, workspace_id)
    return Data(await commands.archive(request.work, request.principal, places, body))


async def _listed(
    request: ApiRequest, places: Sequence[Id], page: PageRequest, **flags: bool
) -> Data[NotificationList]:
    user_id, url = request.principal.user_id, request.services.settings.public_url
    return Data(
        await queries.list_notifications(
            request.work, user_id, places, page, **flags, public_url=url
        )
    )
