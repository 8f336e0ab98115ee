"""The settings that a session of PostgreSQL begins with, straight or through a pooler.

A pooler in transaction mode (ADR 0109) gives each transaction any of its sessions. It refuses
options, keeps no prepared statement, and sets the time limits by itself. The time zone alone it
carries along, as PostgreSQL reports it.
"""

from typing import Any

import psycopg
from sqlalchemy.engine import AdaptedConnection
from sqlalchemy.pool import ConnectionPoolEntry

# Below the 30 s of an activity: the database has the first word on what is too long.
LIMITS = {"statement_timeout": "20s", "idle_in_transaction_session_timeout": "1min"}
TIME_ZONE = "UTC"

_STRAIGHT = " ".join(f"-c {name}={value}" for name, value in LIMITS.items())
_STRAIGHT = f"{_STRAIGHT} -c timezone={TIME_ZONE}"
_PLANNED_ONCE = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
"""Of connections for single statements. Planning a claim of the outbox takes three times as long as
executing it, so it is planned once for a connection. A plan made while a table is empty would read
all of it later, until statistics are renewed: these statements look rows up by indexes, always."""

STRAIGHT = {"options": _STRAIGHT}
SINGLE_STATEMENTS = {"options": f"{_STRAIGHT} {_PLANNED_ONCE}"}
POOLED: dict[str, Any] = {"prepare_threshold": None}
"""Arguments of connections."""

_SET_TIME_ZONE = f"SET TIME ZONE '{TIME_ZONE}'"


def set_time_zone(connection: AdaptedConnection, _record: ConnectionPoolEntry) -> None:
    """Called by an engine with each new connection to a pooler."""
    cursor = connection.cursor()
    cursor.execute(_SET_TIME_ZONE)
    cursor.close()
    connection.commit()


async def set_time_zone_of_single(connection: psycopg.AsyncConnection[Any]) -> None:
    """Called by a pool of the driver's own, which commits each statement."""
    await connection.execute(_SET_TIME_ZONE)
