"""Repetition after an error of the database: one rule for every activity (ADR 0066)."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from typing_extensions import override

from models.data.fields.locks import DatabaseBusyError
from runtime.errors import ValidationError

log = structlog.get_logger()

DATABASE_AWAY = (
    OperationalError,
    InterfaceError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    PoolTimeoutError,
    DatabaseBusyError,
)
"""The database did not take the transaction (gone, busy, deadlock, time-out)."""

_FINAL_CLASSES = frozenset({"21", "22", "23", "42", "44", "54"})
"""Classes of SQLSTATE: what is sent is wrong, and is the same the next time; 54 is too large."""
_RACES = frozenset({"23503", "23505", "23P01"})
"""A row that another transaction wrote or removed meanwhile; a repetition sees it."""

_REFUSALS = (DBAPIError, psycopg.Error, UnicodeEncodeError)
"""Errors of the database and its driver, which has no bytes for half of a surrogate pair."""

_Cause = psycopg.Error | None


def took_too_long(error: BaseException) -> bool:
    """Recognize a statement cancelled at its time limit; a repetition would be cancelled too."""
    return isinstance(_cause(error), psycopg.errors.QueryCanceled)


def is_away(error: BaseException) -> bool:
    """Recognize a database that was unavailable: no node has failed, a repetition may succeed."""
    if not isinstance(error, DATABASE_AWAY):
        return False
    return not took_too_long(error) and not never_succeeds(error)


def never_succeeds(error: BaseException, attempt: int = 1) -> bool:
    """Recognize a refusal that the database would repeat.

    A race is lost once at most: the second attempt that a constraint refuses is the last one.
    """
    if isinstance(error, UnicodeEncodeError):
        return True
    cause = _cause(error)
    if cause is None:
        return False
    if cause.sqlstate is None:
        # The driver refused the values before it sent them.
        return isinstance(cause, psycopg.DataError | psycopg.ProgrammingError)
    if cause.sqlstate in _RACES:
        return attempt > 1
    return cause.sqlstate[:2] in _FINAL_CLASSES


def _cause(error: BaseException) -> _Cause:
    origin = error.orig if isinstance(error, DBAPIError) else error
    return origin if isinstance(origin, psycopg.Error) else None


class RefusedValueError(ValidationError):
    """The database refuses for good what was to be written."""

    def __init__(self) -> None:
        super().__init__("A value cannot be stored as it is.")


@contextmanager
def refusals() -> Iterator[None]:
    """Raise RefusedValueError for what never succeeds, where a row keeps why its work failed."""
    try:
        yield
    except _REFUSALS as error:
        if not never_succeeds(error, activity.info().attempt):
            raise
        log.exception("the database refuses a value")
        raise RefusedValueError from error


class FinalErrorInterceptor(Interceptor):
    """Has no activity of any family repeated for what the database refuses for good."""

    @override
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Final(next)


class _Final(ActivityInboundInterceptor):
    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> object:
        try:
            return await self.next.execute_activity(input)
        except _REFUSALS as error:
            if not never_succeeds(error, activity.info().attempt):
                raise
            cause = _cause(error)
            code = (cause and cause.sqlstate) or type(cause or error).__name__
            # The code alone: the text of the database may quote the values (promise I8).
            raise ApplicationError(
                f"The database refuses what is asked of it ({code}).",
                type="database_refused",
                non_retryable=True,
            ) from error
