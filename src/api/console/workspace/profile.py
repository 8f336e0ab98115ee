"""The reader's own pages: their profile, the look of pages in their browser, their workspaces."""

from urllib.parse import quote, urlencode
from zoneinfo import available_timezones

from starlette.responses import Response

from api.console.controls import Offers, Words, laid_out, texts_of, values_of
from api.console.entered import Entered, Fields, read_as, redisplays
from api.console.resource_pages import Column, Resource, Stored
from api.console.routing import page_router
from api.console.shell import APPEARANCE, Appearance, Shell, appearance_of, home_of
from api.console.workspace.settings import SETTINGS, Notice, changes, led_to, reads, settings_page
from api.kernel.browsers import is_secure
from api.kernel.routing import ApiRequest
from api.routers.people import me, workspaces
from models.core.access.rules import Scope
from models.core.values import is_timezone
from models.people.users import get_me

router = page_router()

_PROFILE = f"{SETTINGS}/profile"
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
_CONTROLS = laid_out(Appearance, "", words=_WORDS, offers=_OFFERS)


async def _profile(request: ApiRequest, entered: Entered, notice: Notice | None = None) -> Response:
    return await settings_page(
        request,
        "settings_profile.html",
        "profile",
        me.get_me,
        entered=entered,
        user=(await get_me(request.work, request.principal)).user,
        controls=_CONTROLS,
        notice=notice,
    )


@router.get(_PROFILE, access=reads(Scope.WORKSPACE_READ))
async def get_profile(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at who is signed in, and at how pages look in this browser."""
    chosen = appearance_of(request).model_dump(mode="json", by_alias=True)
    return await _profile(request, Entered(texts_of(_CONTROLS, chosen)), notice)


@router.post(_PROFILE, access=changes(Scope.WORKSPACE_READ))
@redisplays(_profile)
async def change_profile(request: ApiRequest, body: Fields) -> Response:
    """Choose the look of pages, which a cookie of this browser holds."""
    chosen = read_as(Appearance, values_of(_CONTROLS, body.texts, {}))
    texts = texts_of(_CONTROLS, chosen.model_dump(mode="json", by_alias=True))
    answer = led_to(request, "profile", notice=Notice.SAVED)
    answer.set_cookie(
        APPEARANCE,
        quote(urlencode(texts)),
        max_age=_YEAR,
        secure=is_secure(request.services.settings),
        httponly=True,
        samesite="lax",
    )
    return answer


def _home(_: Shell, made: Stored) -> str:
    return home_of(made.workspace.id)


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
