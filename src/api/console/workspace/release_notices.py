"""Release notices, for administrators of the platform."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.routing import page_router
from api.console.workspace.settings import (
    SETTINGS,
    Notice,
    administers,
    led_to,
    settings_page,
    turning,
)
from api.kernel.routing import ApiRequest, Cursor
from models.core.pagination import DEFAULT_LIMIT
from models.people.release_notices import commands, queries
from models.people.release_notices.rules import ReleaseChannel
from models.people.release_notices.shapes import PublishRelease, Release
from runtime.errors import PlatformError

router = page_router()

NOTICES = f"{SETTINGS}/release-notices"


@router.get(NOTICES, access=administers())
async def get_release_notices(
    request: ApiRequest,
    cursor: Cursor = None,
    channel: ReleaseChannel | None = None,
    notice: Notice | None = None,
) -> Response:
    """Look through the release notices."""
    return await _shown(request, BLANK, channel, cursor, notice)


@router.post(NOTICES, access=administers(form=True))
async def publish_release_notice_by_form(request: ApiRequest, body: Fields) -> Response:
    """Publish a release notice for all users of a channel."""

    async def publish() -> Release:
        values = {"channel": "", "title": "", "body": "", **body.texts}
        release = read_as(PublishRelease, values)
        return await commands.publish_release(request.work, request.principal, release)

    outcome = await attempt(request, publish)
    if isinstance(outcome, PlatformError):
        return await _shown(request, Entered(body.texts, outcome))
    return led_to(request, "release-notices", notice=Notice.ADDED)


async def _shown(
    request: ApiRequest,
    entered: Entered,
    channel: ReleaseChannel | None = None,
    cursor: str | None = None,
    notice: Notice | None = None,
) -> Response:
    wanted = request.page("release-notices", DEFAULT_LIMIT, cursor, channel)
    listed = await queries.list_releases(request.work, channel, wanted)
    return await settings_page(
        request,
        "settings_release_notices.html",
        "release-notices",
        notice=notice,
        entered=entered,
        releases=listed.releases,
        channel=channel,
        channels=list(ReleaseChannel),
        turning=turning(request, cursor, listed.cursor, channel=channel),
    )
