"""Share links: made by members, opened by anyone who has their token."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.anonymous_requests import SESSION_HEADER, TOKEN_HEADER, admit_visitor
from api.kernel.limits import TooOftenError
from api.kernel.representations import RangeNotSatisfiableError, download
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.content.files.rules import UNKNOWN_TYPE
from models.core.access.rules import Level, Scope
from models.workspace.share_links import links
from models.workspace.share_links.calendars import shared_calendar
from models.workspace.share_links.content import open_shared_file, visit
from runtime.errors import DeniedError, UnsupportedError

router = Router(tags=["share links"])

LINKS = "/v1/workspaces/{workspaceId}/items/{itemId}/share-links"
SHARE = "/v1/share/{shareLinkId}"
CREATE = Access(
    scopes=[Scope.RESOURCES_WRITE], resource="item", level=Level.MANAGE, idempotent=True
)
READ = Access(resource="item", level=Level.VIEW)
REVOKE = replace(CREATE, resource="share_link")
_PUBLIC = Access(credential="none", writes=True)

Token = Annotated[str | None, Field(max_length=200)]
FieldKey = Annotated[str | None, Field(max_length=63)]


@router.post(
    LINKS, access=CREATE, status_code=201, errors=[UnsupportedError], calls=links.create_share_link
)
async def create_share_link() -> None:
    """Create a share link of an item. Its token is only returned once."""


@router.get(LINKS, access=READ, calls=links.list_share_links)
async def list_share_links() -> None:
    """List the share links of an item, newest first, without their tokens."""


@router.delete(f"{LINKS}/{{shareLinkId}}", access=REVOKE, calls=links.revoke_share_link)
async def revoke_share_link() -> None:
    """Revoke a share link immediately, also for visitors with a session."""


@router.get(
    SHARE,
    access=_PUBLIC,
    errors=[TooOftenError],
    # The page at this path, for who prefers HTML.
    media_type="text/html",
    statuses=[200],
    headers=[TOKEN_HEADER, SESSION_HEADER],
)
async def open_share_link(
    request: ApiRequest,
    token: Token = None,
    session: Token = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Data[links.Visit]:
    """Open a share link.

    Send its token in `X-Share-Token` or `token`. That counts as one visit and returns a session for
    an hour, to send in `X-Share-Session` or `session`. A browser gets a page that reads the token
    from the fragment of the URL, `…#token`.
    """
    visitor = await admit_visitor(request, token, session)
    return Data(await visit(request.work, request.services.keys, visitor, limit, cursor))


@router.get(
    f"{SHARE}/download",
    access=_PUBLIC,
    errors=[RangeNotSatisfiableError, DeniedError, UnsupportedError, TooOftenError],
    media_type=UNKNOWN_TYPE,
    statuses=[206, 304],
    headers=[TOKEN_HEADER, SESSION_HEADER],
)
async def download_shared_file(
    request: ApiRequest, token: Token = None, session: Token = None
) -> Response:
    """Download a shared file, if the link allows it. Authenticate as for opening the link."""
    visitor = await admit_visitor(request, token, session)
    return download(request, await open_shared_file(request.work, visitor))


CALENDAR = "text/calendar"


@router.get(
    f"{SHARE}/calendar.ics",
    # It reads up to 2,000 records and writes them as text in the process of the API.
    access=replace(_PUBLIC, heavy=True),
    errors=[UnsupportedError, TooOftenError],
    media_type=CALENDAR,
    headers=[TOKEN_HEADER, SESSION_HEADER],
)
async def get_shared_calendar(
    request: ApiRequest,
    token: Token = None,
    session: Token = None,
    date_field_key: FieldKey = None,
    end_date_field_key: FieldKey = None,
) -> Response:
    """Get a shared database or view as a calendar, which other programs subscribe to.

    The events are its records with a date, up to 2,000, the latest first. Without `dateFieldKey`
    a calendar view names the fields, else it is the first date field. Each request with the token
    counts as one visit.
    """
    visitor = await admit_visitor(request, token, session)
    content = await shared_calendar(
        request.work, request.services.keys, visitor, date_field_key, end_date_field_key
    )
    headers = {"Cache-Control": "private, no-store"}
    return Response(content, headers=headers, media_type=f"{CALENDAR}; charset=utf-8")
