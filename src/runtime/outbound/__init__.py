"""Outbound HTTP for the whole platform; nothing else may open a connection to a user's URL."""

from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError
from runtime.outbound.messages import OutboundRequest, OutboundResponse
from runtime.outbound.policy import OutboundPolicy
from runtime.outbound.urls import redacted_url

__all__ = [
    "OutboundClient",
    "OutboundError",
    "OutboundPolicy",
    "OutboundRequest",
    "OutboundResponse",
    "redacted_url",
]
