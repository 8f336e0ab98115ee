"""Wrappers of an adapter: each of its calls passes through one method."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from activities.connection_health import noted_call
from activities.providers.adapter import (
    Adapter,
    Downloaded,
    Listing,
    ProblemKind,
    ProviderAccess,
    ProviderProblem,
    ReadContent,
    ResourcePage,
    Watched,
)
from models.sources.external_resources.rules.forms import HostedForm
from models.sources.external_resources.rules.resources import ProviderResource
from runtime.database import Database

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
        self, access: ProviderAccess, resource: ProviderResource
    ) -> ProviderResource:
        return await self._asked(access, lambda fresh: self._adapter.describe(fresh, resource))

    @override
    async def watch(
        self, access: ProviderAccess, resource: ProviderResource, mark: str | None
    ) -> Watched:
        return await self._asked(access, lambda fresh: self._adapter.watch(fresh, resource, mark))

    @override
    async def read(self, access: ProviderAccess, resource: ProviderResource) -> ReadContent:
        return await self._asked(access, lambda fresh: self._adapter.read(fresh, resource))

    @override
    async def download(
        self,
        access: ProviderAccess,
        resource: ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> Downloaded:
        return await self._asked(
            access, lambda fresh: self._adapter.download(fresh, resource, path, conditions)
        )

    @override
    async def form(self, access: ProviderAccess, resource: ProviderResource) -> HostedForm:
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
