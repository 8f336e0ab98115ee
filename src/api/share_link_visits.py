"""Requests without an account, admitted through a share link."""

from api.kernel.request import ApiRequest
from models.workspace.share_links.commands.visits import VisitRequest, admit
from models.workspace.share_links.queries.visitors import Visitor
from runtime.errors import ValidationError
from runtime.ids import parse_id

TOKEN_HEADER = "X-Share-Token"  # noqa: S105  # a name, not a secret
SESSION_HEADER = "X-Share-Session"

_PURPOSES = (b"sec-purpose", b"purpose", b"x-purpose", b"x-moz")
_PREFETCH = (b"prefetch", b"prerender", b"preview")


async def admit_visitor(request: ApiRequest, token: str | None, session: str | None) -> Visitor:
    """Admit the caller by the headers, or else by the query; the request log names the link.

    All visitors of a link share its rate limit, and all of an address have one of their own. Raises
    what `admit` raises, TooOftenError, and ValidationError for a header sent twice.
    """
    visit = VisitRequest(
        token=_header(request, TOKEN_HEADER) or token,
        session=_header(request, SESSION_HEADER) or session,
        prefetch=any(
            word in value.lower()
            for name in _PURPOSES
            for value in request.headers_named(name)
            for word in _PREFETCH
        ),
    )
    link_id = parse_id(request.path_params["shareLinkId"])
    request.services.limits.take_visit(request.scope)
    visitor = await admit(request.work, request.services.keys, link_id, visit)
    request.caller = visitor.actor.principal
    request.quota = request.services.limits.take(link_id, starts_run=False)
    request.enter(visitor.actor)
    return visitor


def _header(request: ApiRequest, name: str) -> str | None:
    values = request.headers_named(name.lower().encode())
    if len(values) > 1:
        raise ValidationError.at(name, "Send the header once.")
    return values[0].decode("latin-1") if values else None
