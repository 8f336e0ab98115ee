"""The states of a delivery, what an attempt comes to, and when the next one follows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from models.core.lifecycle.rules import Lifecycle

MINUTE, HOUR = 60.0, 3_600.0


class DeliveryChannel(StrEnum):
    """The ways out of the platform."""

    PUSH = "push"
    """A notification to a push device."""
    MAIL = "mail"
    """A notification to the address of its user."""
    WEBHOOK = "webhook"
    """An event to the endpoint of a workspace."""


class CircuitState(StrEnum):
    """The state of a circuit: of the receiver of deliveries, or of an automation."""

    CLOSED = "closed"
    """Work starts as it comes."""
    OPEN = "open"
    """It keeps failing: work waits until the time of the next trial."""
    HALF_OPEN = "half_open"
    """One delivery or one run is a trial."""


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    UNDELIVERABLE = "undeliverable"
    """No one is there: the target is gone, or does not want it any more."""
    FAILED = "failed"
    """Refused for good, or not taken at any attempt."""
    CANCELLED = "cancelled"


_ENDS = frozenset(DeliveryStatus) - {DeliveryStatus.PENDING}
TRANSITIONS: Mapping[DeliveryStatus, frozenset[DeliveryStatus]] = {
    DeliveryStatus.PENDING: _ENDS,
    **dict.fromkeys((status for status in DeliveryStatus if status in _ENDS), frozenset()),
}
DELIVERY_LIFECYCLE = Lifecycle(TRANSITIONS)
OPEN_DELIVERY = DELIVERY_LIFECYCLE.open

PAUSES: Mapping[DeliveryChannel, Sequence[float]] = {
    DeliveryChannel.PUSH: (5, 30, 2 * MINUTE, 10 * MINUTE, HOUR, 4 * HOUR),
    DeliveryChannel.MAIL: (10, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR),
    DeliveryChannel.WEBHOOK: (
        5,
        5 * MINUTE,
        30 * MINUTE,
        *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24)),
    ),
}
"""Seconds between two attempts; after the last one it has failed."""

LONGEST_PAUSE = 24 * HOUR
"""A receiver that asks for more is asked again after this time."""
PATIENCE = 24 * HOUR
"""Time past its schedule for which a delivery is kept that waits behind others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of an attempt.

    `end` is None while another attempt may help. `status` is the receiver's own: of HTTP or SMTP.
    `message` is for people and holds no secret.
    """

    end: DeliveryStatus | None
    status: int | None = None
    code: str | None = None
    message: str | None = None
    retry_after: float | None = None


def next_pause(channel: DeliveryChannel, attempts: int, answer: Answer) -> float | None:
    """Seconds from the latest of `attempts` to the next one; None after the last.

    A receiver that says when it may be asked again is not asked before.
    """
    pauses = PAUSES[channel]
    if answer.end is not None or attempts > len(pauses):
        return None
    return max(pauses[attempts - 1], min(answer.retry_after or 0, LONGEST_PAUSE))


def kept_for(channel: DeliveryChannel) -> float:
    """Seconds from the beginning of a delivery to its end, however long it waited."""
    return sum(PAUSES[channel]) + PATIENCE


EXPIRED = Answer(
    end=DeliveryStatus.FAILED,
    code="expired",
    message="The delivery expired before the receiver accepted it.",
)
