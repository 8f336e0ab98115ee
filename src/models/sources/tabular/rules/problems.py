"""Why foreign rows could not be brought in (decisions C10, `errorKind`)."""

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


class SourceProblem(Exception):  # noqa: N818  # an outcome that people read, not a fault of code
    """A source that cannot be used as it is; `message` says what to change and holds no secret."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
