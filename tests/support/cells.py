"""Many small checks of one kind in one test: all are made, and each failure is named."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Cell = Callable[[object], AbstractContextManager[None]]


@contextmanager
def cells() -> Iterator[Cell]:
    """`with cells() as cell:`, then `with cell(name):` around each check; failures come last."""
    failures: list[Exception] = []

    @contextmanager
    def cell(name: object) -> Iterator[None]:
        try:
            yield
        except Exception as failure:  # noqa: BLE001  # they are raised together
            failure.add_note(f"This is {name}.")
            failures.append(failure)

    yield cell
    if failures:
        raise ExceptionGroup(f"{len(failures)} checks fail", failures)
