"""The adapter of each provider; a provider adds its line here."""

from collections.abc import Mapping

from activities.authorizations.tokens import Tokens
from activities.providers import airtable, github, notion
from activities.providers.adapter import Adapter
from activities.providers.airtable import AirtableAdapter
from activities.providers.authorized import AuthorizedAdapter
from activities.providers.demo.adapter import DemoAdapter
from activities.providers.github import GithubAdapter
from activities.providers.google_drive import GoogleDriveAdapter
from activities.providers.http import HttpAdapter
from activities.providers.notion import NotionAdapter
from activities.providers.s3 import S3Adapter
from activities.providers.sftp import SftpAdapter
from activities.providers.webdav import WebdavAdapter
from models.sources.connections.providers import ProviderName
from runtime.outbound.client import OutboundClient
from runtime.provider_settings import ProviderSettings


def adapters_of(
    outbound: OutboundClient, tokens: Tokens, settings: Mapping[str, ProviderSettings]
) -> Mapping[ProviderName, Adapter]:
    """The adapters of a worker. Whatever leaves the machine does so by the client."""

    def at(name: ProviderName, api_url: str) -> str:
        known = settings.get(name.value)
        return api_url if known is None else known.api_url or api_url

    signed_in = {
        ProviderName.GITHUB: GithubAdapter(outbound, at(ProviderName.GITHUB, github.API)),
        ProviderName.NOTION: NotionAdapter(outbound, at(ProviderName.NOTION, notion.API)),
        ProviderName.AIRTABLE: AirtableAdapter(outbound, at(ProviderName.AIRTABLE, airtable.API)),
        ProviderName.GOOGLE_DRIVE: GoogleDriveAdapter(outbound, at(ProviderName.GOOGLE_DRIVE, "")),
    }
    return {
        ProviderName.DEMO: DemoAdapter(),
        ProviderName.HTTP: HttpAdapter(outbound),
        ProviderName.WEBDAV: WebdavAdapter(outbound),
        ProviderName.S3: S3Adapter(outbound),
        ProviderName.SFTP: SftpAdapter(outbound),
        **{name: AuthorizedAdapter(one, tokens) for name, one in signed_in.items()},
    }
