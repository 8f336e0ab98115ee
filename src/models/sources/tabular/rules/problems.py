"""The reasons why foreign rows could not be brought in (interface.md#data-source-run-states)."""

from enum import StrEnum


class ErrorKind(StrEnum):
    FETCH = "fetch"
    AUTH = "auth"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    PARSE = "parse"
    MAPPING = "mapping"
    WRITE = "write"
    GUARD = "guard"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


RETRIED = frozenset({ErrorKind.FETCH, ErrorKind.TIMEOUT})
"""Kinds of problems that another attempt may not meet."""


class SourceProblem(Exception):  # noqa: N818  # an outcome that people read, not a fault of code
    """A source that cannot be used as it is; `message` says what to change and holds no secret.

    A `final` one is met by every other attempt, too. `retry_after` are the seconds that the source
    asks to be left alone.
    """

    retryable: bool = False

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        final: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = kind in RETRIED and not final
        self.retry_after = retry_after
