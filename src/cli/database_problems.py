"""The failures of a database that an operator mends, in a sentence."""

import psycopg
from sqlalchemy.exc import DBAPIError

_UNUSABLE = ("08", "28", "3D", "53", "57P")
"""Classes of SQLSTATE: no connection, wrong credential, no such database, no room, shut down."""


def sentence_of(error: BaseException) -> str | None:
    """The problem with the database at DATABASE_URL; None for any other error."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(origin, psycopg.errors.UndefinedTable):
        return "The database at DATABASE_URL lacks tables of this build. Run `workspace migrate`."
    if not isinstance(origin, psycopg.OperationalError):
        return None
    if origin.sqlstate is not None and not origin.sqlstate.startswith(_UNUSABLE):
        return None
    reason = str(origin).strip().splitlines()[0].removesuffix(".")
    return f"The database at DATABASE_URL cannot be used: {reason}."
