"""Rules for sending to an endpoint and for giving it up (ADR 0057). Pure."""

from datetime import datetime, timedelta
from enum import StrEnum

from models.core.base import Id
from models.messages.deliveries.rules import Answer, DeliveryStatus

TEST = "webhook.test"
"""The type of the event that a test sends."""
OVERLAP = timedelta(hours=24)
"""The time for which the previous secret signs too, after a rotation."""
FAILING_FOR = timedelta(days=3)
"""An endpoint that has taken nothing for so long, though it was tried, is disabled."""
GONE = 410
"""The status by which a receiver says that it wants nothing more (RFC 9110, 15.5.11)."""

DISABLED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="endpoint_disabled",
    message="The endpoint was disabled or deleted.",
)


class DisabledReason(StrEnum):
    """The reason for which an endpoint is disabled."""

    MANUAL = "manual"
    GONE = "gone"
    FAILING = "failing"


def secret_place(endpoint_id: Id) -> str:
    """The place that the secrets of an endpoint are sealed for."""
    return f"webhook_endpoint|{endpoint_id}|secret"


def is_given_up(failing_since: datetime | None, now: datetime) -> bool:
    """True when an endpoint has failed for too long."""
    return failing_since is not None and now - failing_since >= FAILING_FOR
