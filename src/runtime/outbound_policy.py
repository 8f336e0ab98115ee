"""Hosts and URLs that may be called: public addresses, own listeners, the operator's bounds."""

import errno
import re
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import idna

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NO_HOST = "The host is not a name or an address."
_NAME = re.compile(
    r"(?=.{1,253}\.?\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*"
    r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.?"
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ZONE = re.compile(r"[A-Za-z0-9._~-]{1,60}")

# IANA IPv4 Special-Purpose Address Registry, multicast, class E, and one cloud's metadata service.
_SPECIAL_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        # Public by number, yet answered by the host of every virtual machine on Azure.
        "168.63.129.16/32",
    )
)

# Only global unicast is routed (RFC 4291 2.4), so NAT64, mapped, unique-local, link-local and
# multicast addresses fall outside; inside it, what IANA lists as special or as a transition.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


def is_host(host: str) -> bool:
    """True for a valid host, as it is resolved: a name in ASCII, or an address.

    One that ends in a number is an address, in any spelling that the machine reads (URL standard,
    3.5).
    """
    name = host.lower()
    if _NAME.fullmatch(name):
        bare = name.removesuffix(".")
        if _NUMBER.fullmatch(bare.rpartition(".")[2]):
            return number_address(bare) is not None
        return not bare.startswith("xn--") or _is_readable(bare)
    address, percent, zone = host.partition("%")
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return not percent or (parsed.version == 6 and _ZONE.fullmatch(zone) is not None)


def _is_readable(name: str) -> bool:
    """True for a name in Punycode that can be decoded, as our client decodes it."""
    try:
        idna.decode(name)
    except UnicodeError:
        return False
    return True


def number_address(host: str) -> IPv4Address | None:
    """The address that numbers are to the machine: `127.1` and `0x7f000001` are some."""
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def parse_address(text: str) -> Address:
    """The address that a connection to `text` really goes to: zone dropped, IPv4-mapped unwrapped.

    Raises ValueError for anything else than a canonical address literal.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_public(address: Address) -> bool:
    """True when anyone on the internet could reach this address as well.

    `ipaddress.is_global` alone is not a guard: it has passed transition addresses that embed
    private ones, and its answer differs between Python versions. So the lists are here, and both
    must agree.
    """
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_V6)


_ABSENT = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


@dataclass(frozen=True, slots=True)
class Listener:
    """A host and a port that a part of the platform listens on.

    The addresses of a `shared` one, where they are public, serve others too: a proxy's, or a
    content network's. Then it is known by its name alone.
    """

    host: str
    port: int
    shared: bool = False

    @classmethod
    def parse(cls, text: str) -> "Listener":
        """`host:port`, an IPv6 address in brackets. Raises ValueError."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"{text!r} is not host:port.")
        return cls(host.strip("[]").lower(), int(port))

    @property
    def address(self) -> Address | None:
        """The address that its host is, or None for a name."""
        try:
            return parse_address("127.0.0.1" if self.host == "localhost" else self.host)
        except ValueError:
            return None

    def is_named(self, host: str) -> bool:
        """Compare a host with this listener's by spelling."""
        return host.rstrip(".").lower() == self.host.rstrip(".")

    def is_at(self, address: Address, places: Collection[Address]) -> bool:
        """True when the listener, which is at these places, answers at an address.

        One of this machine counts as answering at every address of it: a listener on one, or on
        0.0.0.0, is reached by the others or may be after its next start.
        """
        if self.shared and is_public(address):
            return False
        return address in places or (is_local(address) and any(map(is_local, places)))


def is_local(address: Address) -> bool:
    """Ask the kernel whether a connection to an address stays on this machine."""
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError as error:
        return error.errno not in _ABSENT
    return True


@dataclass(frozen=True, slots=True)
class OwnListeners:
    """All listeners that a process knows of.

    A person who makes the platform call a URL, a database or a server must not reach Temporal, its
    UI, PostgreSQL or the API by it, even if an operator allows such addresses (ADR 0067).
    """

    listeners: tuple[Listener, ...] = ()

    @classmethod
    def of(cls, listeners: Iterable[Listener]) -> "OwnListeners":
        return cls(tuple(dict.fromkeys(listeners)))

    def at(self, port: int) -> list[Listener]:
        return [listener for listener in self.listeners if listener.port == port]

    def is_named(self, host: str, port: int) -> bool:
        """Compare a host and port with all listeners' by spelling."""
        return any(listener.is_named(host) for listener in self.at(port))

    def is_own(
        self, host: str, address: Address, port: int, names: Mapping[str, Collection[Address]]
    ) -> bool:
        """True when a connection to `host`, at this address and port, reaches the platform.

        `names` has the addresses of the listeners that are known by a name.
        """
        for listener in self.at(port):
            own = listener.address
            places = names.get(listener.host, ()) if own is None else [own]
            if listener.is_named(host) or listener.is_at(address, places):
                return True
        return False


_WITH_PORT = re.compile(r"(?P<place>\[[0-9a-f:.]+\]|[^\[\]:/]+):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Allowance:
    """A host name or a network that may be reached although it is private; at one port, or any."""

    place: str | Network
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Allowance":
        """`name`, `address` or `range/bits`, the first two also as `…:port`.

        Raises ValueError, naming the entry, for anything else.
        """
        entry = text.strip().lower()
        port = None
        if matched := _WITH_PORT.fullmatch(entry):
            entry, port = matched["place"], int(matched["port"])
        try:
            return cls(ip_network(entry.strip("[]")), port)
        except ValueError:
            if not is_host(entry) or number_address(entry) is not None:
                raise ValueError(
                    f"{text!r} is not a host name, an address or a CIDR range."
                ) from None
        return cls(entry, port)

    def covers(self, host: str, address: Address, port: int) -> bool:
        """True when the entry covers a connection to `host` at this address and port."""
        if self.port not in {None, port}:
            return False
        if isinstance(self.place, str):
            return host.rstrip(".").lower() == self.place
        return address in self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundPolicy:
    """Limits of every outbound call; sizes in bytes, times in seconds."""

    allowed: tuple[Allowance, ...] = ()
    """Places that may be reached although they are not public."""
    own: OwnListeners = field(default_factory=OwnListeners)
    """Places that are never reached, even if an operator allows them."""
    connect_seconds: float = 10
    read_seconds: float = 60
    max_redirects: int = 5
    max_header_bytes: int = 64 * 1024
    max_body_bytes: int = 100 * 1024 * 1024

    @classmethod
    def from_entries(cls, entries: Iterable[str], own: Iterable[Listener] = ()) -> "OutboundPolicy":
        """The policy that also allows these hosts, addresses and ranges. Raises ValueError."""
        allowed = tuple(Allowance.parse(entry) for entry in entries)
        return cls(allowed=allowed, own=OwnListeners.of(own))

    def permits(self, host: str, address: Address, port: int) -> bool:
        """True when a connection to `host`, at an address and port not our own, may be made."""
        if is_public(address):
            return True
        return any(allowance.covers(host, address, port) for allowance in self.allowed)


OWN = "The host and port belong to the platform and can't be called."
PRIVATE = (
    "The host is a private address, which is not called from here. An operator can allow it by"
    " WORKSPACE_OUTBOUND_ALLOW."
)
UNREADABLE = "Invalid URL. Check its host, port and characters."

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
# Servers of other protocols that are often near: MySQL, PostgreSQL, Redis, Temporal, memcached,
# MongoDB.
_SERVICES = frozenset({3306, 5432, 6379, 7233, 11211, 27017})

saving: ContextVar[OutboundPolicy | None] = ContextVar("saving", default=None)
"""The policy by which a URL that is being saved is judged.

None when it is called: then the connection itself is judged, after the name was resolved.
"""


@contextmanager
def saving_by(policy: OutboundPolicy) -> Iterator[None]:
    """Judge the hosts that are saved while the block runs."""
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
        return "Remove the fragment (#…) from the URL. It is never sent."
    return host_problem(host, port or _PORTS[parts.scheme])


def host_problem(host: str, port: int) -> str | None:
    """The reason for which a host is never called, as far as the host alone decides.

    A host that is being saved is judged by the policy of `saving`, too.
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
    """The canonical spelling of a host: lower case, in ASCII, without a last dot.

    An address is written as it is called. Raises ValueError for an invalid host.
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
    """The reason not to call a URL, whose host need not be resolvable."""
    if scheme not in _PORTS:
        return "The URL must start with http:// or https://."
    if has_user:
        return "Remove the user name and password from the URL. Send them as a header."
    if host is not None and not is_host(host):
        return "The URL's host is not a name or an address."
    if port is not None and (port in _BAD_PORTS or port in _SERVICES or port > 65535):
        return f"Port {port} is not an HTTP port."
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
