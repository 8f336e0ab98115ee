"""Which URLs the platform calls, before any name is resolved."""

import re
from collections.abc import Mapping, Sequence

import httpx2

from runtime.outbound.addresses import parse_address
from runtime.outbound.errors import InvalidUrlError

MAX_LENGTH = 8192

_NAME = re.compile(r"(?=.{1,253}\.?$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_-]{1,63}\.?")

# Fetch standard, "Port blocking": services whose protocols take an HTTP request for commands.
# fmt: off
_BAD_PORTS = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
})
# fmt: on


def parse_url(text: str, query: Mapping[str, str | Sequence[str]] | None = None) -> httpx2.URL:
    """The URL to call, with `query` merged in and without its fragment. Raises InvalidUrlError."""
    if len(text) > MAX_LENGTH:
        raise InvalidUrlError(f"The URL is longer than {MAX_LENGTH} characters.")
    try:
        url = httpx2.URL(text.strip())
        if query:
            url = url.copy_merge_params({name: _values(value) for name, value in query.items()})
    except (httpx2.InvalidURL, UnicodeError):
        raise InvalidUrlError(
            "The URL cannot be read: check its host and its characters."
        ) from None
    check_url(url)
    return url.copy_with(fragment=None)


def _values(value: str | Sequence[str]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


def check_url(url: httpx2.URL) -> None:
    """Refuse what must not be called whatever it resolves to. Raises InvalidUrlError."""
    if url.scheme not in {"http", "https"}:
        raise InvalidUrlError("The URL must start with http:// or https://.")
    if url.userinfo:
        raise InvalidUrlError("The URL holds a user name or password: send them as a header.")
    if not _is_host(url.raw_host.decode("ascii")):
        raise InvalidUrlError("The URL's host is not a name or an address.")
    if url.port is not None and (url.port in _BAD_PORTS or url.port > 65535):
        raise InvalidUrlError(f"Port {url.port} does not speak HTTP.")


def _is_host(host: str) -> bool:
    if _NAME.fullmatch(url_host := host.lower()):
        return True
    try:
        parse_address(url_host)
    except ValueError:
        return False
    return True


def same_origin(left: httpx2.URL, right: httpx2.URL) -> bool:
    """Whether both name the same scheme, host and port."""
    return _origin(left) == _origin(right)


def is_https_upgrade(left: httpx2.URL, right: httpx2.URL) -> bool:
    """Whether `right` is the host of `left` on HTTPS instead of HTTP, both on default ports."""
    return _origin(left) == ("http", left.host, 80) and _origin(right) == ("https", left.host, 443)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def redacted_url(text: str) -> str:
    """The URL without credentials, query values and fragment: what may stand in a log."""
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        return "(unreadable URL)"
    names = dict.fromkeys(url.params, "***")
    return str(url.copy_with(userinfo=b"", fragment=None, query=None).copy_merge_params(names))
