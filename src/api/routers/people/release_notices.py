"""Release notices: what is new, and how far the caller has read."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.people.release_notices import commands, queries
from models.people.release_notices.rules import ReleaseChannel
from models.people.release_notices.shapes import (
    AcknowledgeReleases,
    PublishRelease,
    Release,
    ReleaseList,
    ReleaseState,
    WhatsNew,
)
from runtime.errors import NotFoundError

router = Router(tags=["release notices"])

NOTICES = "/v1/admin/release-notices"


@router.get("/v1/me/whats-new/state/{channel}", access=Access())
async def get_whats_new(request: ApiRequest) -> Data[WhatsNew]:
    """Say how far the caller has read the release notices of a channel, `web` or `mobile`.

    With it come the notices published since, newest first and 100 at most. Who has acknowledged
    none is told what is new since their account was made.
    """
    channel = queries.read_channel(request.path_params["channel"])
    return Data(await queries.whats_new(request.work, request.principal, channel))


@router.post("/v1/me/whats-new/ack", access=Access(), errors=[NotFoundError])
async def acknowledge_whats_new(
    request: ApiRequest, body: AcknowledgeReleases
) -> Data[ReleaseState]:
    """Acknowledge the release notices of a channel up to one of them.

    What is acknowledged stays so: an older notice changes nothing.
    """
    return Data(await commands.acknowledge(request.work, request.principal, body))


@router.post(NOTICES, access=Access(platform_admin=True, idempotent=True), status_code=201)
async def publish_release_notice(request: ApiRequest, body: PublishRelease) -> Data[Release]:
    """Publish a release notice for all users of a channel."""
    return Data(await commands.publish_release(request.work, request.principal, body))


@router.get(NOTICES, access=Access(platform_admin=True))
async def list_release_notices(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    channel: ReleaseChannel | None = None,
) -> Data[ReleaseList]:
    """List release notices, newest first."""
    page = request.page("release-notices", limit, cursor, channel)
    return Data(await queries.list_releases(request.work, channel, page))
