"""Requests without an account, let in through a share link."""

from api.kernel.request import ApiRequest
from models.workspace.share_links.commands.visits import Knock, Visitor, let_in
from runtime.errors import ValidationError
from runtime.ids import parse_id

TOKEN_HEADER = "X-Share-Token"  # noqa: S105  # a name, not a secret
SESSION_HEADER = "X-Share-Session"

_PURPOSES = (b"sec-purpose", b"purpose", b"x-purpose", b"x-moz")
_SPECULATIVE = (b"prefetch", b"prerender", b"preview")


async def admit_visitor(request: ApiRequest, token: str | None, session: str | None) -> Visitor:
    """Let the caller in by what the headers show, or else the query; the log names the link.

    Raises what `let_in` raises, and ValidationError for a header sent twice.
    """
    shown = Knock(
        token=_header(request, TOKEN_HEADER) or token,
        session=_header(request, SESSION_HEADER) or session,
        speculative=any(
            word in value.lower()
            for name in _PURPOSES
            for value in request.headers_named(name)
            for word in _SPECULATIVE
        ),
    )
    link_id = parse_id(request.path_params["shareLinkId"])
    visitor = await let_in(request.work, request.services.keys, link_id, shown)
    request.caller = visitor.actor.principal
    request.enter(visitor.actor)
    return visitor


def _header(request: ApiRequest, name: str) -> str | None:
    values = request.headers_named(name.lower().encode())
    if len(values) > 1:
        raise ValidationError.at(name, "Send the header once.")
    return values[0].decode("latin-1") if values else None
