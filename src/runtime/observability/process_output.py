"""Lines of JSON in place of all that a process and its children write besides its log.

It imports nothing that takes time, for it begins before anything else can fail.
"""

import io
import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from types import TracebackType
from typing import TextIO

from typing_extensions import override

_FORMAT = "WORKSPACE_LOG_FORMAT"


def take_over() -> None:
    """Write everything that this process prints, warns of, or ends with as JSON.

    A process whose log is for a console, or that has a terminal, is left as it is.
    """
    if os.environ.get(_FORMAT) == "console" or sys.stderr.isatty():
        return
    real = sys.stderr
    sys.stdout, sys.stderr = Lines(real, "stdout", "info"), Lines(real, "stderr", "error")
    logging.captureWarnings(capture=True)
    sys.excepthook = _on_exception
    sys.unraisablehook = _on_unraisable
    threading.excepthook = _on_thread


def is_taken_over() -> bool:
    """True when lines of this process become JSON."""
    return isinstance(sys.stderr, Lines)


def real_stderr() -> TextIO:
    """The stream that lines are written to."""
    return sys.stderr.real if isinstance(sys.stderr, Lines) else sys.stderr


class Lines(io.TextIOBase):
    """A text stream each of whose lines becomes one of JSON, unless it is one already."""

    def __init__(self, real: TextIO, name: str, level: str) -> None:
        self.real = real
        self._name = name
        self._level = level
        self._begun = ""
        self._lock = threading.RLock()

    @override
    def writable(self) -> bool:
        return True

    @override
    def fileno(self) -> int:
        return self.real.fileno()

    @override
    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            for line in lines:
                self._put(line)
        return len(text)

    @override
    def flush(self) -> None:
        with self._lock:
            begun, self._begun = self._begun, ""
            self._put(begun)
            self.real.flush()

    def _put(self, line: str) -> None:
        if line.strip():
            self.real.write(as_json(line, self._name, self._level) + "\n")


def as_json(line: str, name: str, level: str) -> str:
    """The line itself where it is an object of JSON, else one that holds it."""
    if line.startswith("{"):
        try:
            if isinstance(json.loads(line), dict):
                return line
        except ValueError:
            pass
    return _event(line.rstrip(), name, level)


def _event(event: str, name: str, level: str, **facts: object) -> str:
    from runtime.observability.logs import redact  # noqa: PLC0415  # takes time, and is seldom needed

    moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    whole = {"event": event, **facts, "level": level, "logger": name, "timestamp": moment}
    return json.dumps(redact(None, "", whole), default=str)


def tell_failure(event: str, error: BaseException) -> None:
    """Write one line about an error that ends something."""
    try:
        from runtime.observability.logs import describe  # noqa: PLC0415  # the same

        facts = describe(error)
    except ImportError:
        stack = "".join(traceback.format_tb(error.__traceback__))
        facts = {"error_type": type(error).__name__, "stack": stack}
    real_stderr().write(_event(event, "process", "critical", **facts) + "\n")
    real_stderr().flush()


def _on_exception(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        tell_failure("the process ends with an error", error)


def _on_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None:
        tell_failure("a thread ends with an error", failed.exc_value)


def _on_unraisable(failed: "sys.UnraisableHookArgs") -> None:
    if failed.exc_value is not None:
        tell_failure(failed.err_msg or "an error was ignored", failed.exc_value)


@cache
def child_output() -> int:
    """The number of a file to which children write; their lines become part of our log.

    A child that is bounded in memory, or forked, brings no log of its own along. Where the log is
    for a console its lines are left as they are.
    """
    if not is_taken_over():
        return 2
    source, sink = os.pipe()
    real = os.fdopen(os.dup(2), "w", buffering=1)
    reader = threading.Thread(target=_pass_on, args=(source, real), daemon=True)
    reader.start()
    return sink


def _pass_on(source: int, real: TextIO) -> None:
    with os.fdopen(source, errors="replace") as lines:
        for line in lines:
            if line.strip():
                real.write(as_json(line.rstrip("\n"), "child", "error") + "\n")


_swapping = threading.Lock()


@contextmanager
def children_written_on() -> Iterator[None]:
    """Let processes started in this block inherit `child_output` in place of our own streams.

    For starts that name no streams. Output of this process takes the same way in the block.
    """
    if not is_taken_over():
        yield
        return
    sink = child_output()
    with _swapping:
        own = [os.dup(number) for number in (1, 2)]
        try:
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            yield
        finally:
            for number, saved in zip((1, 2), own, strict=True):
                os.dup2(saved, number)
                os.close(saved)
