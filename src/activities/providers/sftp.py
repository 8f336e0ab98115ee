"""The adapter of SSH servers (SFTP), by asyncssh."""

import asyncio
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import asyncssh
from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers.web import no_such_resource
from models.sources.connections.providers import SftpConnection
from models.sources.external_resources.rules import resources as external_resources
from runtime.clock import wire_timestamp
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError

LOGIN_SECONDS = 10
_PIECE = 256 * 1024

_Attributes = asyncssh.SFTPAttrs


class SftpAdapter(adapter.Adapter):
    """Folders and files below a directory. Links are not followed: they may lead anywhere."""

    listing_seconds = contents.LISTING_SECONDS

    def __init__(self, outbound: OutboundClient) -> None:
        self._outbound = outbound

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        async with self._session(access) as session:
            await session.found("")

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        parent = contents.checked_path(listing.parent_external_id)
        page = contents.FirstNames[_Attributes](listing)
        async with self._session(access) as session:
            async for name, attributes in session.children(parent):
                kind = _type_of(attributes)
                if kind is not None:
                    page.take(name, kind, attributes)
        below = f"{parent}/" if parent else ""
        return page.page(lambda name, one: _resource(f"{below}{name}", one))

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        path = contents.checked_path(resource.external_id)
        async with self._session(access) as session:
            made = _resource(path, await session.found(path))
        if made is None:
            raise no_such_resource()
        return made

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        mime_type = contents.media_type(resource.name, resource.mime_type)
        if resource.external_type == "folder" or not contents.is_text(mime_type):
            return contents.link_to(resource)
        path = contents.checked_path(resource.external_id)
        async with self._session(access) as session:
            await session.found(path)
            content = b"".join(
                [piece async for piece in session.pieces(path, adapter.MAX_READ_BYTES)]
            )
        return contents.content_of(resource, mime_type, content.decode(errors="replace"))

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        place, mime_type = (
            contents.checked_path(resource.external_id),
            contents.media_type(resource.name),
        )
        async with self._session(access) as session:
            validators = {"revision": _revision(await session.found(place))}
            if conditions == validators:
                return adapter.Downloaded(resource.name, mime_type, validators, unchanged=True)
            with await asyncio.to_thread(path.open, "wb") as file:
                async for piece in session.pieces(place, adapter.MAX_DOWNLOAD_BYTES):
                    await asyncio.to_thread(file.write, piece)
        return adapter.Downloaded(resource.name, mime_type, validators)

    @asynccontextmanager
    async def _session(self, access: adapter.ProviderAccess) -> AsyncIterator["_Session"]:
        config = SftpConnection.model_validate(access.config)
        try:
            async with (
                self._outbound.turn(config.host),
                await self._connected(config, access.credentials["secret"]) as connection,
                connection.start_sftp_client() as client,
            ):
                yield _Session(client, await client.realpath(config.directory))
        except OutboundError as error:
            kind = (
                adapter.ProblemKind.UNAVAILABLE if error.retryable else adapter.ProblemKind.INVALID
            )
            raise adapter.ProviderProblem(kind, error.message) from None
        except (asyncssh.Error, OSError, EOFError) as error:
            raise _problem(error) from None

    async def _connected(self, config: SftpConnection, secret: str) -> asyncssh.SSHClientConnection:
        """A connection to the judged address of a server that shows the pinned key."""
        pinned = _read_key(config.host_key)
        keys = [_private(secret)] if config.auth == "key" else None
        addresses = await self._outbound.addresses(config.host, config.port)
        for address in addresses[:-1]:
            # One address of several may be down; the error of the last one is reported.
            with suppress(OSError, TimeoutError):
                return await _login(str(address), config, pinned, keys, secret)
        return await _login(str(addresses[-1]), config, pinned, keys, secret)


async def _login(
    address: str,
    config: SftpConnection,
    pinned: asyncssh.SSHKey,
    keys: list[asyncssh.SSHKey] | None,
    secret: str,
) -> asyncssh.SSHClientConnection:
    """A session at an address that was judged: the name may lead elsewhere by now."""
    return await asyncssh.connect(
        address,
        config.port,
        # Nothing of this machine: no configuration, no agent, no keys, no proxy.
        config=None,
        agent_path=None,
        client_keys=keys,
        known_hosts=([pinned], [], []),
        username=config.username,
        password=secret if config.auth == "password" else None,
        # Some servers ask for a password only by keyboard-interactive.
        preferred_auth="publickey" if keys else "password,keyboard-interactive",
        gss_host=None,
        connect_timeout=LOGIN_SECONDS,
        login_timeout=LOGIN_SECONDS,
        keepalive_interval=10,
    )


class _Session:
    """One open session; `base` is the directory that resources are below."""

    def __init__(self, client: asyncssh.SFTPClient, base: bytes | str) -> None:
        self._client = client
        self._base = str(base).rstrip("/")

    def _place(self, path: str) -> str:
        return f"{self._base}/{path}".rstrip("/") or "/"

    async def found(self, path: str) -> _Attributes:
        """The attributes at a path that no link is part of. Raises what asyncssh raises."""
        place = self._place(path)
        # A link in the path could lead out of the directory of the connection.
        if str(await self._client.realpath(place)) != place:
            raise no_such_resource()
        return await self._client.lstat(place)

    async def children(self, path: str) -> AsyncIterator[tuple[str, _Attributes]]:
        await self.found(path)
        async for entry in self._client.scandir(self._place(path)):
            name = str(entry.filename)
            if name not in {".", ".."} and "/" not in name and "\\" not in name:
                yield name, entry.attrs

    async def pieces(self, path: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file. Raises ProviderProblem beyond the limit."""
        received = 0
        async with self._client.open(self._place(path), "rb") as file:
            while piece := await _read(file):
                received += len(piece)
                if received > limit:
                    message = f"The file is larger than {limit} bytes."
                    raise adapter.ProviderProblem(adapter.ProblemKind.TOO_LARGE, message)
                yield piece


async def _read(file: asyncssh.SFTPClientFile) -> bytes:
    piece: bytes = await file.read(_PIECE)
    return piece


def _resource(path: str, attributes: _Attributes) -> external_resources.ProviderResource | None:
    external_type = _type_of(attributes)
    if external_type is None:
        return None
    mime_type = contents.media_type(path) if external_type == "file" else None
    kind = (
        external_resources.ResourceSurfaceKind.FOLDER
        if mime_type is None
        else contents.kind_of(mime_type)
    )
    return adapter.listed(
        externalType=external_type,
        externalId=path,
        name=contents.name_of(path),
        surfaceKind=kind.value,
        capabilities=contents.capabilities_of(kind),
        mimeType=mime_type,
        parentExternalId=contents.parent_of(path),
        revision=None if mime_type is None else _revision(attributes),
        providerModifiedAt=_moment(attributes.mtime),
    )


def _type_of(attributes: _Attributes) -> str | None:
    """None for links, devices and anything else that is neither folder nor file."""
    mode = attributes.permissions or 0
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else None


def _revision(attributes: _Attributes) -> str:
    return f"{attributes.mtime}-{attributes.mtime_ns or 0}-{attributes.size}"


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else wire_timestamp(datetime.fromtimestamp(seconds, UTC))


def _read_key(text: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(text)
    except asyncssh.KeyImportError:
        raise adapter.ProviderProblem(adapter.ProblemKind.INVALID, "Invalid host key.") from None


def _private(text: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_private_key(text)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        message = "The private key of the connection is invalid or encrypted."
        raise adapter.ProviderProblem(adapter.ProblemKind.AUTH, message) from None


def _problem(error: Exception) -> adapter.ProviderProblem:
    """The reason asyncssh failed; its own words may hold names of the server's machine."""
    match error:
        case asyncssh.HostKeyNotVerifiable():
            message = "The host key of the server does not match the connection."
            return adapter.ProviderProblem(adapter.ProblemKind.AUTH, message)
        case asyncssh.PermissionDenied():
            message = "The server rejected the credentials of the connection."
            return adapter.ProviderProblem(adapter.ProblemKind.AUTH, message)
        case asyncssh.SFTPNoSuchFile() | asyncssh.SFTPNoSuchPath() | asyncssh.SFTPNotADirectory():
            return no_such_resource()
        case asyncssh.SFTPPermissionDenied():
            message = "The server denied access to the resource."
            return adapter.ProviderProblem(adapter.ProblemKind.DENIED, message)
        case asyncssh.SFTPError() if not isinstance(error, asyncssh.SFTPConnectionLost):
            message = "The server rejected the request."
            return adapter.ProviderProblem(adapter.ProblemKind.INVALID, message)
        case _:
            message = "The connection to the server failed."
            return adapter.ProviderProblem(adapter.ProblemKind.UNAVAILABLE, message)
