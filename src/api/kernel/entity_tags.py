"""The check that a client has the newest form of something already (RFC 9110, 13.1.2)."""

from api.kernel.request import ApiRequest

_LONGEST_HEADER = 1000


def is_current(request: ApiRequest, etag: str) -> bool:
    """True when `If-None-Match` names this entity tag, by weak comparison."""
    given = b",".join(request.headers_named(b"if-none-match"))[:_LONGEST_HEADER].decode("latin-1")
    tags = {one.strip().removeprefix("W/") for one in given.split(",")}
    return bool(tags & {"*", etag})
