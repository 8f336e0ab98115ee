"""By which channels the caller is told of what."""

from starlette.responses import Response

from api.console.entered import Fields, read_as
from api.console.routing import page_router
from api.console.workspace.settings import (
    SETTINGS,
    Notice,
    changes,
    led_to,
    reads,
    settings_page,
)
from api.kernel.routing import ApiRequest
from models.core.access.rules import Scope
from models.messages.notification_preferences import commands, queries
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notification_preferences.rules import NoticeChannel
from models.messages.notification_preferences.shapes import ReplacePreferences

router = page_router()

PREFERENCES = f"{SETTINGS}/notifications"


@router.get(PREFERENCES, access=reads(Scope.WORKSPACE_READ))
async def get_preferences_form(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the channels of each kind of notification."""
    chosen_channels = await queries.get_preferences(request.work, request.principal)
    return await settings_page(
        request,
        "settings_preferences.html",
        "notifications",
        notice=notice,
        kinds=[(kind, chosen_channels.preferences[kind]) for kind in NotificationKind],
    )


@router.post(PREFERENCES, access=changes(Scope.WORKSPACE_READ))
async def replace_preferences_by_form(request: ApiRequest, body: Fields) -> Response:
    """Replace the channels of every kind: a box that is not ticked is a channel that is off."""
    choices = {
        kind.value: {channel.value: f"{kind}.{channel}" in body.texts for channel in NoticeChannel}
        for kind in NotificationKind
    }
    wanted = read_as(ReplacePreferences, {"preferences": choices})
    await commands.replace_preferences(request.work, request.principal, wanted)
    return led_to(request, "notifications", notice=Notice.SAVED)
