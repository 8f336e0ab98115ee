"""Limits how often something may be requested: token buckets in the memory of this process.

Each process counts for itself, so several of them together let through several times as much.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from starlette.types import Scope

from api.kernel.client_addresses import client_address, networks
from runtime.errors import RateLimitedError
from runtime.settings import Settings


@dataclass(frozen=True, slots=True)
class Quota:
    """The calls left of a bucket: `remaining` of at most `limit`, full again in `reset` seconds."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> dict[str, str]:
        """The headers that tell it (decisions C3)."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }


class TooOftenError(RateLimitedError):
    """The bucket is empty; `Retry-After` says in how many seconds it no longer is."""

    def __init__(self, quota: Quota, seconds: float, counted: str = "requests") -> None:
        wait = max(1, math.ceil(seconds))
        unit = "second" if wait == 1 else "seconds"
        super().__init__(f"Too many {counted}. Try again in {wait} {unit}.")
        self.headers = {  # type: ignore[misc]  # of this refusal, not of its class
            "Retry-After": str(wait),
            **quota.headers(),
        }


class RateLimit:
    """Lets each name through `per_second` times on average and `burst` times at once; 0 is off."""

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

    def take_submission(self, form: Hashable, scope: Scope) -> None:
        """Count a submission of a public form, by its form and address. Raises TooOftenError."""
        self._form_addresses.take((form, client_address(scope, self._proxies)))
        self._forms.take(form)

    def take_visit(self, scope: Scope) -> None:
        """Count the use of a link that needs no account, by its address. Raises TooOftenError."""
        self._visitors.take(client_address(scope, self._proxies))
