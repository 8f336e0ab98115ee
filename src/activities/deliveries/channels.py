"""The work of a channel of deliveries; each registers one of these by its name."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from models.messages.deliveries.rows import DeliveryRow
from models.messages.deliveries.rules import Answer
from runtime.database import UnitOfWork

Parcel = TypeVar("Parcel")


class Channel(ABC, Generic[Parcel]):
    """A channel: the way its deliveries are sent."""

    @abstractmethod
    async def pack(self, work: UnitOfWork, delivery: DeliveryRow) -> Parcel | Answer:
        """The parcel to send, read inside the transaction that begins an attempt.

        An `Answer` instead ends the attempt without sending: the target is gone, say.
        """

    @abstractmethod
    async def send(self, parcel: Parcel) -> Answer:
        """Send it, outside of any transaction. Receivers may get the same parcel twice."""

    async def settle(self, work: UnitOfWork, delivery: DeliveryRow, answer: Answer) -> None:
        """Act on an answer, in the transaction that ends the attempt; mostly do nothing."""
        del work, delivery, answer
