"""The errors that the interface answers with (decisions C2), each with its status and code.

A rule that needs a more specific error subclasses one of these beside the rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that is wrong with an input: where (`data.price`) and what."""

    path: str
    message: str


class PlatformError(Exception):
    """A refusal with a class, a code, a status and a sentence for the person who reads it."""

    tag: ClassVar[str] = "ApiInternalError"
    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ValidationError(PlatformError):
    """The input breaks a rule of its shape or of the resource it is meant for."""

    tag = "ApiValidationError"
    code = "validation_error"
    status = 400
    details: tuple[Detail, ...] = ()

    def __init__(self, message: str, details: Sequence[Detail] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)

    @classmethod
    def at(cls, path: str, message: str) -> "ValidationError":
        """The error of one place in the input; the empty path is the whole of it."""
        where = f"{path}: " if path else ""
        return cls(f"{where}{message}", [Detail(path, message)])


class InvalidError(PlatformError):
    tag = "ApiInvalid"
    code = "invalid"
    status = 400


class UnauthorizedError(PlatformError):
    tag = "ApiUnauthorized"
    code = "unauthorized"
    status = 401
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": "Bearer"}


class DeniedError(PlatformError):
    tag = "ApiDenied"
    code = "denied"
    status = 403


class NotFoundError(PlatformError):
    """The thing does not exist, or the caller cannot see it: the two are never told apart."""

    tag = "ApiNotFound"
    code = "not_found"
    status = 404

    def __init__(self, noun: str = "item") -> None:
        super().__init__(f"The {noun} does not exist, or the key cannot see it.")


class MethodNotAllowedError(PlatformError):
    tag = "ApiMethodNotAllowed"
    code = "method_not_allowed"
    status = 405


class RequestTimeoutError(PlatformError):
    """The request arrives too slowly, or not at all (RFC 9110, 15.5.9)."""

    tag = "ApiRequestTimeout"
    code = "request_timeout"
    status = 408


class ConflictError(PlatformError):
    tag = "ApiConflict"
    code = "conflict"
    status = 409


class RunError(PlatformError):
    """An automation cannot be run in the state it is in."""

    tag = "ApiRunError"
    code = "run_error"
    status = 409


class InProgressError(PlatformError):
    tag = "ApiInProgress"
    code = "in_progress"
    status = 409
    headers: ClassVar[dict[str, str]] = {"Retry-After": "2"}


class PayloadTooLargeError(PlatformError):
    tag = "ApiPayloadTooLarge"
    code = "payload_too_large"
    status = 413


class UnsupportedMediaTypeError(PlatformError):
    tag = "ApiUnsupportedMediaType"
    code = "unsupported_media_type"
    status = 415


class ConflictingMutationError(PlatformError):
    tag = "ApiConflictingMutation"
    code = "conflicting_mutation"
    status = 422


class UnsupportedError(PlatformError):
    tag = "ApiUnsupported"
    code = "unsupported"
    status = 422


class RateLimitedError(PlatformError):
    tag = "ApiRateLimited"
    code = "rate_limited"
    status = 429
    headers: ClassVar[dict[str, str]] = {"Retry-After": "1"}


class InternalError(PlatformError):
    pass


class UpstreamError(PlatformError):
    tag = "ApiUpstreamError"
    code = "upstream_error"
    status = 502


class UnavailableError(PlatformError):
    tag = "ApiUnavailable"
    code = "unavailable"
    status = 503
    headers: ClassVar[dict[str, str]] = {"Retry-After": "2"}
