"""Adapters of providers that users sign in at: each call is made with a token in force."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import ClassVar, TypeVar

from typing_extensions import override

from activities.authorizations.token_endpoint import UnansweredError
from activities.authorizations.tokens import Tokens
from activities.connections import ConnectionUseError
from activities.providers.adapter import (
    Adapter,
    ProblemKind,
    ProviderAccess,
    ProviderProblem,
)
from activities.providers.adapter_wrappers import AdapterWrapper
from activities.providers.web import Web
from models.sources.authorizations.rules import ACCESS_TOKEN, is_stale
from runtime.clock import utc_now
from runtime.outbound.authentication import authentication
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError

T = TypeVar("T")


class AuthorizedAdapter(AdapterWrapper):
    """Another adapter, whose calls are repeated once with a new token when theirs is rejected."""

    def __init__(self, adapter: Adapter, tokens: Tokens) -> None:
        super().__init__(adapter)
        self._tokens = tokens

    @override
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
