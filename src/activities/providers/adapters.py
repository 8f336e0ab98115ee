"""The adapter of each provider; a provider adds its line here."""

from collections.abc import Mapping

from activities.providers.adapter import Adapter
from activities.providers.demo.adapter import DemoAdapter
from models.sources.connections.providers import ProviderName
from runtime.outbound.client import OutboundClient


def adapters_of(outbound: OutboundClient) -> Mapping[ProviderName, Adapter]:
    """The adapters of a worker. Whatever leaves the machine does so by the client."""
    del outbound  # the demo provider is in memory
    return {ProviderName.DEMO: DemoAdapter()}
