"""Every protocol that leaves the platform has the same guard: own listeners, and moving names."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from uuid import uuid4

import asyncssh
import pytest

from activities.deliveries.push import Push, WebPush
from activities.providers.adapter import ProviderProblem
from activities.providers.s3 import S3Adapter
from activities.providers.sftp import SftpAdapter
from activities.sources.database_process import DatabaseAddress, DatabaseQuery
from activities.sources.fetchers import fetch_rows
from models.messages.push_devices import PushProvider
from models.sources.connections.providers import ProviderName
from models.sources.tabular.rules.options import SourceProblem
from runtime.configuration.sections import MailServer
from runtime.outbound.client import OutboundClient, Resolver, SystemResolver
from runtime.outbound.errors import OutboundError
from runtime.outbound.mail import Mail, MailClient
from runtime.outbound.messages import OutboundRequest
from runtime.outbound_policy import Address, Listener, OutboundPolicy
from tests.runtime.outbound.servers import Names
from tests.support.browsers import VAPID, Browser
from tests.support.provider_asking import access

pytestmark = pytest.mark.takes(seconds=20)

ALLOWED = ["127.0.0.0/8", "::1", "0.0.0.0/8", "localhost", "own.example", "moves.example"]


@dataclass
class Listening:
    """A server that says nothing, and counts who comes."""

    port: int = 0
    connections: int = 0


@asynccontextmanager
async def listening() -> AsyncIterator[Listening]:
    one = Listening()

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        one.connections += 1
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()


Call = Callable[[OutboundPolicy, Resolver, str, int, Path], Awaitable[object]]
KEY = " ".join(asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().split())


def url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def http(policy: OutboundPolicy, names: Resolver, host: str, port: int, _: Path) -> None:
    async with OutboundClient(policy, resolver=names) as client:
        await client.send(OutboundRequest(url=url(host, port)))


async def postgresql(
    policy: OutboundPolicy, names: Resolver, host: str, port: int, path: Path
) -> None:
    address = DatabaseAddress(ProviderName.POSTGRESQL, host, port, "x", "x", "off")
    await ask(policy, names, address, path)


async def mysql(policy: OutboundPolicy, names: Resolver, host: str, port: int, path: Path) -> None:
    await ask(policy, names, DatabaseAddress(ProviderName.MYSQL, host, port, "x", "x", "off"), path)


async def ask(
    policy: OutboundPolicy, names: Resolver, address: DatabaseAddress, path: Path
) -> None:
    query = DatabaseQuery(
        address, password="x", text="SELECT 1", params=(), seconds=5, max_rows=1, max_bytes=100
    )
    async with OutboundClient(policy, resolver=names) as client:
        await fetch_rows(client, query, path / "rows", 20)


async def s3(policy: OutboundPolicy, names: Resolver, host: str, port: int, _: Path) -> None:
    config = {"bucket": "reports", "endpoint": url(host, port)}
    async with OutboundClient(policy, resolver=names) as client:
        adapter = S3Adapter(client)
        await adapter.check(access(config, accessKeyId="AKIA", secretAccessKey="x"))


async def sftp(policy: OutboundPolicy, names: Resolver, host: str, port: int, _: Path) -> None:
    config = {"host": host, "port": port, "username": "ann", "hostKey": KEY}
    async with OutboundClient(policy, resolver=names) as client:
        await SftpAdapter(client).check(access(config, secret="x"))


async def smtp(policy: OutboundPolicy, names: Resolver, host: str, port: int, _: Path) -> None:
    written = f"[{host}]" if ":" in host else host
    server = MailServer.parse(f"smtp://{written}:{port}", "us@sender.test")
    mail = Mail(to=["a@b.test"], subject="Hi", body="Words", message_id="<1@sender.test>")
    await MailClient(server, policy, resolver=names).send(mail)


async def push(policy: OutboundPolicy, names: Resolver, host: str, port: int, _: Path) -> None:
    async with OutboundClient(policy, resolver=names) as client:
        message = Push(
            uuid4(),
            PushProvider.WEBPUSH,
            Browser(url(host, port)).token,
            title="Tea",
            body="",
            data={},
        )
        await WebPush(client, VAPID).push(message)


PROTOCOLS = [http, postgresql, mysql, s3, sftp, smtp, push]


@pytest.fixture(params=PROTOCOLS, ids=lambda one: one.__name__)
def call(request: pytest.FixtureRequest) -> Call:
    made: Call = request.param
    return made


class Answers(Names):
    """Looks up names of the tests itself, and asks the machine for everything else."""

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        if host in self.answers:
            return await super().resolve(host, port)
        return await SystemResolver().resolve(host, port)


async def refused(call: Call, policy: OutboundPolicy, host: str, port: int, path: Path) -> str:
    names = Answers({"own.example": [["127.0.0.1"]]})
    with pytest.raises((OutboundError, ProviderProblem, SourceProblem)) as raised:
        await call(policy, names, host, port, path)
    return str(raised.value)


async def test_an_allowed_address_is_reached(call: Call, tmp_path: Path) -> None:
    """The control: without it nothing here would prove anything."""
    async with listening() as server:
        with suppress(OutboundError, ProviderProblem, SourceProblem):
            await call(
                OutboundPolicy.from_entries(ALLOWED),
                Answers({"own.example": [["127.0.0.1"]]}),
                "own.example",
                server.port,
                tmp_path,
            )
        await asyncio.sleep(0.05)
        assert server.connections > 0


ANY = "0.0.0.0"  # noqa: S104  # it is called, not listened on


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.9", "localhost", "own.example", ANY, "::1", "::ffff:127.0.0.1"]
)
async def test_an_own_listener_is_reached_at_none_of_its_addresses(
    call: Call, host: str, tmp_path: Path
) -> None:
    async with listening() as server:
        policy = OutboundPolicy.from_entries(ALLOWED, [Listener("127.0.0.1", server.port)])
        assert "belongs to the platform" in await refused(call, policy, host, server.port, tmp_path)
        assert server.connections == 0


@pytest.mark.parametrize("own", [ANY, "::", "::1", "localhost", "own.example"])
async def test_however_the_listener_is_written(call: Call, own: str, tmp_path: Path) -> None:
    async with listening() as server:
        policy = OutboundPolicy.from_entries(ALLOWED, [Listener(own, server.port)])
        assert "belongs to the platform" in await refused(
            call, policy, "127.0.0.1", server.port, tmp_path
        )
        assert server.connections == 0


async def test_every_interface_of_the_machine_is_its_own(call: Call, tmp_path: Path) -> None:
    outer = socket.gethostbyname(socket.gethostname())
    policy = OutboundPolicy.from_entries([*ALLOWED, outer], [Listener("127.0.0.1", 4242)])
    assert "belongs to the platform" in await refused(call, policy, outer, 4242, tmp_path)


@pytest.mark.parametrize("second", ["127.0.0.1", "10.0.0.1"])
@pytest.mark.parametrize("name", ["moves.example", "localhost"])
async def test_a_name_that_moves_between_check_and_connection_leads_nowhere(
    call: Call, name: str, second: str, tmp_path: Path
) -> None:
    """It is resolved once, and the judged address is connected to: .2 has no listener.

    A library that looks `localhost` up by itself would come to where the server listens.
    """
    async with listening() as server:
        names = Answers({name: [["127.0.0.2"], [second]]})
        policy = OutboundPolicy.from_entries(["127.0.0.2"])
        with pytest.raises((OutboundError, ProviderProblem, SourceProblem)):
            await call(policy, names, name, server.port, tmp_path)
        assert names.lookups == [name]
        assert server.connections == 0


async def test_a_redirect_leads_to_no_own_listener() -> None:
    async with listening() as server:

        async def redirect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            place = f"http://127.0.0.1:{server.port}/api/v1/namespaces"
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {place}\r\n\r\n".encode())
            writer.close()

        front = await asyncio.start_server(redirect, "127.0.0.1", 0)
        policy = OutboundPolicy.from_entries(ALLOWED, [Listener("127.0.0.1", server.port)])
        async with OutboundClient(policy) as client:
            port = front.sockets[0].getsockname()[1]
            with pytest.raises(OutboundError, match="belong"):
                await client.send(OutboundRequest(url=f"http://127.0.0.1:{port}/"))
        front.close()
        assert server.connections == 0


async def test_a_public_address_that_others_share_is_refused_by_name_alone() -> None:
    own = Listener("workspace.example", 443, shared=True)
    public = ip_address("93.184.216.34")
    assert not own.is_at(public, [public])
    assert Listener("db.example", 443).is_at(public, [public])
    policy = OutboundPolicy.from_entries([], [own])
    names = Answers({"workspace.example.": [[str(public)]]})
    async with OutboundClient(policy, resolver=names) as client:
        with pytest.raises(OutboundError, match="belong"):
            await client.send(OutboundRequest(url="https://workspace.example./"))
