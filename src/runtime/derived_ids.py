"""Identifiers that follow from a business key."""

import uuid

# The namespace of every derived id; changing it would orphan deduplication keys.
_NAMESPACE = uuid.UUID("6f6a9f0e-52a5-5cb4-9f5e-0d2c6f3b7a11")


def derived_id(*parts: object) -> uuid.UUID:
    """The UUIDv5 that the same parts always give, so that a repeated request makes one entity."""
    return uuid.uuid5(_NAMESPACE, "\x1f".join(str(part) for part in parts))
