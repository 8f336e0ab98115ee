"""The adapter of each provider; a provider adds its line here."""

import asyncio
from collections.abc import Callable, Mapping

from activities.authorizations import Tokens
from activities.providers import airtable, github, notion
from activities.providers.adapter import Adapter
from activities.providers.airtable import AirtableAdapter
from activities.providers.demo import DemoAdapter
from activities.providers.github import GithubAdapter
from activities.providers.google_drive import GoogleDriveAdapter
from activities.providers.http import HttpAdapter
from activities.providers.notion import NotionAdapter
from activities.providers.web import AuthorizedAdapter
from activities.providers.webdav import WebdavAdapter
from models.sources.connections.providers import ProviderName
from runtime.configuration.sections import ProviderSettings
from runtime.outbound.client import OutboundClient


class Adapters:
    """The adapters of a worker, each made in a thread when it is needed first.

    The libraries of some take long to import, and few workers ever need them.
    """

    def __init__(self, factories: Mapping[ProviderName, Callable[[], Adapter]]) -> None:
        self._factories = factories
        self._made: dict[ProviderName, Adapter] = {}

    async def find(self, name: ProviderName) -> Adapter | None:
        """The adapter of a provider, or nothing for one that has no resources."""
        if name in self._factories and name not in self._made:
            self._made[name] = await asyncio.to_thread(self._factories[name])
        return self._made.get(name)


def adapters_of(
    outbound: OutboundClient, tokens: Tokens, settings: Mapping[str, ProviderSettings]
) -> Adapters:
    """The adapters of a worker. Every call of another server uses the client."""

    def signed_in(
        make: Callable[[OutboundClient, str], Adapter], name: ProviderName, api_url: str = ""
    ) -> Callable[[], Adapter]:
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
            ProviderName.GITHUB: signed_in(GithubAdapter, ProviderName.GITHUB, github.API),
            ProviderName.NOTION: signed_in(NotionAdapter, ProviderName.NOTION, notion.API),
            ProviderName.AIRTABLE: signed_in(AirtableAdapter, ProviderName.AIRTABLE, airtable.API),
            ProviderName.GOOGLE_DRIVE: signed_in(GoogleDriveAdapter, ProviderName.GOOGLE_DRIVE),
        }
    )


def _s3(outbound: OutboundClient) -> Adapter:
    from activities.providers.s3 import S3Adapter  # noqa: PLC0415  # botocore

    return S3Adapter(outbound)


def _sftp(outbound: OutboundClient) -> Adapter:
    from activities.providers.sftp import SftpAdapter  # noqa: PLC0415  # asyncssh

    return SftpAdapter(outbound)
