"""Repetition after an error, and while the database is away (ADR 0066, ADR 0129)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
import pydantic
import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from temporalio import activity
from temporalio.exceptions import ApplicationError, TemporalError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from typing_extensions import override

from models.core.problems import sentence
from models.data.fields.commands import DatabaseBusyError
from runtime.errors import InternalError, ValidationError
from runtime.postgresql.sessions import is_disk_full
from runtime.temporal.executions import message_of_failure

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
"""Classes of SQLSTATE for an invalid statement or value, which a repetition sends again; 54 is too
large.
"""
_RACES = frozenset({"23503", "23505", "23P01"})
"""A row that another transaction wrote or removed meanwhile; a repetition sees it."""

_REFUSALS = (DBAPIError, psycopg.Error, UnicodeEncodeError)
"""Errors of the database and its driver, which has no bytes for half of a surrogate pair."""

UNEXPECTED_ATTEMPTS = 3
"""The times that work is done which ends in an error that its code does not expect."""
_AROUND = (*DATABASE_AWAY, OSError, TemporalError)
"""Errors of the surroundings of the process, including time-outs."""

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


def is_final(error: Exception, attempt: int = 1) -> bool:
    """Recognize an error after which the work is not repeated.

    Errors of ours say it themselves, and the database by its codes. The surroundings of the process
    may recover soon. Any other error is a defect, which a repetition seldom mends.
    """
    if isinstance(error, _REFUSALS):
        return never_succeeds(error, attempt)
    declared = getattr(error, "retryable", None)
    if isinstance(declared, bool):
        return not declared
    if isinstance(error, _AROUND):
        return False
    return isinstance(error, pydantic.ValidationError) or attempt >= UNEXPECTED_ATTEMPTS


def _cause(error: BaseException) -> _Cause:
    origin = error.orig if isinstance(error, DBAPIError) else error
    return origin if isinstance(origin, psycopg.Error) else None


class RefusedValueError(ValidationError):
    """The database permanently rejects the values to write."""

    def __init__(self) -> None:
        super().__init__("The database rejected a value.")


class DefectError(InternalError):
    """Work failed in a way that its code does not expect, as often as it may."""

    def __init__(self) -> None:
        super().__init__(
            "Internal error. Retrying will not help. The log of the platform has the details."
        )


@contextmanager
def refusals() -> Iterator[None]:
    """Raise a PlatformError for work that is not repeated and whose row keeps the reason."""
    try:
        yield
    except pydantic.ValidationError as error:
        log.exception("a config is not valid any more")
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ValidationError.at(path, sentence(first)) from error
    except Exception as error:
        attempt = activity.info().attempt if activity.in_activity() else 1
        if hasattr(error, "retryable") or not is_final(error, attempt):
            # Our own errors are left to the caller that catches them.
            raise
        refused = isinstance(error, _REFUSALS)
        log.exception("the database refuses a value" if refused else "work failed unexpectedly")
        raise (RefusedValueError if refused else DefectError) from error


class FinalErrorInterceptor(Interceptor):
    """Has no activity repeated after an error that it would end in again."""

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
            # The code alone: the text of the database may quote the values
            # (architecture.md#no-user-data).
            raise ApplicationError(
                f"The database rejected the operation ({code}).",
                type="database_refused",
                non_retryable=True,
            ) from error
        except TemporalError:
            raise
        except Exception as error:
            attempt = activity.info().attempt
            if not is_final(error, attempt):
                raise
            # Its text stays in the log, for it may quote anything (architecture.md#no-user-data).
            log.exception("an activity is not done again", attempt=attempt)
            raise ApplicationError(
                message_of_failure(error), type=type(error).__name__, non_retryable=True
            ) from error


FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between two tries."""

_Result = TypeVar("_Result")


async def awaiting_database(work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Repeat idempotent work until the database is available (ADR 0005).

    The timeout of the activity limits it. Raises any other error of the work.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await work()
        except Exception as error:
            if not is_away(error):
                raise
            if is_disk_full(error):
                log.error("the disk of the database is full")  # noqa: TRY400  # the error says all that is known
            else:
                log.warning("the database is away", reason=type(error).__name__)
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 2)
