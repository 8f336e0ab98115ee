"""Adapters of providers that users sign in at: each call is made with a token in force."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

from typing_extensions import override

from activities.authorizations.token_endpoint import UnansweredError
from activities.authorizations.tokens import Tokens
from activities.connections import ConnectionUseError
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
from activities.providers.web import Web
from models.sources.authorizations.rules import ACCESS_TOKEN, is_stale
from models.sources.external_resources.rules.forms import HostedForm
from models.sources.external_resources.rules.resources import ProviderResource
from runtime.clock import utc_now
from runtime.outbound.authentication import authentication
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError

T = TypeVar("T")


class AuthorizedAdapter(Adapter):
    """Another adapter, whose calls are repeated once with a new token when theirs is rejected."""

    def __init__(self, adapter: Adapter, tokens: Tokens) -> None:
        self._adapter = adapter
        self._tokens = tokens

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

    async def _asked(
        self, access: ProviderAccess, call: Callable[[ProviderAccess], Awaitable[T]]
    ) -> T:
        token = access.credentials.get(ACCESS_TOKEN)
        if token is None:
            return await call(access)
        if is_stale(access.credentials, utc_now()):
            access = await self._renewed(access, None)
            token = access.credentials[ACCESS_TOKEN]
        try:
            return await call(access)
        except ProviderProblem as problem:
            if problem.kind is not ProblemKind.AUTH:
                raise
        return await call(await self._renewed(access, token))

    async def _renewed(self, access: ProviderAccess, rejected: str | None) -> ProviderAccess:
        try:
            connection = await self._tokens.connected(
                access.workspace_id, access.connection_id, rejected=rejected
            )
        except ConnectionUseError as error:
            raise ProviderProblem(ProblemKind.AUTH, error.message) from None
        except (OutboundError, UnansweredError):
            message = "The provider gives no new token at the moment."
            raise ProviderProblem(ProblemKind.UNAVAILABLE, message) from None
        return replace(access, credentials=connection.credentials)


class TokenAdapter(Adapter):
    """An adapter that asks one API by HTTP, with a token; `headers` are said beside it."""

    api_url: ClassVar[str]
    web: ClassVar[type[Web]] = Web
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, outbound: OutboundClient, api_url: str = "") -> None:
        self._outbound = outbound
        self._api_url = api_url or self.api_url

    def _web(self, access: ProviderAccess, api_url: str = "") -> Web:
        """Requests with the token that a user's authorization gave, or one that was given."""
        token = access.credentials.get(ACCESS_TOKEN) or access.credentials["token"]
        headers = {**authentication("bearer", token), **self.headers}
        return self.web(self._outbound, api_url or self._api_url, headers)
