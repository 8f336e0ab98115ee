"""The platform's own listeners, which are never called on anyone's behalf (ADR 0067).

Whatever an operator allows, a person who makes the platform call a URL, a database or a server must
not reach Temporal, its UI, PostgreSQL or the API by it.
"""

import errno
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from runtime.addresses import Address, is_public, parse_address

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
        """Tell whether the listener, which is at these places, answers at an address.

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
    """All listeners that a process knows of."""

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
        """Tell whether a connection to `host`, at this address and port, is one to the platform.

        `names` has the addresses of the listeners that are known by a name.
        """
        for listener in self.at(port):
            own = listener.address
            places = names.get(listener.host, ()) if own is None else [own]
            if listener.is_named(host) or listener.is_at(address, places):
                return True
        return False
