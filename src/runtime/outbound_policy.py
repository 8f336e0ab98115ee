"""Bounds on the reach and the cost of outbound calls."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_network

from runtime.addresses import Address, Network, is_host, is_public, number_address
from runtime.own_listeners import Listener, OwnListeners

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
        """Tell whether a connection to `host`, at this address and port, is meant."""
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
    """Places that are never reached, whatever is allowed."""
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
        """Tell whether a connection to `host`, at an address and port not our own, may be made."""
        if is_public(address):
            return True
        return any(allowance.covers(host, address, port) for allowance in self.allowed)
