"""Rows that are read with those of another statement are the ones that it would have found."""

import pytest
from sqlalchemy import ARRAY, Integer, Text, bindparam, column, func, literal, select, values

from runtime.postgresql.statements import LeadingStatement, Prefetch, PreparedStatement
from tests.support.watched import WatchedDatabase

_PEOPLE = values(column("id", Integer), column("room", Integer), name="person").data(
    [(1, 10), (2, 20), (3, 30)]
)
_ROOMS = values(column("id", Integer), column("name", Text), name="room").data(
    [(10, "100 % it's"), (20, "two")]
)
PERSON = PreparedStatement(select(_PEOPLE).where(_PEOPLE.c.id == bindparam("id", type_=Integer)))
ROOM = PreparedStatement(
    select(_ROOMS.c.name, literal("a%b").label("id")).where(
        _ROOMS.c.id == bindparam("room", type_=Integer),
        _ROOMS.c.id > bindparam("id", type_=Integer),
    )
)
SUM = PreparedStatement(
    select(func.cardinality(bindparam("rooms", type_=ARRAY(Integer))).label("many"))
)
LEADING = LeadingStatement(PERSON, values={"room": "room"}, arrays={"rooms": "room"})


async def test_all_of_it_is_one_statement(database: WatchedDatabase) -> None:
    async with database.statement() as work:
        person = await LEADING.first(
            work, {"id": 1}, [Prefetch(ROOM, {"id": 5}), Prefetch(SUM, {})]
        )
        assert person == (1, 10)
        assert person.room == 10
        assert await SUM.first(work, {"rooms": [10]}) == (1,)
        room = await ROOM.first(work, {"id": 5, "room": 10})
        assert (room.name, room.id) == ("100 % it's", "a%b")


async def test_a_row_is_for_the_parameters_it_was_read_with(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await LEADING.first(work, {"id": 1}, [Prefetch(ROOM, {"id": 5})])
        assert (await ROOM.first(work, {"id": 5, "room": 20})).name == "two"
        assert await ROOM.first(work, {"id": 50, "room": 20}) is None
        assert len(work.prefetched_rows) == 1


async def test_a_row_is_given_once(database: WatchedDatabase) -> None:
    async with database.statement() as work:
        await LEADING.first(work, {"id": 1}, [Prefetch(ROOM, {"id": 5})])
        asked = {"id": 5, "room": 10}
        assert await ROOM.first(work, asked) is not None
        with pytest.raises(RuntimeError, match="One statement"):
            await ROOM.first(work, asked)


async def test_a_row_that_is_not_there_is_not_asked_for_again(database: WatchedDatabase) -> None:
    async with database.statement() as work:
        assert await LEADING.first(work, {"id": 3}, [Prefetch(ROOM, {"id": 5})]) == (3, 30)
        assert await ROOM.first(work, {"id": 5, "room": 30}) is None


async def test_nothing_is_read_with_a_row_that_is_not_there(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        assert await LEADING.first(work, {"id": 9}, [Prefetch(SUM, {})]) is None
        assert work.prefetched_rows == []
