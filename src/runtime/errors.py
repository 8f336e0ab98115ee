"""The errors that the interface answers with, each with its status and code.

A rule that needs a more specific error subclasses one of these beside the rule.

See interface.md#error-codes.
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
    advice: ClassVar[str] = ""
    """The client's remedy, for the documentation."""
    retryable: bool = False
    """True when the same work, done again, may end otherwise. Every error of ours says so."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ValidationError(PlatformError):
    """The request is invalid for its schema or resource."""

    advice = "Fix the problems in `details`, each at its `path` in the body, and send it again."
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
    """The resource does not support the request, such as browsing some providers."""

    advice = "Read the message for the reason."
    tag = "ApiInvalid"
    code = "invalid"
    status = 400


class UnauthorizedError(PlatformError):
    """The API key or session is missing, invalid, expired or revoked."""

    advice = "Send `Authorization: Bearer` with a valid API key, or sign in again."
    tag = "ApiUnauthorized"
    code = "unauthorized"
    status = 401
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": "Bearer"}


class DeniedError(PlatformError):
    """The caller lacks a scope, the role, or access to the item."""

    advice = "Request the missing scope, or access to the item."
    tag = "ApiDenied"
    code = "denied"
    status = 403


class NotFoundError(PlatformError):
    """The resource does not exist, or the caller has no access to it."""

    advice = (
        "Check the ids, and the workspace of the key. For an unknown path, the message names the "
        "nearest."
    )
    tag = "ApiNotFound"
    code = "not_found"
    status = 404

    def __init__(self, resource: str = "item") -> None:
        super().__init__(f"The {resource} does not exist, or you do not have access to it.")


class MethodNotAllowedError(PlatformError):
    """The path does not support this method."""

    advice = "Use one of the methods in `Allow`."
    tag = "ApiMethodNotAllowed"
    code = "method_not_allowed"
    status = 405
    headers: ClassVar[dict[str, str]] = {"Allow": ""}
    """Each error names the methods of its path."""


class RequestTimeoutError(PlatformError):
    """The request arrived too slowly or incompletely (RFC 9110, 15.5.9)."""

    retryable = True

    advice = "Send the request again."
    tag = "ApiRequestTimeout"
    code = "request_timeout"
    status = 408


class ConflictError(PlatformError):
    """The state of the resource does not allow it, or it was changed since it was read."""

    retryable = True

    advice = "Read the resource again, then retry if needed."
    tag = "ApiConflict"
    code = "conflict"
    status = 409


class RunError(PlatformError):
    """The automation cannot be run in its current state."""

    advice = "Publish and enable the automation, or test its draft."
    tag = "ApiRunError"
    code = "run_error"
    status = 409


class InProgressError(PlatformError):
    """A request with the same `Idempotency-Key` or `clientMutationId` is in progress, or the work
    takes longer than a request.
    """

    retryable = True

    advice = "Send the same request again after `Retry-After` for the result."
    tag = "ApiInProgress"
    code = "in_progress"
    status = 409
    headers: ClassVar[dict[str, str]] = {"Retry-After": "2"}


class PayloadTooLargeError(PlatformError):
    """The body exceeds the limit of the operation."""

    advice = "Send less data per request. Upload files separately."
    tag = "ApiPayloadTooLarge"
    code = "payload_too_large"
    status = 413


class UnsupportedMediaTypeError(PlatformError):
    """The operation does not support the `Content-Type`."""

    advice = "Send JSON as `application/json`."
    tag = "ApiUnsupportedMediaType"
    code = "unsupported_media_type"
    status = 415


class ConflictingMutationError(PlatformError):
    """An `Idempotency-Key` or `clientMutationId` was used for another request before."""

    advice = "Use a new one for each request, except when repeating one."
    tag = "ApiConflictingMutation"
    code = "conflicting_mutation"
    status = 422


class UnsupportedError(PlatformError):
    """The platform or the provider does not support this for the resource."""

    advice = "Do not retry. Use another operation."
    tag = "ApiUnsupported"
    code = "unsupported"
    status = 422


class RateLimitedError(PlatformError):
    """The key or the IP address has reached its rate limit."""

    retryable = True

    advice = "Wait for `Retry-After`. The `X-RateLimit-…` headers show the remaining requests."
    tag = "ApiRateLimited"
    code = "rate_limited"
    status = 429
    headers: ClassVar[dict[str, str]] = {"Retry-After": "1"}


class InternalError(PlatformError):
    """The platform has a defect."""

    advice = "Try again later. If it persists, report the `X-Request-Id`."


class UpstreamError(PlatformError):
    """A service that the platform depends on, such as a provider, failed."""

    retryable = True

    advice = "Retry with exponential backoff."
    tag = "ApiUpstreamError"
    code = "upstream_error"
    status = 502


class UnavailableError(PlatformError):
    """The platform is unavailable, because its database is down or it is shutting down."""

    retryable = True

    advice = "Retry after `Retry-After`."
    tag = "ApiUnavailable"
    code = "unavailable"
    status = 503
    headers: ClassVar[dict[str, str]] = {"Retry-After": "2"}


class StorageFullError(UnavailableError):
    """A disk of the platform is full: an operator has to free space."""

    def __init__(self, holder: str) -> None:
        super().__init__(
            f"The disk of the {holder} is full, so nothing was saved. Try again when an operator of"
            " the platform has freed space."
        )
