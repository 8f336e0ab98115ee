"""The headers of answers, as the OpenAPI document declares them."""

from collections.abc import Iterable, Sequence
from typing import Any

from api.kernel.operation import Operation
from runtime.errors import ConflictingMutationError, InProgressError, PlatformError


def _header(description: str, kind: str = "string", **options: object) -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}, **options}


REQUEST_ID = "X-Request-Id"
REPLAYED = "Idempotency-Replayed"
ENTITY_TAG = "ETag"
APPLIED = "Preference-Applied"
RATE_LIMIT = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")

HEADERS: dict[str, dict[str, Any]] = {
    REQUEST_ID: _header("Names the request in the logs of the platform.", required=True),
    REPLAYED: _header("`true`: the answer of an earlier call with the same `Idempotency-Key`."),
    "Retry-After": _header("After so many seconds the call is worth repeating.", "integer"),
    ENTITY_TAG: _header("Names this content; `If-None-Match` asks whether it is still the same."),
    "WWW-Authenticate": _header("The scheme of credentials: `Bearer`."),
    APPLIED: _header("The preference of `Prefer` that was applied, such as `wait=30`."),
    RATE_LIMIT[0]: _header("The calls that the caller may make at once.", "integer"),
    RATE_LIMIT[1]: _header("The calls that are left of them.", "integer"),
    RATE_LIMIT[2]: _header("The seconds until all of them are there again.", "integer"),
}
"""The components; an answer refers to those it may have."""

_REPEATED = (InProgressError.code, ConflictingMutationError.code)
"""Only an operation that takes an `Idempotency-Key` refuses so by itself."""


def of_success(operation: Operation, statuses: Iterable[int | str]) -> dict[str, Any]:
    """The headers of what an operation answers when it succeeds, with one of these statuses."""
    names = [REQUEST_ID]
    if operation.access.idempotent:
        names.append(REPLAYED)
    if operation.access.prefers:
        names.append(APPLIED)
    if 304 in statuses:
        names.append(ENTITY_TAG)
    if operation.access.credential != "none":
        names += RATE_LIMIT
    return _references(names)


def of_refusals(refusals: Sequence[type[PlatformError]]) -> dict[str, Any]:
    """The headers of refusals that have one status."""
    own = {name for refusal in refusals for name in refusal.headers}
    if any(refusal.code in _REPEATED for refusal in refusals):
        own.add(REPLAYED)
    return _references([REQUEST_ID, *sorted(own), *RATE_LIMIT])


def _references(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
