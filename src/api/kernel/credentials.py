"""Reads the `Authorization` header (RFC 6750); whose credential it is, `authentication` finds."""

from collections.abc import Iterable
from dataclasses import dataclass

from models.people.api_keys.rules import PREFIX, is_well_formed
from runtime.crypto import fingerprint
from runtime.errors import UnauthorizedError

_MAX_TOKEN = 8192


@dataclass(frozen=True, slots=True)
class KeyToken:
    """A well-formed API key."""

    token: str

    def caller_name(self) -> bytes:
        """A name for the caller that is no secret."""
        return fingerprint(self.token.encode())


@dataclass(frozen=True, slots=True)
class SessionToken:
    """Something that may be a session's JWT."""

    token: str


def unauthorized() -> UnauthorizedError:
    """The one answer to every credential that does not let its bearer in."""
    return UnauthorizedError(
        "The credential is missing, malformed, unknown, expired or revoked;"
        " send Authorization: Bearer <API key>."
    )


def read_credential(headers: Iterable[tuple[bytes, bytes]]) -> KeyToken | SessionToken:
    """The bearer token of the only `Authorization` header; raises UnauthorizedError."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        raise unauthorized()
    scheme, _, rest = values[0].partition(b" ")
    if scheme.lower() != b"bearer" or not rest.isascii() or len(rest) > _MAX_TOKEN:
        raise unauthorized()
    token = rest.decode("ascii")
    if token.startswith(PREFIX):
        if not is_well_formed(token):
            raise unauthorized()
        return KeyToken(token)
    if token.count(".") != 2:
        raise unauthorized()
    return SessionToken(token)
