"""The fixtures notice what they promise to notice."""

import sys
import uuid
import weakref
from collections.abc import Callable

import httpx2
import pytest
from jsonschema_rs import ValidationError
from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError, InvalidRequestError
from temporalio.worker._workflow import _InterruptDeadlockError

from runtime.postgresql.statements import PreparedStatement
from tests.support.client import Contract
from tests.support.forked import forked
from tests.support.watched import WatchedDatabase

WRITE = text("DELETE FROM idempotency_reply WHERE false")
WRITE_WITHIN_A_READ = text(
    "WITH gone AS (DELETE FROM idempotency_reply WHERE false RETURNING id) SELECT * FROM gone"
)


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


async def test_a_commit_by_a_prepared_statement_is_noticed(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await PreparedStatement(text("commit")).execute(work, {})
    assert database.stray_commits
    database.stray_commits.clear()


async def test_a_commit_by_the_driver_is_noticed(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await work.execute(WRITE)
        await (await work.driver()).commit()
    assert database.stray_commits
    database.stray_commits.clear()


@pytest.mark.parametrize("write", [WRITE, WRITE_WITHIN_A_READ])
async def test_a_write_that_commits_by_itself_is_noticed(
    database: WatchedDatabase, write: TextClause
) -> None:
    async with database.reading() as work:
        await PreparedStatement(write).execute(work, {})
    assert database.stray_commits
    database.stray_commits.clear()


async def test_a_write_in_a_single_statement_taken_unannounced_is_noticed(
    database: WatchedDatabase,
) -> None:
    async with database.statement() as work:
        await PreparedStatement(WRITE).execute(work, {})
    assert database.stray_commits == []
    async with database._singles.connection() as connection:
        await connection.execute(str(WRITE))
    assert database.stray_commits
    database.stray_commits.clear()


async def test_units_of_work_are_no_strays(database: WatchedDatabase) -> None:
    for _ in range(2):
        async with database.transaction() as work:
            await work.execute(WRITE)
            await PreparedStatement(WRITE).execute(work, {})
    async with database.reading() as work:
        await work.execute(text("SELECT 1 FOR UPDATE"))
    async with database.statement() as single:
        await PreparedStatement(WRITE).execute(single, {})
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


def _exit_by_what_is_loaded() -> None:
    sys.exit(not {"api.app", "cli.worker_process"} <= sys.modules.keys())


def test_a_forked_process_has_loaded_the_platform() -> None:
    assert forked(_exit_by_what_is_loaded).wait() == 0


@pytest.mark.parametrize(("beyond", "valid"), [({}, True), ({"surprise": 1}, False)])
def test_a_key_that_the_document_does_not_name_is_noticed(
    contract: Contract, beyond: dict[str, int], valid: bool
) -> None:
    key = {"id": str(uuid.uuid4()), **beyond}
    answer = httpx2.Response(200, json={"data": key}, headers=EVERY_ANSWER)
    path = f"/v1/workspaces/{uuid.uuid4()}/api-keys/{uuid.uuid4()}"
    if valid:
        contract.check("DELETE", path, answer)
    else:
        with pytest.raises(ValidationError, match="surprise"):
            contract.check("DELETE", path, answer)


def test_an_answer_of_another_type_than_the_document_says_is_noticed(contract: Contract) -> None:
    answer = httpx2.Response(200, text="{}", headers=EVERY_ANSWER)
    path = f"/v1/workspaces/{uuid.uuid4()}/api-keys/{uuid.uuid4()}"
    with pytest.raises(AssertionError, match="answered 200 as text/plain"):
        contract.check("DELETE", path, answer)


EVERY_ANSWER = {
    "X-Request-Id": "1",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
