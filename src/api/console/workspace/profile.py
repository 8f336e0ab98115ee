"""Pages of the person: profile, sessions, and notifications with their channels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, urlencode
from zoneinfo import available_timezones

from starlette.responses import Response

from api.console import rendering
from api.console.controls import Offers, Words, laid_out, texts_of, values_of
from api.console.entered import Entered, Fields, read_as, redisplays
from api.console.resource_pages import Column, Resource, Stored
from api.console.routing import page_router
from api.console.words import queried
from api.console.workspace import settings
from api.kernel.browsers import is_secure
from api.kernel.routing import ApiRequest, Cursor
from api.routers.messages import notifications
from api.routers.people import workspaces
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.core.values import is_timezone
from models.messages import notification_preferences
from models.messages.notifications import commands, queries
from models.people.users import get_me
from runtime.errors import ValidationError

router = page_router()

_PROFILE = f"{settings.SETTINGS}/profile"
_YEAR = 365 * 24 * 3600
_LANGUAGES = (
    ("en-GB", "English (UK)"),
    ("en-US", "English (US)"),
    ("de", "Deutsch"),
    ("es", "Español"),
    ("fr", "Français"),
    ("it", "Italiano"),
    ("ja", "日本語"),
    ("nl", "Nederlands"),
    ("pl", "Polski"),
    ("pt", "Português"),
    ("sv", "Svenska"),
    ("zh", "中文"),
)
_OFFERS: Offers = {
    "timeZone": [(zone, zone) for zone in sorted(filter(is_timezone, available_timezones()))],
    "language": _LANGUAGES,
}
_WORDS: Words = {
    "theme": ("Theme", "System follows the setting of your device."),
    "timeZone": ("Time zone", "Default: the time zone of this device."),
    "language": ("Language of dates", "Default: the language of your browser."),
}
_CONTROLS = laid_out(rendering.Appearance, "", words=_WORDS, offers=_OFFERS)


async def _profile(
    request: ApiRequest, entered: Entered, notice: settings.Notice | None = None
) -> Response:
    return await settings.settings_page(
        request,
        "settings_profile.html",
        "profile",
        workspaces.get_me,
        entered=entered,
        user=(await get_me(request.work, request.principal)).user,
        controls=_CONTROLS,
        notice=notice,
    )


@router.get(_PROFILE, access=settings.reads(Scope.WORKSPACE_READ))
async def get_profile(request: ApiRequest, notice: settings.Notice | None = None) -> Response:
    """Look at who is signed in, and at how pages look in this browser."""
    chosen = rendering.appearance_of(request).model_dump(mode="json", by_alias=True)
    return await _profile(request, Entered(texts_of(_CONTROLS, chosen)), notice)


@router.post(_PROFILE, access=settings.changes(Scope.WORKSPACE_READ))
@redisplays(_profile)
async def change_profile(request: ApiRequest, body: Fields) -> Response:
    """Choose the look of pages, which a cookie of this browser holds."""
    chosen = read_as(rendering.Appearance, values_of(_CONTROLS, body.texts, {}))
    texts = texts_of(_CONTROLS, chosen.model_dump(mode="json", by_alias=True))
    answer = settings.led_to(request, "profile", notice=settings.Notice.SAVED)
    answer.set_cookie(
        rendering.APPEARANCE,
        quote(urlencode(texts)),
        max_age=_YEAR,
        secure=is_secure(request.services.settings),
        httponly=True,
        samesite="lax",
    )
    return answer


def _home(_: rendering.Shell, made: Stored) -> str:
    return rendering.home_of(made.workspace.id)


Resource(
    noun="workspace",
    at="/workspaces",
    parameter="workspaceId",
    key="workspace.id",
    label="workspace.name",
    columns=[
        Column(name="workspace.slug", label="Slug"),
        Column(name="role", label="Your role"),
        Column(name="workspace.created_at", label="Created"),
    ],
    sentence="The workspaces that you are a member of.",
    empty="Create a workspace, or ask someone to invite you to theirs.",
    listing=workspaces.list_workspaces,
    creating=workspaces.create_workspace,
    words={
        "slug": ("Slug", "Lower-case letters, digits and hyphens. Default: made from the name."),
        "icon": ("Icon", "An emoji (optional)."),
    },
    leads=True,
    page_of=_home,
).declare(router)


INBOX = "/workspaces/{workspaceId}/notifications"


class Shown(StrEnum):
    """The notifications that the page shows."""

    UNREAD = "unread"
    INBOX = "inbox"
    ALL = "all"


@router.get(INBOX, access=settings.reads(Scope.WORKSPACE_READ))
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
    query = {
        "unreadOnly": "true" if show is Shown.UNREAD else None,
        "includeArchived": "true" if show is Shown.ALL else None,
    }
    return await rendering.console_page(
        request,
        "notifications.html",
        (notifications.list_notifications, query),
        (notifications.mark_notifications_read, {"all": True}),
        (notifications.archive_notifications, {"allRead": True}),
        groups=grouped(listed.notifications),
        show=show,
        cursor=cursor,
        next=listed.cursor,
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Notifications of one subject, the newest first."""

    members: list[queries.NotificationBody]

    @property
    def newest(self) -> queries.NotificationBody:
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


def grouped(notifications: Iterable[queries.NotificationBody]) -> Sequence[Group]:
    """The notifications of a page by what they are about, in the order of the newest of each."""
    groups: dict[tuple[object, ...], Group] = {}
    for one in notifications:
        groups.setdefault(queries.subject_of(one), Group([])).members.append(one)
    return list(groups.values())


def _ids(body: Fields) -> list[str] | None:
    """The notifications that a form names; None for all."""
    text = body.texts.get("notificationIds")
    return None if text is None else text.split(",")


@router.post(f"{INBOX}/read", access=settings.changes(Scope.WORKSPACE_READ))
async def mark_read_by_form(request: ApiRequest, body: Fields) -> Response:
    """Mark notifications of one subject read, or all of them."""
    ids = _ids(body)
    named = read_as(queries.MarkRead, {"all": True} if ids is None else {"notificationIds": ids})
    places = [request.actor.workspace_id]
    await commands.mark_read(request.work, request.principal, places, named)
    return _back(request, body)


@router.post(f"{INBOX}/archive", access=settings.changes(Scope.WORKSPACE_READ))
async def archive_by_form(request: ApiRequest, body: Fields) -> Response:
    """Archive the read notifications of one subject, or all of these."""
    ids = _ids(body)
    named = read_as(
        queries.ArchiveNotifications, {"allRead": True} if ids is None else {"notificationIds": ids}
    )
    places = [request.actor.workspace_id]
    await commands.archive(request.work, request.principal, places, named)
    return _back(request, body)


def _back(request: ApiRequest, body: Fields) -> Response:
    """Lead back to the list that the form was on. Raises ValidationError for one there is not."""
    show = body.texts.get("show", Shown.UNREAD)
    if show not in list(Shown):
        raise ValidationError.at("show", "Unknown list.")
    return rendering.see_other(
        queried(f"{rendering.home_of(request.actor.workspace_id)}/notifications", show=show)
    )


PREFERENCES = f"{settings.SETTINGS}/notifications"


@router.get(PREFERENCES, access=settings.reads(Scope.WORKSPACE_READ))
async def get_preferences_form(
    request: ApiRequest, notice: settings.Notice | None = None
) -> Response:
    """Look at the channels of each kind of notification."""
    chosen_channels = await notification_preferences.get_preferences(
        request.work, request.principal
    )
    return await settings.settings_page(
        request,
        "settings_preferences.html",
        "notifications",
        notifications.get_notification_preferences,
        notifications.replace_notification_preferences,
        notice=notice,
        kinds=[
            (kind, chosen_channels.preferences[kind])
            for kind in notification_preferences.NotificationKind
        ],
    )


@router.post(PREFERENCES, access=settings.changes(Scope.WORKSPACE_READ))
async def replace_preferences_by_form(request: ApiRequest, body: Fields) -> Response:
    """Replace the channels of every kind: a box that is not ticked is a channel that is off."""
    choices = {
        kind.value: {
            channel.value: f"{kind}.{channel}" in body.texts
            for channel in notification_preferences.NoticeChannel
        }
        for kind in notification_preferences.NotificationKind
    }
    wanted = read_as(notification_preferences.ReplacePreferences, {"preferences": choices})
    await notification_preferences.replace_preferences(request.work, request.principal, wanted)
    return settings.led_to(request, "notifications", notice=settings.Notice.SAVED)
