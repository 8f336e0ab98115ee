"""The precondition a client may put on a change of something that counts its versions (C1)."""

import re

from runtime.errors import ValidationError

_VERSION = re.compile(r'"?([1-9][0-9]{0,8})"?')


def expected_version(header: str | None) -> int | None:
    """The version `If-Match` names, bare or in quotes; None for no condition or `*`.

    Raises `ValidationError` for anything else: an unreadable condition must not be skipped.
    """
    if header is None or header.strip() == "*":
        return None
    found = _VERSION.fullmatch(header.strip())
    if found is None:
        raise ValidationError.at("If-Match", "must be the version that was read")
    return int(found[1])
