"""Notifications of the caller: the inbox, and the channels that they come by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from starlette.responses import Response

from api.console.entered import Fields, read_as
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import home_of, shell_of
from api.console.words import curl, queried
from api.console.workspace.settings import (
    SETTINGS,
    Notice,
    changes,
    led_to,
    reads,
    settings_page,
    turning,
)
from api.kernel.routing import ApiRequest, Cursor
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.messages import notification_preferences
from models.messages.notification_preferences import (
    NoticeChannel,
    NotificationKind,
    ReplacePreferences,
)
from models.messages.notifications import commands, queries
from models.messages.notifications.queries import (
    ArchiveNotifications,
    MarkRead,
    NotificationBody,
)
from runtime.errors import ValidationError

router = page_router()

INBOX = "/workspaces/{workspaceId}/notifications"


class Shown(StrEnum):
    """The notifications that the page shows."""

    UNREAD = "unread"
    INBOX = "inbox"
    ALL = "all"


@router.get(INBOX, access=reads(Scope.WORKSPACE_READ))
async def get_notifications(
    request: ApiRequest, show: Shown = Shown.UNREAD, cursor: Cursor = None
) -> Response:
    """Look through what the caller is told in a workspace."""
    flags = show is Shown.UNREAD, show is Shown.ALL
    part = request.page("notifications", DEFAULT_LIMIT, cursor, *flags)
    actor = request.actor
    listed = await queries.list_notifications(
        request.work,
        actor.user_id,
        [actor.workspace_id],
        part,
        unread_only=show is Shown.UNREAD,
        include_archived=show is Shown.ALL,
    )
    shell = await shell_of(request)
    api = f"/v1{home_of(actor.workspace_id)}/notifications"
    query = {
        "unreadOnly": "true" if show is Shown.UNREAD else None,
        "includeArchived": "true" if show is Shown.ALL else None,
    }
    return page(
        request,
        "notifications.html",
        shell,
        groups=grouped(listed.notifications),
        show=show,
        turning=turning(request, cursor, listed.cursor, show=show),
        listing=curl(shell.base, "GET", queried(api, **query)),
        reading=curl(shell.base, "POST", f"{api}/read", '{"all": true}'),
        archiving=curl(
            shell.base,
            "POST",
            queried("/v1/notifications/archive", workspaceId=actor.workspace_id),
            '{"allRead": true}',
        ),
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Notifications of one subject, the newest first."""

    members: list[NotificationBody]

    @property
    def newest(self) -> NotificationBody:
        return self.members[0]

    @property
    def unread(self) -> str:
        """The ids of its unread notifications, as a form sends them."""
        return ",".join(str(one.id) for one in self.members if one.read_at is None)

    @property
    def read(self) -> str:
        """The ids of its notifications that can be archived."""
        waiting = (one for one in self.members if one.read_at and not one.archived_at)
        return ",".join(str(one.id) for one in waiting)


def grouped(notifications: Iterable[NotificationBody]) -> Sequence[Group]:
    """The notifications of a page by what they are about, in the order of the newest of each."""
    groups: dict[tuple[object, ...], Group] = {}
    for one in notifications:
        groups.setdefault(queries.subject_of(one), Group([])).members.append(one)
    return list(groups.values())


def _ids(body: Fields) -> list[str] | None:
    """The notifications that a form names; None for all."""
    text = body.texts.get("notificationIds")
    return None if text is None else text.split(",")


@router.post(f"{INBOX}/read", access=changes(Scope.WORKSPACE_READ))
async def mark_read_by_form(request: ApiRequest, body: Fields) -> Response:
    """Mark notifications of one subject read, or all of them."""
    ids = _ids(body)
    named = read_as(MarkRead, {"all": True} if ids is None else {"notificationIds": ids})
    places = [request.actor.workspace_id]
    await commands.mark_read(request.work, request.principal, places, named)
    return _back(request, body)


@router.post(f"{INBOX}/archive", access=changes(Scope.WORKSPACE_READ))
async def archive_by_form(request: ApiRequest, body: Fields) -> Response:
    """Archive the read notifications of one subject, or all of these."""
    ids = _ids(body)
    named = read_as(
        ArchiveNotifications, {"allRead": True} if ids is None else {"notificationIds": ids}
    )
    places = [request.actor.workspace_id]
    await commands.archive(request.work, request.principal, places, named)
    return _back(request, body)


def _back(request: ApiRequest, body: Fields) -> Response:
    """Lead back to the list that the form was on. Raises ValidationError for one there is not."""
    show = body.texts.get("show", Shown.UNREAD)
    if show not in list(Shown):
        raise ValidationError.at("show", "Unknown list.")
    return see_other(queried(f"{home_of(request.actor.workspace_id)}/notifications", show=show))


PREFERENCES = f"{SETTINGS}/notifications"


@router.get(PREFERENCES, access=reads(Scope.WORKSPACE_READ))
async def get_preferences_form(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the channels of each kind of notification."""
    chosen_channels = await notification_preferences.get_preferences(
        request.work, request.principal
    )
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
    await notification_preferences.replace_preferences(request.work, request.principal, wanted)
    return led_to(request, "notifications", notice=Notice.SAVED)
