"""The step that a process executes, told before it begins to who asks what the process died of."""

from collections.abc import Callable


def _nobody(_: str) -> None:
    pass


class _Announcer:
    announce: Callable[[str], None] = staticmethod(_nobody)


def announce(step: str) -> None:
    """Say that a step begins."""
    _Announcer.announce(step)


def listen(listener: Callable[[str], None]) -> None:
    _Announcer.announce = staticmethod(listener)
