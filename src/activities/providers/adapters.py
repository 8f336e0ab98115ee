"""The adapter of each provider, where a provider adds its line, and calls in the name of a user.

A call has rights before, bounds around, refusals after.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from activities.connections import Tokens
from activities.providers import adapter as provider_adapter
from activities.providers import airtable, github, notion
from activities.providers.airtable import AirtableAdapter
from activities.providers.demo import DemoAdapter
from activities.providers.google_drive import GoogleDriveAdapter
from activities.providers.http import HttpAdapter
from activities.providers.web import AuthorizedAdapter
from activities.providers.webdav import WebdavAdapter
from activities.sources.fetchers import FetchedResource, ResourceReader, WantedResource
from models.core.access.rules import Actor
from models.core.base import Id
from models.sources.connections import store as connections
from models.sources.connections.providers import ConnectionDetail, ProviderName
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.tabular.rules.options import ErrorKind, SourceProblem, TableFormat, format_named
from runtime import errors
from runtime.configuration.sections import ProviderSettings
from runtime.crypto import KeyRing, UnreadableError
from runtime.database import Database, UnitOfWork
from runtime.outbound.client import OutboundClient, call_through


class Adapters:
    """The adapters of a worker, each made in a thread when it is needed first.

    The libraries of some take long to import, and few workers ever need them.
    """

    def __init__(
        self, factories: Mapping[ProviderName, Callable[[], provider_adapter.Adapter]]
    ) -> None:
        self._factories = factories
        self._made: dict[ProviderName, provider_adapter.Adapter] = {}

    async def find(self, name: ProviderName) -> provider_adapter.Adapter | None:
        """The adapter of a provider, or nothing for one that has no resources."""
        if name in self._factories and name not in self._made:
            self._made[name] = await asyncio.to_thread(self._factories[name])
        return self._made.get(name)


def adapters_of(
    outbound: OutboundClient, tokens: Tokens, settings: Mapping[str, ProviderSettings]
) -> Adapters:
    """The adapters of a worker. Every call of another server uses the client."""

    def signed_in(
        make: Callable[[OutboundClient, str], provider_adapter.Adapter],
        name: ProviderName,
        api_url: str = "",
    ) -> Callable[[], provider_adapter.Adapter]:
        known = settings.get(name.value)
        url = api_url if known is None else known.api_url or api_url
        return lambda: AuthorizedAdapter(make(outbound, url), tokens)

    return Adapters(
        {
            ProviderName.DEMO: DemoAdapter,
            ProviderName.HTTP: lambda: HttpAdapter(outbound),
            ProviderName.WEBDAV: lambda: WebdavAdapter(outbound),
            ProviderName.S3: lambda: _s3(outbound),
            ProviderName.SFTP: lambda: _sftp(outbound),
            ProviderName.GITHUB: signed_in(github.GithubAdapter, ProviderName.GITHUB, github.API),
            ProviderName.NOTION: signed_in(notion.NotionAdapter, ProviderName.NOTION, notion.API),
            ProviderName.AIRTABLE: signed_in(AirtableAdapter, ProviderName.AIRTABLE, airtable.API),
            ProviderName.GOOGLE_DRIVE: signed_in(GoogleDriveAdapter, ProviderName.GOOGLE_DRIVE),
        }
    )


def _s3(outbound: OutboundClient) -> provider_adapter.Adapter:
    from activities.providers.s3 import S3Adapter  # noqa: PLC0415  # botocore

    return S3Adapter(outbound)


def _sftp(outbound: OutboundClient) -> provider_adapter.Adapter:
    from activities.providers.sftp import SftpAdapter  # noqa: PLC0415  # asyncssh

    return SftpAdapter(outbound)


CALL_SECONDS = 25.0
"""Seconds of one call of a provider: a client that waits is answered within half a minute."""

T = TypeVar("T")

_REFUSALS: Mapping[provider_adapter.ProblemKind, type[errors.PlatformError]] = {
    provider_adapter.ProblemKind.DENIED: errors.DeniedError,
    provider_adapter.ProblemKind.INVALID: errors.ValidationError,
    provider_adapter.ProblemKind.UNSUPPORTED: errors.UnsupportedError,
    provider_adapter.ProblemKind.TOO_LARGE: errors.UnsupportedError,
}


@dataclass(frozen=True, slots=True)
class Reached:
    """The adapter of a connection, and how it uses the connection."""

    adapter: provider_adapter.Adapter
    access: provider_adapter.ProviderAccess


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """A connection that an actor may use now, and the adapter of its provider."""

    detail: ConnectionDetail
    adapter: provider_adapter.Adapter
    access: provider_adapter.ProviderAccess


class Providers:
    """The adapters of a worker, and the keys that open connections."""

    def __init__(self, database: Database, keys: KeyRing, adapters: Adapters) -> None:
        self._database = database
        self._keys = keys
        self._adapters = adapters

    async def open(
        self, work: UnitOfWork, actor: Actor, connection_id: Id, *, seen: bool = True
    ) -> OpenConnection:
        """Open a connection for a call in the name of an actor, by its present rights.

        Unless `seen`, a member with access to it configured it earlier (ADR 0037).

        Raises NotFoundError for one that was deleted or that the actor cannot see, FeatureOffError,
        UnsupportedError for a provider that has no resources, and UpstreamError for credentials
        that cannot be read any more.
        """
        find = connections.get_connection if seen else connections.named_connection
        found = await find(work, actor, connection_id)
        reached = await self.reach(work, actor.workspace_id, actor.user_id, connection_id)
        return OpenConnection(found, reached.adapter, reached.access)

    async def reach(
        self, work: UnitOfWork, workspace_id: Id, user_id: Id | None, connection_id: Id
    ) -> Reached:
        """Open a connection that a member with access to it configured earlier (ADR 0037)."""
        try:
            connection = await connections.open_connection(
                work, self._keys, workspace_id, connection_id
            )
        except UnreadableError:
            message = "The credentials of the connection can no longer be read. Enter them again."
            raise errors.UpstreamError(message) from None
        if connection is None:
            raise errors.NotFoundError("connection")
        await connections.require_feature(work, workspace_id, connection.provider)
        adapter = await self._adapters.find(connection.provider)
        if adapter is None:
            raise errors.UnsupportedError(
                f"A connection to {connection.provider.value} has no resources."
            )
        call_through(connection_id)
        access = provider_adapter.ProviderAccess(
            workspace_id, connection_id, user_id, connection.config, connection.credentials
        )
        return Reached(provider_adapter.NotedAdapter(adapter, self._database), access)


async def in_time(call: Awaitable[T], seconds: float = CALL_SECONDS) -> T:
    """The answer a provider gives in time. Raises ProviderProblem."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        message = f"The provider timed out after {seconds:g} seconds."
        raise provider_adapter.ProviderProblem(
            provider_adapter.ProblemKind.TIMEOUT, message
        ) from None


def refusal_for(problem: provider_adapter.ProviderProblem) -> errors.PlatformError:
    """The refusal by which a problem of a provider is answered to the caller."""
    if problem.kind is provider_adapter.ProblemKind.GONE:
        return errors.NotFoundError("resource")
    message = problem.message
    if problem.retry_after is not None:
        message = f"{message} Try again in {problem.retry_after:.0f} seconds."
    return _REFUSALS.get(problem.kind, errors.UpstreamError)(message)


DOWNLOAD_SECONDS = 300.0
"""Seconds of one download."""

_KINDS = {
    provider_adapter.ProblemKind.AUTH: ErrorKind.AUTH,
    provider_adapter.ProblemKind.DENIED: ErrorKind.AUTH,
    provider_adapter.ProblemKind.TIMEOUT: ErrorKind.TIMEOUT,
    provider_adapter.ProblemKind.TOO_LARGE: ErrorKind.TOO_LARGE,
}
_FINAL = frozenset(
    {
        provider_adapter.ProblemKind.GONE,
        provider_adapter.ProblemKind.INVALID,
        provider_adapter.ProblemKind.UNSUPPORTED,
        provider_adapter.ProblemKind.MALFORMED,
    }
)


class ProviderResources(ResourceReader):
    """Downloads a resource through its connection, in the name of the user who imports the rows."""

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    @override
    async def fetch(self, request: WantedResource, path: Path) -> FetchedResource:
        async with self._database.transaction() as work:
            try:
                reached = await self._providers.reach(
                    work, request.workspace_id, request.user_id, request.connection_id
                )
            except errors.PlatformError as error:
                raise SourceProblem(ErrorKind.AUTH, error.message) from error
        named = ProviderResource.model_validate(request.resource)
        adapter, access = reached.adapter, reached.access
        try:
            resource = await in_time(adapter.describe(access, named))
            download = await in_time(
                adapter.download(access, resource, path, request.conditions), DOWNLOAD_SECONDS
            )
        except provider_adapter.ProviderProblem as problem:
            kind = _KINDS.get(problem.kind, ErrorKind.FETCH)
            raise SourceProblem(
                kind,
                problem.message,
                final=problem.kind in _FINAL,
                retry_after=problem.retry_after,
            ) from problem
        format_ = format_named(download.name, download.mime_type)
        if format_ is None and not download.unchanged:
            message = f"The resource is not a table: its type is {download.mime_type}."
            raise SourceProblem(ErrorKind.PARSE, message)
        return FetchedResource(format_ or TableFormat.CSV, download.validators, download.unchanged)
