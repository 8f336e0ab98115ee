"""Turns at a host and through a connection, and the spellings of hosts."""

from typing import Any

import pytest
from sqlalchemy import update

from models.core.base import Id
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection
from models.sources.outbound_limits import turns
from models.sources.outbound_limits.commands import create_limit
from models.sources.outbound_limits.queries import CreateOutboundLimit, waits_of
from models.sources.outbound_limits.tables import outbound_place
from models.sources.outbound_limits.turns import Call
from runtime.errors import ConflictError, ValidationError
from runtime.ids import new_id
from tests.support.engine import KEYS
from tests.support.spaces import Space, make_space

HOST = "api.example.test"


async def connection(space: Space) -> Id:
    body = CreateConnection.model_validate({"provider": "demo", "label": "Demo"})
    async with space.database.transaction() as work:
        return (await create_connection(work, space.actor, KEYS, body)).id


async def limit(space: Space, **body: Any) -> str | None:
    async with space.database.transaction() as work:
        given = CreateOutboundLimit.model_validate(body)
        return (await create_limit(work, space.actor, given)).host


async def goes(space: Space, call: Call) -> bool:
    async with space.database.transaction() as work:
        return not await turns.ask(work, call)


async def is_limited(space: Space, call: Call) -> bool:
    async with space.database.reading() as work:
        return await turns.is_limited(work, call)


def call(space: Space, number: int, connection_id: Id | None = None, host: str = HOST) -> Call:
    return Call(space.id, new_id(), f"call-{number}", host, connection_id)


async def test_calls_through_a_connection_keep_to_its_bound_alone(space: Space) -> None:
    one, other = await connection(space), await connection(space)
    await limit(space, connectionId=str(one), atOnce=1)
    first, second = call(space, 1, one), call(space, 2, one)
    assert await goes(space, first)
    assert not await goes(space, second)
    for free in (call(space, 3, other), call(space, 4)):
        assert not await is_limited(space, free)
    async with space.database.transaction() as work:
        await turns.end(work, first)
    assert await goes(space, second)


async def test_a_call_that_waits_for_its_host_keeps_its_place_at_its_connection(
    space: Space,
) -> None:
    through = await connection(space)
    await limit(space, connectionId=str(through), atOnce=1)
    await limit(space, host=HOST, atOnce=1)
    direct, first, second = call(space, 1), call(space, 2, through), call(space, 3, through)
    assert await goes(space, direct)
    assert not await goes(space, first)
    assert not await goes(space, second)
    async with space.database.transaction() as work:
        await turns.end(work, direct)
    assert await goes(space, first)
    assert not await goes(space, second)


async def test_a_call_that_an_answer_holds_back_says_so_until_it_goes(space: Space) -> None:
    held = call(space, 1)
    async with space.database.transaction() as work:
        await turns.put_off(work, space.id, HOST, 3_600)
    assert not await goes(space, held)
    async with space.database.transaction() as work:
        (waits,) = (await waits_of(work, space.id, [held.work_id])).values()
        assert (waits["kind"], waits["cause"], waits["host"]) == ("limited", "answer", HOST)
        over = outbound_place.c.workspace_id == space.id
        await work.execute(update(outbound_place).where(over).values(paused_until=work.now))
    assert await is_limited(space, held), "its place in line goes with it"
    assert await goes(space, held)
    async with space.database.transaction() as work:
        assert not await waits_of(work, space.id, [held.work_id])
        await turns.end(work, held)
    assert not await is_limited(space, held)


async def test_a_limit_is_of_one_workspace(space: Space) -> None:
    other = await make_space(space.database, KEYS)
    await limit(space, host=HOST, atOnce=1)
    assert await goes(space, call(space, 1))
    assert not await is_limited(other, call(other, 2))


@pytest.mark.parametrize(
    ("spelling", "host"),
    [
        ("API.Example.TEST", "api.example.test"),
        ("api.example.test.", "api.example.test"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("api。example。test", "api.example.test"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
    ],
)
async def test_a_host_is_one_place_however_it_is_spelled(
    space: Space, spelling: str, host: str
) -> None:
    assert await limit(space, host=spelling, atOnce=1) == host
    with pytest.raises(ConflictError):
        await limit(space, host=host, atOnce=2)


@pytest.mark.parametrize(
    "host",
    ["https://api.example.test", "api.example.test:443", "a/b", "a b", "\u0000", "a" * 64, "..",
     "x" * 256, "user@api.example.test", "a.\u200b.b"],
)  # fmt: skip
async def test_no_host_is_refused_where_it_stands(space: Space, host: str) -> None:
    with pytest.raises(ValidationError):
        await limit(space, host=host, atOnce=1)
