"""The fixtures notice what they promise to notice."""

import weakref
from collections.abc import Callable

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InvalidRequestError
from temporalio.worker._workflow import _InterruptDeadlockError

from tests.support.watched import WatchedDatabase


async def test_a_commit_inside_a_transaction_block_is_noticed(database: WatchedDatabase) -> None:
    with pytest.raises(InvalidRequestError):
        await _commit_inside(database)
    assert database.stray_commits
    database.stray_commits.clear()


async def test_a_commit_beside_the_unit_of_work_is_noticed(database: WatchedDatabase) -> None:
    async with database.engine.begin() as connection:
        await connection.execute(text("SELECT 1"))
    assert database.stray_commits
    database.stray_commits.clear()


async def test_a_commit_in_words_is_noticed(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await work.execute(text("commit"))
    assert database.stray_commits
    database.stray_commits.clear()


async def test_units_of_work_are_no_strays(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await work.execute(text("SELECT 1"))
    async with database.reading() as work:
        await work.execute(text("SELECT 1"))
    with pytest.raises(DBAPIError):
        await _break(database)
    assert database.stray_commits == []


async def _commit_inside(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await work.execute(text("SELECT 1"))
        await work.connection.commit()


async def _break(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await work.execute(text("SELECT 1 / 0"))


def test_a_workflow_interrupted_in_a_callback_is_no_fault_of_the_test() -> None:
    _raise_unheard(_InterruptDeadlockError)


@pytest.mark.xfail(raises=pytest.PytestUnraisableExceptionWarning, strict=True)
def test_any_other_error_in_a_callback_is() -> None:
    _raise_unheard(ArithmeticError)


def _raise_unheard(error: type[BaseException]) -> None:
    class Watched:
        pass

    def gone(_: object) -> None:
        raise error

    watched = Watched()
    reference: Callable[[], object] = weakref.ref(watched, gone)
    del watched
    assert reference() is None
