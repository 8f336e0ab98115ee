"""Nothing private is reached: not by an odd spelling, not by a name, not by a second answer."""

import pytest

from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import (
    ConnectionFailedError,
    InvalidUrlError,
    OutboundBlockedError,
    TooManyRedirectsError,
)
from runtime.outbound.messages import OutboundRequest
from runtime.outbound_policy import OutboundPolicy
from tests.runtime.outbound.servers import Names, Serve

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "2130706433", "0x7f000001", "017700000001", "127.1", "0",
        "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]", "127.0.0.1.",
    ],
)  # fmt: skip
async def test_no_spelling_of_loopback_gets_through(
    serve: Serve, public: OutboundClient, host: str
) -> None:
    server = await serve(OK)
    # A name with a trailing dot is a name: some resolvers know none of this spelling.
    expected = ConnectionFailedError if host.endswith(".") else OutboundBlockedError
    with pytest.raises(expected):
        await public.send(OutboundRequest(url=f"http://{host}:{server.port}/"))
    assert server.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "127.1", "[::ffff:127.0.0.1]"])
async def test_an_allowed_range_is_reached_in_any_spelling(
    serve: Serve, local: OutboundClient, host: str
) -> None:
    server = await serve(OK)
    answer = await local.send(OutboundRequest(url=f"http://{host}:{server.port}/"))
    assert (answer.status, answer.body) == (200, b"ok")


async def test_an_allowed_name_is_reached_at_a_private_address(serve: Serve, names: Names) -> None:
    server = await serve(OK)
    names.answers = {"intranet.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]}
    async with OutboundClient(
        OutboundPolicy.from_entries(["intranet.example"]), resolver=names
    ) as client:
        answer = await client.send(OutboundRequest(url=f"http://intranet.example:{server.port}/"))
        assert answer.body == b"ok"
        assert f"Host: intranet.example:{server.port}".lower() in server.requests[0].lower()
        with pytest.raises(OutboundBlockedError):
            await client.send(OutboundRequest(url=f"http://other.example:{server.port}/"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("order", [["1.1.1.1", "127.0.0.1"], ["127.0.0.1", "1.1.1.1"]])
async def test_one_private_address_among_public_ones_refuses_them_all(
    names: Names, order: list[str]
) -> None:
    names.answers = {"mixed.example": [order]}
    async with OutboundClient(OutboundPolicy(), resolver=names) as client:
        with pytest.raises(OutboundBlockedError):
            await client.send(OutboundRequest(url="http://mixed.example/"))


async def test_a_name_is_looked_up_once_and_its_checked_address_used(
    serve: Serve, names: Names
) -> None:
    """A second answer, private, never gets its chance: there is no second lookup."""
    server = await serve(OK)
    names.answers = {"rebind.example": [["127.0.0.2"], ["127.0.0.1"]]}
    async with OutboundClient(OutboundPolicy.from_entries(["127.0.0.2"]), resolver=names) as client:
        with pytest.raises(ConnectionFailedError):
            await client.send(OutboundRequest(url=f"http://rebind.example:{server.port}/"))
        assert names.lookups == ["rebind.example"]
        with pytest.raises(OutboundBlockedError):
            await client.send(OutboundRequest(url=f"http://rebind.example:{server.port}/"))
    assert server.requests == []


async def test_the_checked_address_is_the_one_connected_to(serve: Serve, names: Names) -> None:
    """The system knows another address of the name, at which a server listens."""
    server = await serve(OK)
    names.answers = {"localhost": [["127.0.0.2"]]}
    async with OutboundClient(OutboundPolicy.from_entries(["127.0.0.2"]), resolver=names) as client:
        with pytest.raises(ConnectionFailedError):
            await client.send(OutboundRequest(url=f"http://localhost:{server.port}/"))
    assert server.requests == []


async def test_the_next_address_is_tried_when_the_first_is_dead(serve: Serve, names: Names) -> None:
    server = await serve(OK)
    names.answers = {"two.example": [["127.0.0.9", "127.0.0.1"]]}
    async with OutboundClient(
        OutboundPolicy.from_entries(["two.example"]), resolver=names
    ) as client:
        answer = await client.send(OutboundRequest(url=f"http://two.example:{server.port}/"))
    assert answer.body == b"ok"


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("http://169.254.169.254/latest/meta-data/", OutboundBlockedError),
        ("http://localhost.metadata.example/", OutboundBlockedError),
        ("file:///etc/passwd", InvalidUrlError),
        ("gopher://127.0.0.1/", InvalidUrlError),
        ("http://user:pw@127.0.0.1/", InvalidUrlError),
        ("//[::1]:8379/", OutboundBlockedError),
        ("http://127.0.0.1:22/", InvalidUrlError),
    ],
)
async def test_every_hop_of_a_redirect_is_judged(
    serve: Serve, names: Names, target: str, error: type[Exception]
) -> None:
    redirect = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
    server = await serve(redirect.encode())
    names.answers = {
        "127.0.0.1": [["127.0.0.1"]],
        "169.254.169.254": [["169.254.169.254"]],
        "::1": [["::1"]],
        "localhost.metadata.example": [["169.254.169.254"]],
    }
    async with OutboundClient(OutboundPolicy.from_entries(["127.0.0.1"]), resolver=names) as client:
        with pytest.raises(error):
            await client.send(OutboundRequest(url=server.url))


async def test_a_circle_of_redirects_ends(serve: Serve, local: OutboundClient) -> None:
    server = await serve(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(TooManyRedirectsError):
        await local.send(OutboundRequest(url=server.url))
    assert len(server.requests) == 6


async def test_a_proxy_of_the_environment_is_not_used(
    serve: Serve, local: OutboundClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = await serve(OK), await serve(OK)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    await local.send(OutboundRequest(url=server.url))
    assert (len(proxy.requests), len(server.requests)) == (0, 1)
