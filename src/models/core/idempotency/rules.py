"""What an `Idempotency-Key` may be (decisions C3)."""

from datetime import timedelta

from runtime.errors import ValidationError

HEADER = "Idempotency-Key"
WINDOW = timedelta(hours=24)
MAX_LENGTH = 255


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
