"""Which URLs the platform may call, judged by scheme, host and port before a name is resolved."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

UNREADABLE = "The URL cannot be read: check its host, its port and its characters."

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


def url_problem(text: str) -> str | None:
    """Why a URL can never be called, or None.

    A host in other letters than ASCII is left to the caller, who spells it as its domain does.
    """
    try:
        parts = urlsplit(text)
        user, port = parts.username or parts.password, parts.port
    except ValueError:
        return UNREADABLE
    host = parts.hostname or ""
    return target_problem(parts.scheme, user, host if host.isascii() else None, port)


def target_problem(
    scheme: str, user: str | bytes | None, host: str | None, port: int | None
) -> str | None:
    """Why what a URL names must not be called, whatever it resolves to; a host may be unknown."""
    if scheme not in {"http", "https"}:
        return "The URL must start with http:// or https://."
    if user:
        return "The URL holds a user name or password: send them as a header."
    if host is not None and not _is_host(host.lower()):
        return "The URL's host is not a name or an address."
    if port is not None and (port in _BAD_PORTS or port > 65535):
        return f"Port {port} does not speak HTTP."
    return None


def _is_host(host: str) -> bool:
    if _NAME.fullmatch(host):
        return True
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
