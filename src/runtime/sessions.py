"""The settings that a session of PostgreSQL begins with, straight or through a pooler.

A pooler in transaction mode (ADR 0109) gives each transaction any of its sessions. It refuses
options, keeps no prepared statement, and sets the time limits by itself. The time zone alone it
carries along, as PostgreSQL reports it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import psycopg
from typing_extensions import override

# Below the 30 s of an activity: the database has the first word on what is too long.
LIMITS = {"statement_timeout": "20s", "idle_in_transaction_session_timeout": "1min"}
TIME_ZONE = "UTC"

_STRAIGHT = " ".join(
    f"-c {name}={value}" for name, value in (LIMITS | {"timezone": TIME_ZONE}).items()
)
_PLANNED_ONCE = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
"""Of connections for single statements. Planning a claim of the outbox takes three times as long as
executing it, so it is planned once for a connection. A plan made while a table is empty would read
all of it later, until statistics are renewed: these statements look rows up by indexes, always."""


class PooledConnection(psycopg.AsyncConnection[Any]):
    """A connection to a pooler."""

    @classmethod
    @override
    async def connect(cls, conninfo: str = "", *, autocommit: bool = False, **options: Any) -> Self:
        connection = await super().connect(conninfo, autocommit=True, **options)
        try:
            await connection.execute(f"SET TIME ZONE '{TIME_ZONE}'")
            await connection.set_autocommit(autocommit)
        except psycopg.Error:
            await connection.close()
            raise
        return connection


@dataclass(frozen=True, slots=True)
class Sessions:
    """The arguments of connections, and the class of those for single statements."""

    of_engine: Mapping[str, Any]
    of_singles: Mapping[str, Any]
    connection_class: type[psycopg.AsyncConnection[Any]]


STRAIGHT = Sessions(
    {"options": _STRAIGHT},
    {"options": f"{_STRAIGHT} {_PLANNED_ONCE}"},
    psycopg.AsyncConnection,
)
_UNPREPARED = {"prepare_threshold": None}
POOLED = Sessions(
    {**_UNPREPARED, "async_creator_fn": PooledConnection.connect}, _UNPREPARED, PooledConnection
)
