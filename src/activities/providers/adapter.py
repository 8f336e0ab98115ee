"""The protocol by which the platform speaks with providers (ADR 0045), and wrappers of it.

An adapter is one provider. It is made once for each worker, keeps nothing between calls, and may be
used by many calls at once. Its capabilities are declared with the provider
(`models.sources.connections.providers.PROVIDERS`): it has the methods of those, and nothing calls
the others. The results of a method are made valid by `listed`. The caller bounds the time of a
call, and cancels it when it takes longer.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError as ShapeError
from typing_extensions import override

from activities.connections import noted_call
from models.core.base import Id, JsonObject
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.forms import HostedForm
from runtime.database import Database

MAX_LISTED = 100
"""Resources of one page."""
MAX_READ_BYTES = 1024 * 1024
"""Bytes of a content that is read into an answer."""
MAX_DOWNLOAD_BYTES = 100 * 1024 * 1024
"""Bytes of a resource that is brought into the workspace."""


class ProblemKind(StrEnum):
    """The reason for which a provider refused a request."""

    AUTH = "auth"
    """It does not accept the credentials."""
    DENIED = "denied"
    """It knows the caller, whose rights do not include this."""
    GONE = "gone"
    """It has no such resource, or hides it from this account."""
    INVALID = "invalid"
    """It refuses the question: a bad cursor, a resource of another kind."""
    UNSUPPORTED = "unsupported"
    """It has no way to give this resource so."""
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    """It cannot be reached, or answers with a failure of its own."""
    MALFORMED = "malformed"
    """It answers with what its documentation does not describe."""


RETRIED = frozenset({ProblemKind.RATE_LIMITED, ProblemKind.TIMEOUT, ProblemKind.UNAVAILABLE})
"""The problems another attempt may not meet."""


class ProviderProblem(Exception):  # noqa: N818  # an outcome that people read, not a fault of code
    """A provider refused a request.

    `message` is for the user who asked, and holds no secret. `retry_after` are the seconds that the
    provider asks to be left alone.
    """

    def __init__(
        self, kind: ProblemKind, message: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        """True when another attempt may not meet it."""
        return self.kind in RETRIED


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """A connection as an adapter uses it, and the member for whom it does."""

    workspace_id: Id
    connection_id: Id
    user_id: Id | None
    config: JsonObject
    credentials: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing: the resources below one, else the ones at the top.

    `query` finds by name instead, below all of it; only adapters that can search are asked so.
    `cursor` is one that the adapter gave for the same listing.
    """

    parent_external_id: str | None = None
    external_type: str | None = None
    query: str | None = None
    limit: int = MAX_LISTED
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """At most `limit` resources; without a cursor nothing follows.

    `ahead` are pages that follow and were given at once: the cursor of each leads to the next.
    """

    resources: Sequence[external_resources.ProviderResource]
    cursor: str | None = None
    ahead: Sequence["ResourcePage"] = ()

    def pages(self) -> Sequence["ResourcePage"]:
        """This page, and those ahead."""
        return [self, *self.ahead]


@dataclass(frozen=True, slots=True)
class ReadContent:
    """The content of a resource as an answer shows it; a link has none."""

    format: external_resources.ReadFormat
    content: Any = None
    revision: str | None = None
    read_only: bool = True
    fallback_url: str | None = None


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A resource in a file: what it is, and what to ask next time to get it only if it changed.

    One that is `unchanged` since then left the file empty.
    """

    name: str
    mime_type: str
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """A watched resource: `changed` when anything at or below it is; `mark` asks the next time."""

    mark: str | None
    changed: bool = True


class Adapter:
    """One provider. Every method raises ProviderProblem; no other error leaves one."""

    listing_seconds = 25.0
    """Seconds that `browse` may take; more where a listing comes as a whole."""

    async def check(self, access: ProviderAccess) -> None:
        """Check that the connection works: one small question that needs its credentials."""
        raise NotImplementedError

    async def browse(self, access: ProviderAccess, listing: Listing) -> ResourcePage:
        """One page of a listing, in an order that pages agree on."""
        raise NotImplementedError

    async def describe(
        self, access: ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        """A resource as it is now, from the provider and not from a cache.

        Only `external_type` and `external_id` of the given one are trusted. `revision` changes
        whenever the content does. Raises GONE, or DENIED where the provider tells them apart.
        """
        raise NotImplementedError

    async def watch(
        self,
        access: ProviderAccess,  # noqa: ARG002  # other adapters use it in their request
        resource: external_resources.ProviderResource,
        mark: str | None,
    ) -> Watched:
        """The news at or below a described resource since a mark of this method.

        Only resources with the capability `watch` are asked so. Unless an adapter knows better,
        the revision of theirs changes with everything below.
        """
        revision = resource.revision
        return Watched(revision, changed=revision is None or revision != mark)

    async def read(
        self, access: ProviderAccess, resource: external_resources.ProviderResource
    ) -> ReadContent:
        """The content of a described resource, at most MAX_READ_BYTES; a link where it has none."""
        raise NotImplementedError

    async def download(
        self,
        access: ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> Downloaded:
        """Write a described resource to a file, at most MAX_DOWNLOAD_BYTES.

        `conditions` are the validators of an earlier download. A document is HTML or Markdown, a
        sheet is CSV or a workbook, a file its bytes; `mime_type` says which.
        """
        raise NotImplementedError

    async def form(
        self, access: ProviderAccess, resource: external_resources.ProviderResource
    ) -> HostedForm:
        """The questions a form asks. Raises UNSUPPORTED for a resource that is no form."""
        raise NotImplementedError


def listed(**values: object) -> external_resources.ProviderResource | None:
    """A resource from what a provider says of it, by the names of the wire; None when unusable.

    The name is made fit to be shown; a timestamp or a URL that is none is left out.
    """
    values["name"] = external_resources.shown_name(str(values.get("name") or ""))
    while True:
        try:
            return external_resources.ProviderResource.model_validate(
                {key: value for key, value in values.items() if value is not None}
            )
        except ShapeError as error:
            wrong = {str(one["loc"][0]) for one in error.errors() if one["loc"]}
            optional = wrong - _NEEDED
            if wrong & _NEEDED or not optional:
                return None
            values = {key: value for key, value in values.items() if key not in optional}


_NEEDED = frozenset({"externalType", "externalId", "name", "surfaceKind", "capabilities"})

T = TypeVar("T")

_SAYS_NOTHING = frozenset(
    {
        ProblemKind.DENIED,
        ProblemKind.GONE,
        ProblemKind.INVALID,
        ProblemKind.UNSUPPORTED,
        ProblemKind.TOO_LARGE,
        ProblemKind.RATE_LIMITED,
    }
)
"""Problems of one question: the connection itself works."""


class AdapterWrapper(Adapter):
    """Another adapter, each call of which is made by `_asked`."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.listing_seconds = adapter.listing_seconds

    @abstractmethod
    async def _asked(
        self, access: ProviderAccess, call: Callable[[ProviderAccess], Awaitable[T]]
    ) -> T:
        """Make a call, with this access or another."""

    @override
    async def check(self, access: ProviderAccess) -> None:
        await self._asked(access, self._adapter.check)

    @override
    async def browse(self, access: ProviderAccess, listing: Listing) -> ResourcePage:
        return await self._asked(access, lambda fresh: self._adapter.browse(fresh, listing))

    @override
    async def describe(
        self, access: ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        return await self._asked(access, lambda fresh: self._adapter.describe(fresh, resource))

    @override
    async def watch(
        self,
        access: ProviderAccess,
        resource: external_resources.ProviderResource,
        mark: str | None,
    ) -> Watched:
        return await self._asked(access, lambda fresh: self._adapter.watch(fresh, resource, mark))

    @override
    async def read(
        self, access: ProviderAccess, resource: external_resources.ProviderResource
    ) -> ReadContent:
        return await self._asked(access, lambda fresh: self._adapter.read(fresh, resource))

    @override
    async def download(
        self,
        access: ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> Downloaded:
        return await self._asked(
            access, lambda fresh: self._adapter.download(fresh, resource, path, conditions)
        )

    @override
    async def form(
        self, access: ProviderAccess, resource: external_resources.ProviderResource
    ) -> HostedForm:
        return await self._asked(access, lambda fresh: self._adapter.form(fresh, resource))


class NotedAdapter(AdapterWrapper):
    """Another adapter, whose calls are noted as the health of their connections."""

    def __init__(self, adapter: Adapter, database: Database) -> None:
        super().__init__(adapter)
        self._database = database

    @override
    async def _asked(
        self, access: ProviderAccess, call: Callable[[ProviderAccess], Awaitable[T]]
    ) -> T:
        place = (self._database, access.workspace_id, access.connection_id)
        async with noted_call(*place, _reason):
            return await call(access)


def _reason(error: Exception) -> str | None:
    if not isinstance(error, ProviderProblem) or error.kind in _SAYS_NOTHING:
        return None
    return error.message
