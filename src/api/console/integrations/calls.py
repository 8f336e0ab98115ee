"""The outcomes of calls that a worker makes: a page asks for them again until they are there."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Generic, TypeVar

from runtime.errors import InProgressError, PlatformError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of a call, or why there is none; neither while it goes on."""

    value: T | None = None
    refusal: PlatformError | None = None

    @property
    def waits(self) -> bool:
        return self.value is None and self.refusal is None


async def outcome_of(result: Awaitable[T | None]) -> Outcome[T]:
    """The outcome as it is now. A refusal of the provider is a part of the page, not its status."""
    try:
        return Outcome(await result)
    except InProgressError:
        return Outcome()
    except PlatformError as refusal:
        return Outcome(refusal=refusal)
