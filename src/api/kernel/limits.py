"""Limits of a caller: token buckets, and its share of the database's connections."""

import math
import os
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from starlette.types import Scope

from runtime.configuration.settings import Settings
from runtime.errors import RateLimitedError
from runtime.keyed_limiter import KeyedLimiter

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_PREFIX = 64
"""The bits of an IPv6 address that name the site: one caller has all addresses below them."""


def networks(entries: Sequence[str]) -> tuple[Network, ...]:
    """The networks of the proxies that are trusted."""
    return tuple(ip_network(entry) for entry in entries)


def client_address(scope: Scope, proxies: Sequence[Network]) -> str:
    """The address of the caller: an IPv4 address, or the network of an IPv6 address.

    Behind trusted proxies it is the last one in `X-Forwarded-For` that is none of theirs; what a
    caller writes there stands before it. Empty where a listener knows no addresses.
    """
    client = scope.get("client")
    if client is None:
        return ""
    hops = [client[0]]
    for name, value in reversed(scope["headers"]):
        if name == b"x-forwarded-for":
            hops += reversed(value.decode("latin-1").split(","))
    caller: Address | None = None
    for hop in hops:
        address = _read(hop.strip())
        if address is None:
            break
        caller = address
        if not any(address in proxy for proxy in proxies):
            break
    if caller is None:
        return ""
    if isinstance(caller, IPv4Address):
        return str(caller)
    return str(IPv6Network((int(caller), _PREFIX), strict=False))


def _read(text: str) -> Address | None:
    """The address in the form that proxies give it, perhaps with a port; None for anything else."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


@dataclass(frozen=True, slots=True)
class Quota:
    """The calls left of a bucket: `remaining` of at most `limit`, full again in `reset` seconds."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> dict[str, str]:
        """The headers that tell it (interface.md#rate-limits)."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }


class TooOftenError(RateLimitedError):
    """The bucket is empty; `Retry-After` has the seconds until it is filled again."""

    def __init__(self, quota: Quota, seconds: float, counted: str = "requests") -> None:
        wait = max(1, math.ceil(seconds))
        unit = "second" if wait == 1 else "seconds"
        super().__init__(f"Too many {counted}. Try again in {wait} {unit}.")
        self.headers = {  # type: ignore[misc]  # of this refusal, not of its class
            "Retry-After": str(wait),
            **quota.headers(),
        }


class RateLimit:
    """Lets each name through `per_second` times on average and `burst` times at once; 0 is off.

    Each process counts for itself, so several of them together let through several times as much.
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        names: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
        counted: str = "requests",
    ) -> None:
        """Keep the buckets of the `names` names that were used last."""
        self._counted = counted
        self._per_second = per_second
        self._burst = max(1, burst)
        self._names = names
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, name: Hashable) -> Quota | None:
        """Count one call, and what is left; None without a limit. Raises TooOftenError."""
        if self._per_second <= 0:
            return None
        tokens = self._tokens(name)
        if tokens < 1:
            seconds = (1 - tokens) / self._per_second
            raise TooOftenError(self._keep(name, tokens), seconds, self._counted)
        return self._keep(name, tokens - 1)

    def owe(self, name: Hashable, count: int) -> Quota | None:
        """Count that many calls more of a name that was let through, whose bucket may lack them."""
        if self._per_second <= 0:
            return None
        return self._keep(name, self._tokens(name) - count)

    def _tokens(self, name: Hashable) -> float:
        now = self._clock()
        tokens, since = self._buckets.get(name, (float(self._burst), now))
        return min(self._burst, tokens + (now - since) * self._per_second)

    def _keep(self, name: Hashable, tokens: float) -> Quota:
        self._buckets[name] = (tokens, self._clock())
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._names:
            self._buckets.popitem(last=False)
        reset = math.ceil((self._burst - tokens) / self._per_second)
        return Quota(self._burst, max(0, int(tokens)), reset)


class RateLimits:
    """The limits of a process: of each caller, of the runs it starts, of each webhook, and of
    callers without an account by their address."""

    def __init__(self, settings: Settings) -> None:
        self.callers = RateLimit(settings.rate_limit_key, settings.rate_limit_key_burst)
        self.run_starts = RateLimit(
            settings.rate_limit_run_start, settings.rate_limit_run_start_burst
        )
        self.webhooks = RateLimit(settings.rate_limit_webhook, settings.rate_limit_webhook_burst)
        self._forms = RateLimit(
            settings.rate_limit_form / 60, settings.rate_limit_form_burst, counted="submissions"
        )
        self._form_addresses = RateLimit(
            settings.rate_limit_form_address / 60,
            settings.rate_limit_form_address_burst,
            names=100_000,
            counted="submissions",
        )
        self._visitors = RateLimit(
            settings.rate_limit_visitor, settings.rate_limit_visitor_burst, names=100_000
        )
        self._proxies = networks(settings.trusted_proxies)

    def take(self, caller: Hashable, *, starts_run: bool) -> Quota | None:
        """Count a call of a caller; what is left of the narrower limit. Raises TooOftenError."""
        quota = self.callers.take(caller)
        started = self.run_starts.take(caller) if starts_run else None
        return started or quota

    def take_submission(self, form: Hashable, scope: Scope) -> str:
        """Count a submission of a public form, by its form and address, which it gives.

        Raises TooOftenError.
        """
        address = client_address(scope, self._proxies)
        self._form_addresses.take((form, address))
        self._forms.take(form)
        return address

    def take_visit(self, scope: Scope) -> None:
        """Count the use of a link that needs no account, by its address. Raises TooOftenError."""
        self._visitors.take(client_address(scope, self._proxies))


_PATIENCE_SECONDS = 10.0
"""The time a request waits in the line of its caller: as long as one waits for a connection."""
_HEAVY = max(1, (os.cpu_count() or 1) // 2)
"""Heavy requests of one caller at once; PostgreSQL is taken to have as many processors."""
_NAMES = 10_000


class CrowdError(RateLimitedError):
    """Requests of one caller wait for each other."""

    def __init__(self) -> None:
        super().__init__("Too many concurrent requests. Send fewer at once.")


class ConnectionShares:
    """Lets the requests of each caller hold at most `most` connections at once, `heavy` fewer.

    Requests that wait for a locked row, or for a long evaluation, hold a connection meanwhile.
    Beyond the share of their caller they wait in line without one. A heavy request, such as a batch
    or a query, fills a processor: a caller's heavy requests take turns, which leaves room for
    everyone else's.
    """

    def __init__(self, most: int, patience: float = _PATIENCE_SECONDS, heavy: int = _HEAVY) -> None:
        self._shares = KeyedLimiter(most, patience)
        self._heavy = KeyedLimiter(min(heavy, most), patience)
        self._owners: OrderedDict[Hashable, Hashable] = OrderedDict()

    def share_of(self, caller: Hashable) -> Hashable:
        """The name a caller's share goes by: their owner's where it is known, else their own."""
        return self._owners.get(caller, caller)

    def belongs(self, caller: Hashable, owner: Hashable) -> None:
        """Let a caller, such as one key of a workspace, share with all others of their owner."""
        if caller not in self._owners:
            self._owners[caller] = owner
            if len(self._owners) > _NAMES:
                self._owners.popitem(last=False)

    @asynccontextmanager
    async def held(self, share: Hashable, *, heavy: bool = False) -> AsyncIterator[None]:
        """Hold one connection of a share. Raises CrowdError after waiting for too long."""
        entered = False
        try:
            async with AsyncExitStack() as stack:
                if heavy:
                    await stack.enter_async_context(self._heavy.slot(share))
                await stack.enter_async_context(self._shares.slot(share))
                entered = True
                yield
        except TimeoutError:
            if entered:
                raise
            raise CrowdError from None
