"""A prompt of pdb on the first line of the code that belongs to a node, as others call it."""

import inspect
import math
import pdb  # noqa: T100  # the debugger is what this is about
import sys
from bdb import BdbQuit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from typing_extensions import override

from activities.automation_runs.nodes.failures import failure_of
from runtime import bounded_processes

SKIPPED = ["temporalio.*", "asyncio.*", "concurrent.*", "contextlib", "types"]
"""Modules that stepping passes over."""

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True, slots=True)
class Options:
    """The way to execute a node once more; `rows` is a file that takes the place of its source."""

    scope: str | None = None
    live: bool = False
    debug: bool = False
    rows: Path | None = None


class Left(BaseException):  # no error: what catches errors is to let it pass
    """The person left the debugger; what would have followed is not done."""


class OwnCode(pdb.Pdb):
    """Stops where the code of a node begins, and shows the frames from there on alone.

    A node that fails before it comes to its own code stops where it failed.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        super().__init__(skip=SKIPPED)
        self._codes = {_code_of(function) for function in functions}
        self.has_stopped = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Stop in each of the functions that the block comes to; it raises Left when left."""
        frame = sys._getframe()  # as pdb itself begins
        while frame.f_code.co_flags & _SUSPENDED and frame.f_back:
            # Left at one of these, pdb would stop wherever an iteration ends.
            frame = frame.f_back
        self.reset()
        self.botframe = frame
        for code in self._codes:
            self.set_break(code.co_filename, _first_line(code), temporary=True)
        self.set_break(_FAILURE.co_filename, _first_line(_FAILURE))
        self._set_stopinfo(frame, None, -1)  # type: ignore[attr-defined]
        # A person who reads is no loop that stands still.
        patience, bounded_processes.LOOP_SECONDS = bounded_processes.LOOP_SECONDS, math.inf
        sys.settrace(self.trace_dispatch)
        try:
            yield
        finally:
            sys.settrace(None)
            bounded_processes.LOOP_SECONDS = patience

    @override
    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:
        try:
            return super().trace_dispatch(frame, event, arg)
        except BdbQuit:
            raise Left from None

    @override
    def user_line(self, frame: FrameType) -> None:
        if frame.f_code is not _FAILURE:
            self.has_stopped = True
            super().user_line(frame)
        elif self.has_stopped:
            self.set_continue()
        else:
            self.interaction(None, frame.f_locals["error"].__traceback__)

    @override
    def get_stack(
        self, f: FrameType | None, t: TracebackType | None
    ) -> tuple[list[tuple[FrameType, int]], int]:
        stack, current = super().get_stack(f, t)
        first = next((at for at, (frame, _) in enumerate(stack) if frame.f_code in self._codes), 0)
        return stack[first:], current - first


def _code_of(function: Callable[..., Any]) -> CodeType:
    while isinstance(function, partial):
        function = function.func
    found = getattr(function, "__func__", function)
    code: CodeType = found.__code__
    return code


_FAILURE = _code_of(failure_of)
"""The function that every failure of a node or a step passes."""


def _first_line(code: CodeType) -> int:
    """The line of the first statement, behind the signature and the docstring."""
    lines = (line for _, _, line in code.co_lines() if line is not None)
    return min((line for line in lines if line > code.co_firstlineno), default=code.co_firstlineno)
