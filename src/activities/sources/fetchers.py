"""Fetching what a source holds, each kind in its way: HTTP, stored file, resource, database."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from pydantic_core import from_json

from activities.connections import ConnectionUseError, find_connected, noted_call
from activities.sources import requests
from activities.sources.database_process import DatabaseAddress, DatabaseQuery, answer_query
from activities.sources.fetching import Fetched, HttpSource, Keep, fetch_first_page, fetch_pages
from activities.sources.processes import context, process_of, start
from models.content.files.queries import find_file
from models.core.base import Id, JsonObject
from models.sources.connections.providers import SQL_PROVIDERS, ProviderName
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.options import MAX_ROWS, ErrorKind, SourceProblem, TableFormat
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError


@dataclass(frozen=True, slots=True)
class WantedResource:
    """A resource of a connection, and for whom it is read.

    `conditions` are what the provider called it when it was last read; see FetchedResource.
    """

    workspace_id: Id
    user_id: Id | None
    connection_id: Id
    resource: JsonObject
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetchedResource:
    """A resource in a file, and what to ask next time to get it only if it has changed.

    One that is `unchanged` since then left the file empty.
    """

    format: TableFormat
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False


class ResourceReader(Protocol):
    """Reads resources of every provider that connections can be made to."""

    async def fetch(self, request: WantedResource, path: Path) -> FetchedResource:
        """Write a resource to a file.

        Raises SourceProblem, also for a connection that was deleted.
        """
        ...


async def file_at(
    work: UnitOfWork, store: ObjectStore, workspace_id: Id, config: JsonObject, directory: Path
) -> Path:
    """The stored file that a config names, in a directory. Raises SourceProblem when it was
    deleted.
    """
    key = await object_key(work, workspace_id, config)
    return await copied(store, key, directory / "file")


async def object_key(work: UnitOfWork, workspace_id: Id, config: JsonObject) -> str:
    """The object of the file that a config names. Raises SourceProblem when it was deleted."""
    found = await find_file(work, workspace_id, Id(config["fileId"]))
    if found is None:
        raise SourceProblem(
            ErrorKind.FETCH, "The file was deleted. Choose another fileId.", final=True
        )
    return found.object_key


async def copied(store: ObjectStore, key: str, path: Path) -> Path:
    """An object in a file. Raises SourceProblem when it was deleted."""
    with path.open("wb") as file:
        try:
            async for piece in store.get(key):
                file.write(piece)
        except FileNotFoundError:
            message = "The content of the file was deleted."
            raise SourceProblem(ErrorKind.FETCH, message, final=True) from None
    return path


CANCEL_SECONDS = 2.0
"""The time a process has to cancel its statement."""


async def fetch_rows(
    outbound: OutboundClient, query: DatabaseQuery, path: Path, seconds: float
) -> int:
    """Write the rows of a query, as lines of JSON, to a file; returns their number.

    Raises SourceProblem. Takes at most `seconds`.
    """
    address = query.address
    try:
        async with outbound.turn(address.host):
            found = await outbound.addresses(address.host, address.port)
            checked = replace(query, addresses=[str(one) for one in found])
            return await _rows_from_process(checked, path, seconds)
    except OutboundError as error:
        raise requests.problem_of(error) from error


async def _rows_from_process(checked: DatabaseQuery, path: Path, seconds: float) -> int:
    """Have a process write the rows that a database at a judged address gives."""
    ours, theirs = context.Pipe(duplex=False)
    asking = process_of(answer_query, theirs, checked, path)
    await start(asking)
    # Otherwise the end of the process would not close the pipe, and the wait would not end.
    theirs.close()
    try:
        answer = await _process_answer(ours, seconds)
    except EOFError:
        raise RuntimeError("The database process crashed.") from None
    finally:
        # By SIGTERM, at which the process cancels its statement on the server.
        asking.terminate()
        # A cancel must not leave a process behind that holds a connection to a foreign database.
        await asyncio.shield(asyncio.to_thread(_end_process, asking))
        ours.close()
    if "rows" in answer:
        rows: int = answer["rows"]
        return rows
    raise SourceProblem(ErrorKind(answer["kind"]), answer["message"], final=answer["final"])


async def _process_answer(connection: Connection, seconds: float) -> JsonObject:
    """The answer of the process. It needs no thread to wait, for a query takes minutes."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        async with asyncio.timeout(seconds):
            await ready.wait()
        answer: JsonObject = from_json(connection.recv_bytes())
    except TimeoutError:
        raise SourceProblem(
            ErrorKind.TIMEOUT, "The database takes too long to return rows.", final=True
        ) from None
    finally:
        loop.remove_reader(connection.fileno())
    return answer


def _end_process(asking: BaseProcess) -> None:
    asking.join(CANCEL_SECONDS)
    if asking.is_alive():
        asking.kill()
        asking.join()


STATEMENT_SECONDS = 300.0
"""Seconds of one statement of a foreign database."""
SAMPLE_SECONDS = 45.0
"""Seconds of fetching a sample: a client that requests a preview is answered within a minute."""

_FAILS = frozenset({ErrorKind.AUTH, ErrorKind.FETCH, ErrorKind.TIMEOUT})
"""Problems by which the connection of a source fails."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A source to fetch in the name of a user; `keys` are the columns that identify its rows.

    `conditions` are the headers that request it only if it has changed.
    """

    workspace_id: Id
    user_id: Id | None
    kind: DataSourceKind
    config: JsonObject
    keys: Sequence[str] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)

    @property
    def stored(self) -> bool:
        """True when its rows are in a file that is here already."""
        return "fileId" in self.config or "content" in self.config

    @property
    def connection_id(self) -> Id | None:
        """The connection that it is fetched through; a resource gets it from its adapter."""
        if self.kind is DataSourceKind.SQL:
            return Id(self.config["connectionId"])
        auth = self.config.get("auth") or {}
        return Id(auth["connectionId"]) if auth.get("type") == "connection" else None


@dataclass(frozen=True, slots=True)
class Access:
    """The access to a source: by headers, as the user of a database, or as an object."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    address: DatabaseAddress | None = None
    password: str = field(default="", repr=False)
    object_key: str | None = None


class Fetchers:
    """The fetchers that leave the machine to bring rows in."""

    def __init__(
        self,
        outbound: OutboundClient,
        keys: KeyRing,
        store: ObjectStore,
        connections: ResourceReader | None,
    ) -> None:
        self._outbound = outbound
        self._keys = keys
        self._store = store
        self._connections = connections

    async def access(self, work: UnitOfWork, request: Wanted) -> Access:
        """The access to a source, with its credentials.

        Raises SourceProblem for a missing secret, or a connection that cannot be used.
        """
        if request.kind in requests.HTTP_KINDS:
            return Access(
                await requests.auth_headers(work, self._keys, request.workspace_id, request.config)
            )
        if request.kind is not DataSourceKind.SQL:
            return Access()
        connection_id = Id(request.config["connectionId"])
        try:
            connection = await find_connected(work, self._keys, request.workspace_id, connection_id)
        except ConnectionUseError as error:
            raise SourceProblem(ErrorKind.AUTH, error.message) from error
        if connection.provider is ProviderName.SQLITE:
            return Access(
                object_key=await object_key(work, request.workspace_id, connection.config)
            )
        if connection.provider not in SQL_PROVIDERS:
            raise SourceProblem(ErrorKind.AUTH, "The connection does not support SQL queries.")
        names = ("host", "port", "database", "user", "tls")
        address = DatabaseAddress(
            connection.provider, **{name: connection.config[name] for name in names}
        )
        return Access(address=address, password=connection.credentials["password"])

    async def fetch(
        self, request: Wanted, access: Access, directory: Path, keep: Keep, start: Fetched
    ) -> Fetched:
        """Fetch what `start` lacks, page by page. Raises SourceProblem."""
        if start.next is None:
            return start
        if request.kind in requests.HTTP_KINDS:
            source = self._http(request, access, requests.FETCH_SECONDS)
            return await fetch_pages(source, directory, keep, start)
        path = directory / "page"
        fetched = await self._whole(request, access, path)
        if not fetched.unchanged:
            await keep(path, fetched)
        return fetched

    async def sample(self, request: Wanted, access: Access, path: Path, rows: int) -> Fetched:
        """Fetch the first page, or the first rows, into a file. Raises SourceProblem."""
        if request.kind in requests.HTTP_KINDS:
            return await fetch_first_page(self._http(request, access, SAMPLE_SECONDS), path)
        return await self._whole(request, access, path, rows)

    async def _whole(
        self, request: Wanted, access: Access, path: Path, sample: int | None = None
    ) -> Fetched:
        """Fetch a source without pages."""
        if access.object_key is not None:
            await copied(self._store, access.object_key, path)
            return Fetched(pages=1, bytes=_size(path), next=None, queried=True)
        if access.address is None:
            return await self._resource(request, path)
        query = DatabaseQuery(
            address=access.address,
            password=access.password,
            text=request.config["query"],
            params=request.config["params"],
            seconds=STATEMENT_SECONDS if sample is None else SAMPLE_SECONDS,
            max_rows=sample or MAX_ROWS,
            max_bytes=requests.MAX_FETCH_BYTES,
            whole=sample is None,
        )
        seconds = requests.FETCH_SECONDS if sample is None else SAMPLE_SECONDS
        rows = await fetch_rows(self._outbound, query, path, seconds)
        return Fetched(pages=1, bytes=_size(path), rows=rows, next=None)

    def _http(self, request: Wanted, access: Access, seconds: float) -> HttpSource:
        return HttpSource(
            self._outbound,
            request.kind,
            request.config,
            access.headers,
            request.keys,
            request.conditions,
            seconds,
        )

    async def _resource(self, request: Wanted, path: Path) -> Fetched:
        if self._connections is None:
            raise SourceProblem(ErrorKind.AUTH, "The connection was deleted. Choose another.")
        resource = WantedResource(
            request.workspace_id,
            request.user_id,
            Id(request.config["connectionId"]),
            request.config["resource"],
            request.conditions,
        )
        found = await self._connections.fetch(resource, path)
        if found.unchanged:
            return Fetched(next=None, unchanged=True)
        return Fetched(
            pages=1, bytes=_size(path), next=None, format=found.format, validators=found.validators
        )


def noted_fetch(database: Database, request: Wanted) -> AbstractAsyncContextManager[None]:
    """Note whether the connection of a source works, by the fetching in the block."""
    return noted_call(database, request.workspace_id, request.connection_id, _reason)


def _reason(error: Exception) -> str | None:
    if not isinstance(error, SourceProblem) or error.kind not in _FAILS:
        return None
    return error.message


def _size(path: Path) -> int:
    """The bytes of a file. Raises SourceProblem beyond what a source may hold."""
    size = path.stat().st_size
    if size > requests.MAX_FETCH_BYTES:
        limit = requests.MAX_FETCH_BYTES // 1024**2
        raise SourceProblem(ErrorKind.TOO_LARGE, f"The source is larger than {limit} MiB.")
    return size
