"""Errors of the database, by what is left of the transaction that met them. Pure."""

import psycopg
from sqlalchemy.exc import DBAPIError, PendingRollbackError

_LOST = frozenset({"57P01", "57P02", "57P03"})
"""The server ends, or does not take connections yet."""
_DISK_FULL = "53100"
_CONFLICTS = frozenset({"40001", "40P01", "55P03", "57014"})
"""A deadlock, or a lock or an answer that took too long."""


def is_connection_lost(error: BaseException) -> bool:
    """Recognize the end of a transaction: nothing helps in it, whatever is rolled back."""
    if isinstance(error, PendingRollbackError):
        return True
    cause = _cause(error)
    if not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return cause.sqlstate is None or cause.sqlstate in _LOST or cause.sqlstate[:2] == "08"


def is_conflict(error: BaseException) -> bool:
    """Recognize that others were in the way: a repetition is likely to succeed."""
    cause = _cause(error)
    return cause is not None and cause.sqlstate in _CONFLICTS


def is_disk_full(error: BaseException) -> bool:
    """Recognize a server that has no room left for what is written."""
    cause = _cause(error)
    return cause is not None and cause.sqlstate == _DISK_FULL


def _cause(error: BaseException) -> psycopg.Error | None:
    origin = error.orig if isinstance(error, DBAPIError) else error
    return origin if isinstance(origin, psycopg.Error) else None
