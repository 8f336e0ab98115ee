"""The sign-in of a request through a connection of its workspace."""

from collections.abc import Mapping
from typing import NamedTuple

from models.core.base import Id
from models.sources.connections.configs import HttpConnection
from models.sources.connections.providers import ProviderName
from models.sources.connections.queries import Connected, open_connection
from runtime.crypto import KeyRing, UnreadableError
from runtime.outbound.authentication import AuthScheme, authentication
from runtime.outbound.turns import call_through
from runtime.outbound.urls import parse_url, same_origin
from runtime.work import Work


class ConnectionUseError(Exception):
    """A connection cannot be used for a request; `message` is for who configured it."""

    retryable = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


async def find_connected(
    work: Work, keys: KeyRing, workspace_id: Id, connection_id: Id
) -> Connected:
    """A connection with its credentials, for what is called from now on.

    Raises ConnectionUseError when it was deleted, or its credentials cannot be read any more.
    """
    try:
        connection = await open_connection(work, keys, workspace_id, connection_id)
    except UnreadableError:
        message = "The credentials of the connection cannot be read any more. Give them again."
        raise ConnectionUseError(message) from None
    if connection is None:
        raise ConnectionUseError("The connection was deleted.")
    call_through(connection_id)
    return connection


class SignIn(NamedTuple):
    """The sign-in of a request: `scheme` and `credential` are the arguments of `authentication`."""

    scheme: AuthScheme
    credential: str
    header_name: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        return authentication(self.scheme, self.credential, self.header_name)


async def sign_in(
    work: Work, keys: KeyRing, workspace_id: Id, connection_id: Id, url: str
) -> SignIn:
    """The sign-in of a connection at a URL.

    Raises ConnectionUseError when it was deleted, and for a URL of another origin, which its
    credentials were not given for. Raises what `parse_url` raises.
    """
    connection = await find_connected(work, keys, workspace_id, connection_id)
    if connection.provider is not ProviderName.HTTP:
        raise ConnectionUseError("The connection signs in at no URL: it is none of the kind HTTP.")
    config = HttpConnection.model_validate(connection.config)
    if not same_origin(parse_url(url), parse_url(config.base_url)):
        raise ConnectionUseError("The connection reaches another origin than the URL.")
    secret = connection.credentials.get("secret", "")
    if config.username is not None:
        secret = f"{config.username}:{secret}"
    return SignIn(config.auth, secret, config.header_name)
