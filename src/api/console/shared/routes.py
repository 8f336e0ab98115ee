"""A share link as a page: opened with its token, read in a visit of an hour (ADR 0028)."""

from collections.abc import Sequence

from starlette.responses import Response

from api.anonymous_requests import admit_visitor
from api.console.entered import Form
from api.console.records.cells import Cell, outside_spec, value_cell
from api.console.rendering import bare, see_other
from api.console.routing import page_router
from api.kernel.browsers import is_secure, read_cookie
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.workspace.share_links import SHARE, Token
from models.data.forms.queries import public_form
from models.workspace.share_links.content import visit
from models.workspace.share_links.links import SharedForm, SharedRecords, Visit
from models.workspace.share_links.visitors import Visitor
from runtime.errors import NotFoundError

router = page_router()

PAGE = 50
MOST_COLUMNS = 40
"""Columns of a table, as of one for members: a page stays readable and light."""
_LONGEST = 2_000
"""Characters of a text: here no page of the record has all of it."""
_ANYBODY = Access(credential="none", page=True, writes=True)
_CLOSED = (
    "This link is not valid. It may have expired, been revoked or reached its visit limit, or the"
    " token is wrong."
)
_OVER = "Session expired. Open the link again."


class Opening(Form):
    """The token of a link, or the whole address that ends with it."""

    token: str | None = None


@router.get(SHARE, access=_ANYBODY)
async def get_shared(request: ApiRequest, token: Token = None, cursor: Cursor = None) -> Response:
    """Show what a link shares to its visitors; everyone else is asked for its token."""
    session = read_cookie(request.scope["headers"], _cookie_name(request))
    if session is None:
        return _entry(request, token)
    try:
        visitor = await admit_visitor(request, None, session)
        content = await visit(request.work, request.services.keys, visitor, PAGE, cursor)
    except NotFoundError:
        return _entry(request, token, over=_OVER)
    return bare(
        request,
        "shared.html",
        shown=content,
        columns=_columns(content),
        rows=_rows(content),
        figure_cells=_cells,
        form=await _open_form(request, content),
        path=request.url.path,
        cursor=cursor,
    )


@router.post(SHARE, access=_ANYBODY)
async def open_shared(request: ApiRequest, body: Opening) -> Response:
    """Take one of the uses of a link, and begin a visit."""
    token = (body.token or "").strip().rpartition("#")[2].removeprefix("token=")
    try:
        async with request.work.savepoint():
            visitor = await admit_visitor(request, token, None)
    except NotFoundError:
        return _entry(request, None, problem=_CLOSED)
    answer = see_other(request.url.path)
    _remember(request, answer, visitor)
    return answer


def _remember(request: ApiRequest, answer: Response, visitor: Visitor) -> None:
    """Keep the visit in a cookie, which the browser sends to this link alone."""
    answer.set_cookie(
        _cookie_name(request),
        visitor.session,
        expires=visitor.expires_at,
        path=request.url.path,
        secure=is_secure(request.services.settings),
        httponly=True,
        samesite="lax",
    )


def _cookie_name(request: ApiRequest) -> str:
    return "__Secure-visit" if is_secure(request.services.settings) else "visit"


def _entry(
    request: ApiRequest, token: str | None, *, over: str = "", problem: str = ""
) -> Response:
    """The page that asks for the token; a script sends the one in the address by itself."""
    status = NotFoundError.status if problem else 200
    path = request.url.path
    return bare(
        request, "shared_entry.html", status, path=path, token=token, over=over, problem=problem
    )


def _columns(shown: Visit) -> Sequence[str]:
    content = shown.content
    if not isinstance(content, SharedRecords):
        return []
    return [field.label for field in content.fields[:MOST_COLUMNS]]


def _rows(shown: Visit) -> Sequence[Sequence[Cell]]:
    return _cells(shown.content) if isinstance(shown.content, SharedRecords) else []


def _cells(shared: SharedRecords) -> Sequence[Sequence[Cell]]:
    specs = [outside_spec(field) for field in shared.fields[:MOST_COLUMNS]]
    return [
        [value_cell(spec, record.data.get(spec.key), _LONGEST) for spec in specs]
        for record in shared.records
    ]


async def _open_form(request: ApiRequest, shown: Visit) -> str | None:
    """The page of a shared form, if the form is open to the public."""
    if not isinstance(shown.content, SharedForm):
        return None
    try:
        await public_form(request.work, shown.item.id)
    except NotFoundError:
        return None
    return f"/forms/{shown.item.id}"
