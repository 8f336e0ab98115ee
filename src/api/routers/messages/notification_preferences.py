"""By which channels the caller is told of what."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.messages.notification_preferences import commands, queries
from models.messages.notification_preferences.shapes import Preferences, ReplacePreferences

router = Router(tags=["notifications"])

PREFERENCES = "/v1/me/notification-preferences"


@router.get(PREFERENCES, access=Access())
async def get_notification_preferences(request: ApiRequest) -> Data[Preferences]:
    """Get by which channels the caller is told of each kind: in the app, by push, by mail."""
    return Data(await queries.get_preferences(request.work, request.principal))


@router.put(PREFERENCES, access=Access())
async def replace_notification_preferences(
    request: ApiRequest, body: ReplacePreferences
) -> Data[Preferences]:
    """Replace by which channels the caller is told, in all workspaces.

    By default everything is told in the app and by push, and mentions, assignments, requests for
    approval and shares by mail.
    """
    return Data(await commands.replace_preferences(request.work, request.principal, body))
