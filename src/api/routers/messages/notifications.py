"""Notifications: the caller's own, the channels and the devices by which they come."""

from collections.abc import Sequence

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Flag, Limit, QueryId, Router
from models.core.access.rules import Scope
from models.core.base import Id
from models.core.pagination import PageRequest
from models.messages import notification_preferences, push_devices
from models.messages.notifications import commands, queries
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
) -> Data[queries.NotificationList]:
    """List the notifications of the caller in a workspace, newest first."""
    flags = {"unread_only": unread_only, "include_archived": include_archived}
    places = [request.actor.workspace_id]
    page = request.page("notifications", limit, cursor, *flags.values())
    return await _listed(request, places, page, **flags)


@router.post(f"{OWN}/read", access=Access(scopes=[Scope.WORKSPACE_READ], idempotent=True))
async def mark_notifications_read(
    request: ApiRequest, body: queries.MarkRead
) -> Data[queries.NotificationsRead]:
    """Mark notifications of a workspace as read: by id, or all of them.

    Returns the notifications marked as read. `all` includes the newest 10,000.
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
) -> Data[queries.NotificationList]:
    """List the notifications of the caller in all readable workspaces, newest first."""
    flags = {"unread_only": unread_only, "include_archived": include_archived}
    places = queries.readable_places(request.principal, request.roles, workspace_id)
    page = request.page("inbox", limit, cursor, workspace_id, *flags.values())
    return await _listed(request, places, page, **flags)


@router.post(f"{INBOX}/read", access=Access(idempotent=True), errors=[NotFoundError, DeniedError])
async def mark_inbox_read(
    request: ApiRequest, body: queries.MarkRead, workspace_id: QueryId | None = None
) -> Data[queries.NotificationsRead]:
    """Mark notifications as read, in all workspaces or one of them."""
    places = queries.readable_places(request.principal, request.roles, workspace_id)
    return Data(await commands.mark_read(request.work, request.principal, places, body))


@router.post(
    f"{INBOX}/archive", access=Access(idempotent=True), errors=[NotFoundError, DeniedError]
)
async def archive_notifications(
    request: ApiRequest, body: queries.ArchiveNotifications, workspace_id: QueryId | None = None
) -> Data[queries.NotificationsArchived]:
    """Archive read notifications, in all workspaces or one of them.

    Returns the archived notifications; unread ones are not archived. `allRead` includes the newest
    10,000.
    """
    places = queries.readable_places(request.principal, request.roles, workspace_id)
    return Data(await commands.archive(request.work, request.principal, places, body))


async def _listed(
    request: ApiRequest, places: Sequence[Id], page: PageRequest, **flags: bool
) -> Data[queries.NotificationList]:
    user_id, url = request.principal.user_id, request.services.settings.public_url
    return Data(
        await queries.list_notifications(
            request.work, user_id, places, page, **flags, public_url=url
        )
    )


PREFERENCES = "/v1/me/notification-preferences"


@router.get(PREFERENCES, access=Access(), calls=notification_preferences.get_preferences)
async def get_notification_preferences() -> None:
    """Get the notification channels of the caller by kind: in-app, push, email."""


@router.put(PREFERENCES, access=Access(), calls=notification_preferences.replace_preferences)
async def replace_notification_preferences() -> None:
    """Replace the notification channels of the caller, for all workspaces.

    By default, all kinds are sent in-app and by push, and mentions, assignments, approval requests
    and shares also by email.
    """


devices_router = Router(tags=["push devices"])

DEVICES = "/v1/me/push-devices"

SESSION = Access(credential="session")


@devices_router.get(DEVICES, access=Access(), calls=push_devices.list_push_devices)
async def list_push_devices() -> None:
    """List the active push devices of the caller, without tokens."""


@devices_router.get(f"{DEVICES}/web-push-key", access=Access())
async def get_web_push_key(request: ApiRequest) -> Data[push_devices.WebPushKey]:
    """Get the Web Push key for browsers, their `applicationServerKey`."""
    vapid = request.services.settings.vapid
    return Data(push_devices.WebPushKey(public_key=None if vapid is None else vapid.public))


@devices_router.post(DEVICES, access=SESSION)
async def register_push_device(
    request: ApiRequest, body: push_devices.RegisterPushDevice
) -> Data[push_devices.PushRegistration]:
    """Register an app or browser for push notifications.

    Other registrations of the same installation or token are revoked. Repeating the call changes
    nothing.
    """
    return Data(
        await push_devices.register_push_device(
            request.work, request.principal, request.services.keys, body
        )
    )


@devices_router.post(f"{DEVICES}/register", access=SESSION)
async def register_a_push_device(
    request: ApiRequest, body: push_devices.RegisterPushDevice
) -> Data[push_devices.PushRegistration]:
    """Register an app or browser for push notifications; an alias."""
    return await register_push_device(request, body)


@devices_router.post(f"{DEVICES}/revoke", access=SESSION, calls=push_devices.revoke_push_device)
async def revoke_push_device() -> None:
    """Revoke the registration of an installation; `revoked` is false if there was none."""
