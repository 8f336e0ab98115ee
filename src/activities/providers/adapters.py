"""The adapter of each provider; a provider adds its line here."""

from collections.abc import Mapping

from activities.providers.adapter import Adapter
from activities.providers.demo.adapter import DemoAdapter
from activities.providers.http import HttpAdapter
from activities.providers.s3 import S3Adapter
from activities.providers.sftp import SftpAdapter
from activities.providers.webdav import WebdavAdapter
from models.sources.connections.providers import ProviderName
from runtime.outbound.client import OutboundClient


def adapters_of(outbound: OutboundClient) -> Mapping[ProviderName, Adapter]:
    """The adapters of a worker. Whatever leaves the machine does so by the client."""
    return {
        ProviderName.DEMO: DemoAdapter(),
        ProviderName.HTTP: HttpAdapter(outbound),
        ProviderName.WEBDAV: WebdavAdapter(outbound),
        ProviderName.S3: S3Adapter(outbound),
        ProviderName.SFTP: SftpAdapter(outbound),
    }
