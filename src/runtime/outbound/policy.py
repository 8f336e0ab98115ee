"""What outbound calls may reach, and how much they may cost."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_network

from runtime.outbound.addresses import Address, Network, is_public

_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundPolicy:
    """Limits of every outbound call; sizes in bytes, times in seconds.

    `allow_hosts` and `allow_networks` name what may be reached although it is not public.
    """

    allow_hosts: frozenset[str] = frozenset()
    allow_networks: tuple[Network, ...] = ()
    connect_seconds: float = 10
    read_seconds: float = 60
    max_redirects: int = 5
    max_header_bytes: int = 64 * 1024
    max_body_bytes: int = 100 * 1024 * 1024

    @classmethod
    def from_entries(cls, entries: Iterable[str]) -> "OutboundPolicy":
        """The policy that also allows these host names, addresses and CIDR ranges.

        Raises ValueError, naming the entry, for one that is neither.
        """
        hosts: set[str] = set()
        networks: list[Network] = []
        for entry in (text.strip().lower() for text in entries):
            try:
                networks.append(ip_network(entry.strip("[]")))
            except ValueError:
                if "/" in entry or not _HOST.fullmatch(entry) or entry.replace(".", "").isdigit():
                    raise ValueError(
                        f"{entry!r} is not a host name, an address or a CIDR range."
                    ) from None
                hosts.add(entry)
        return cls(allow_hosts=frozenset(hosts), allow_networks=tuple(networks))

    def permits(self, host: str, address: Address) -> bool:
        """Whether a connection to `host` may go to `address`."""
        if is_public(address) or host.rstrip(".").lower() in self.allow_hosts:
            return True
        return any(address in network for network in self.allow_networks)
