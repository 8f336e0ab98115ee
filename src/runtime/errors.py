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
    """The input breaks a rule of its shape or of the resource it is meant for."""

    advice = "Correct what `details` names, each at its `path` in the body, then send it again."
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
    """The resource cannot do what was asked for: not every provider can be browsed."""

    advice = "Ask for something else; the message says why."
    tag = "ApiInvalid"
    code = "invalid"
    status = 400


class UnauthorizedError(PlatformError):
    """No key or session was shown, or one that is mistyped, expired or revoked."""

    advice = "Send `Authorization: Bearer` with a key of the workspace, or sign in again."
    tag = "ApiUnauthorized"
    code = "unauthorized"
    status = 401
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": "Bearer"}


class DeniedError(PlatformError):
    """The caller is known and may not do this: a scope of the key, the role, or access to the
    item is missing.
    """

    advice = "Ask for the scope that the message names, or for access to the item."
    tag = "ApiDenied"
    code = "denied"
    status = 403


class NotFoundError(PlatformError):
    """The thing does not exist, or the caller cannot see it: the two are never told apart."""

    advice = (
        "Look at the ids and at the workspace of the key. For a path that does not exist the "
        "message names the nearest."
    )
    tag = "ApiNotFound"
    code = "not_found"
    status = 404

    def __init__(self, noun: str = "item") -> None:
        super().__init__(f"The {noun} does not exist, or the key cannot see it.")


class MethodNotAllowedError(PlatformError):
    """The path exists, and not with this method."""

    advice = "Take one of the methods in `Allow`."
    tag = "ApiMethodNotAllowed"
    code = "method_not_allowed"
    status = 405
    headers: ClassVar[dict[str, str]] = {"Allow": ""}
    """Each error names the methods of its path."""


class RequestTimeoutError(PlatformError):
    """The request arrives too slowly, or not at all (RFC 9110, 15.5.9)."""

    retryable = True

    advice = "Send the request again."
    tag = "ApiRequestTimeout"
    code = "request_timeout"
    status = 408


class ConflictError(PlatformError):
    """The state of the resource does not allow it, or it was changed since it was read."""

    retryable = True

    advice = "Read the resource again and decide anew."
    tag = "ApiConflict"
    code = "conflict"
    status = 409


class RunError(PlatformError):
    """An automation cannot be run in the state it is in."""

    advice = "Publish and enable the automation, or test its draft."
    tag = "ApiRunError"
    code = "run_error"
    status = 409


class InProgressError(PlatformError):
    """The same call, by its `Idempotency-Key` or `clientMutationId`, is still under way, or the
    work takes longer than a request.
    """

    retryable = True

    advice = "Send the same call again after `Retry-After`: it answers with the result."
    tag = "ApiInProgress"
    code = "in_progress"
    status = 409
    headers: ClassVar[dict[str, str]] = {"Retry-After": "2"}


class PayloadTooLargeError(PlatformError):
    """The body is larger than the operation takes."""

    advice = "Send less at a time; files are uploaded by themselves."
    tag = "ApiPayloadTooLarge"
    code = "payload_too_large"
    status = 413


class UnsupportedMediaTypeError(PlatformError):
    """The `Content-Type` is not one that the operation takes."""

    advice = "Send JSON as `application/json`."
    tag = "ApiUnsupportedMediaType"
    code = "unsupported_media_type"
    status = 415


class ConflictingMutationError(PlatformError):
    """An `Idempotency-Key` or `clientMutationId` was used for another request before."""

    advice = "Take a new one for each request that is not a repetition."
    tag = "ApiConflictingMutation"
    code = "conflicting_mutation"
    status = 422


class UnsupportedError(PlatformError):
    """The platform, or the provider, cannot do this with such a resource."""

    advice = "Nothing to repeat: take another way."
    tag = "ApiUnsupported"
    code = "unsupported"
    status = 422


class RateLimitedError(PlatformError):
    """The key, or the address, asks more often than it may."""

    retryable = True

    advice = "Wait for `Retry-After`; the headers `X-RateLimit-…` tell what is left."
    tag = "ApiRateLimited"
    code = "rate_limited"
    status = 429
    headers: ClassVar[dict[str, str]] = {"Retry-After": "1"}


class InternalError(PlatformError):
    """The platform has a defect."""

    advice = "Send it again later; name `X-Request-Id` to whoever runs the platform."


class UpstreamError(PlatformError):
    """Something that the platform depends on, such as a provider, did not answer as it should."""

    retryable = True

    advice = "Send it again, each time after twice as long."
    tag = "ApiUpstreamError"
    code = "upstream_error"
    status = 502


class UnavailableError(PlatformError):
    """The platform cannot answer now, because its database is away or it is going down."""

    retryable = True

    advice = "Send it again after `Retry-After`."
    tag = "ApiUnavailable"
    code = "unavailable"
    status = 503
    headers: ClassVar[dict[str, str]] = {"Retry-After": "2"}


class StorageFullError(UnavailableError):
    """A disk of the platform has no room left: an operator has to make some."""

    def __init__(self, holder: str) -> None:
        super().__init__(
            f"The disk of the {holder} is full, so nothing was saved. Try again when the operators"
            " of this platform have made room."
        )
