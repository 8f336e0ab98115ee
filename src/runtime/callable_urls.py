"""Judgement of URLs to call, by scheme, host and port before a name is resolved."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import IPv4Address
from urllib.parse import urlsplit

import idna

from runtime.addresses import NO_HOST, Address, is_host, number_address, parse_address
from runtime.outbound_policy import OutboundPolicy

OWN = "The host and port are the platform's own, which is not called from here."
PRIVATE = (
    "The host is a private address, which is not called from here. An operator can allow it by"
    " WORKSPACE_OUTBOUND_ALLOW."
)
UNREADABLE = "The URL cannot be read: check its host, its port and its characters."

_PORTS = {"http": 80, "https": 443}

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
# What speaks other protocols and is often near: MySQL, PostgreSQL, Redis, Temporal, memcached,
# MongoDB.
_SERVICES = frozenset({3306, 5432, 6379, 7233, 11211, 27017})


saving: ContextVar[OutboundPolicy | None] = ContextVar("saving", default=None)
"""The policy by which a URL that is being saved is judged.

None when it is called: then the connection itself is judged, after the name was resolved.
"""


@contextmanager
def saving_by(policy: OutboundPolicy) -> Iterator[None]:
    """Judge what is saved while the block runs."""
    token = saving.set(policy)
    try:
        yield
    finally:
        saving.reset(token)


def url_problem(text: str) -> str | None:
    """The reason for which a URL can never be called, or None."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return UNREADABLE
    try:
        host = _called_host(parts.hostname or "")
    except UnicodeError:
        return UNREADABLE
    problem = target_problem(parts.scheme, host, port, has_user="@" in parts.netloc)
    if problem is not None or saving.get() is None:
        return problem
    if "#" in text:
        return "The URL has a fragment (#…), which is sent to nobody: leave it out."
    return host_problem(host, port or _PORTS[parts.scheme])


def host_problem(host: str, port: int) -> str | None:
    """The reason for which a host is never called, as far as it tells.

    Of one that is being saved, whether it may be called, too.
    """
    if not is_host(host):
        return NO_HOST
    policy, address = saving.get(), _literal_address(host.rstrip("."))
    if policy is None:
        return None
    if policy.own.is_named(host, port):
        return OWN
    if address is None:
        return None
    if policy.own.is_own(host, address, port, {}):
        return OWN
    return None if policy.permits(host, address, port) else PRIVATE


def _called_host(host: str) -> str:
    """A host as it is looked up: in ASCII (IDNA). Raises UnicodeError for one that has no form."""
    return host if host.isascii() else idna.encode(host).decode("ascii")


def host_name_problem(text: str) -> str | None:
    """The reason for which no host can be written so, or None; a name may be beyond ASCII."""
    try:
        canonical_host(text)
    except ValueError:
        return NO_HOST
    return None


def canonical_host(host: str) -> str:
    """One spelling of all that name the same host: lower case, in ASCII, without a last dot.

    An address is written as it is called. Raises ValueError for what is no host.
    """
    bare = host.strip().removeprefix("[").removesuffix("]")
    # IDNA reads these as dots too.
    name = re.sub("[\u3002\uff0e\uff61]", ".", bare).lower()
    try:
        name = _called_host(name)
    except UnicodeError:
        raise ValueError(host) from None
    if not is_host(name):
        raise ValueError(host)
    name = name.removesuffix(".")
    is_named = name.rpartition(".")[2] == "localhost"
    address = None if is_named else _literal_address(name)
    return name if address is None else str(address)


def target_problem(
    scheme: str, host: str | None, port: int | None, *, has_user: bool
) -> str | None:
    """The reason not to call what a URL names, whatever it resolves to; a host may be unknown."""
    if scheme not in _PORTS:
        return "The URL must start with http:// or https://."
    if has_user:
        return "The URL holds a user name or password: send them as a header."
    if host is not None and not is_host(host):
        return "The URL's host is not a name or an address."
    if port is not None and (port in _BAD_PORTS or port in _SERVICES or port > 65535):
        return f"Port {port} does not speak HTTP."
    return None


def _literal_address(host: str) -> Address | None:
    """The address that a host says without being looked up, in any spelling the machine reads.

    `127.1` and `0x7f000001` are addresses to it, and `localhost` is this machine (RFC 6761, 6.3).
    """
    if host.rpartition(".")[2] == "localhost":
        return IPv4Address("127.0.0.1")
    try:
        return parse_address(host)
    except ValueError:
        return number_address(host)
