"""The next request of a redirect (RFC 9110 15.4), and what it must not carry along."""

from dataclasses import dataclass

import httpx2

from runtime.outbound.errors import InvalidUrlError
from runtime.outbound.urls import check_url, is_https_upgrade, same_origin

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# Another origin gets only headers known to hold no secret: any other may be someone's credential.
_CARRIED = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "content-encoding",
        "content-language",
        "content-type",
        "idempotency-key",
        "if-modified-since",
        "if-none-match",
        "range",
        "user-agent",
    }
)


@dataclass(frozen=True, slots=True)
class Hop:
    """One request on the way: where, how, with which headers and body."""

    method: str
    url: httpx2.URL
    headers: dict[str, str]
    content: bytes | None


def next_hop(hop: Hop, status: int, location: str | None) -> Hop | None:
    """The request a redirect asks for, or None when the answer is final. Raises InvalidUrlError."""
    if status not in _REDIRECTS or location is None:
        return None
    try:
        url = hop.url.join(location).copy_with(fragment=None)
    except (httpx2.InvalidURL, UnicodeError):
        raise InvalidUrlError(f"{hop.url.host} redirects to a URL that cannot be read.") from None
    check_url(url)
    headers = dict(hop.headers)
    if not (same_origin(hop.url, url) or is_https_upgrade(hop.url, url)):
        headers = {name: value for name, value in headers.items() if name in _CARRIED}
    if _becomes_get(hop.method, status):
        headers = {
            name: value for name, value in headers.items() if not name.startswith("content-")
        }
        return Hop("GET", url, headers, None)
    return Hop(hop.method, url, headers, hop.content)


def _becomes_get(method: str, status: int) -> bool:
    return (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST")
