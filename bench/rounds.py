"""How often a part of the benchmark repeats its measurement."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console

_console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Rounds:
    """Counts rounds, and says of each that it begins.

    With `seconds`, no round begins that would not end within them, judging by those before it; the
    first one always does.
    """

    most: int
    seconds: float | None = None

    def shared_by(self, count: int) -> "Rounds":
        """The rounds of each of several measurements that share the time."""
        return Rounds(self.most, None if self.seconds is None else self.seconds / count)

    def __iter__(self) -> Iterator[int]:
        started = time.monotonic()
        for number in range(self.most):
            taken = time.monotonic() - started
            if number and self.seconds is not None and taken * (number + 1) / number > self.seconds:
                return
            say(f"  round {number + 1} of at most {self.most}, {taken:.0f} s so far")
            yield number


def say(text: str) -> None:
    """Print a line of progress."""
    _console.print(text)
