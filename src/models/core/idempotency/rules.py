"""Rules of the `Idempotency-Key` (decisions C3)."""

from datetime import timedelta

from runtime.errors import InProgressError, PlatformError, ValidationError

HEADER = "Idempotency-Key"
WINDOW = timedelta(hours=24)
MAX_LENGTH = 255

_UNDECIDED = frozenset({400, 401, 403, 404, 408, 413, 415, 429})
"""Statuses of faults in a request or its caller, to be put right before the call is repeated."""


def read_key(values: list[bytes]) -> str | None:
    """The key a client sent, None without one; raises ValidationError for a malformed one."""
    if not values:
        return None
    if len(values) > 1:
        raise ValidationError.at(HEADER, "Send the header once.")
    value = values[0].strip(b" \t")
    if not 1 <= len(value) <= MAX_LENGTH or not all(0x20 <= byte < 0x7F for byte in value):
        raise ValidationError.at(HEADER, "The key is 1 to 255 printable ASCII characters.")
    return value.decode("ascii")


def is_kept(refusal: PlatformError) -> bool:
    """True when a refusal is the call's answer for the window: the state of things decided it."""
    if isinstance(refusal, InProgressError):
        return False
    return refusal.status < 500 and refusal.status not in _UNDECIDED
