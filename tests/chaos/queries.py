"""Queries of databases whose server may have died since the last one."""

from typing import Any

import psycopg

from tests.support.patience import ENOUGH

_connections: dict[str, psycopg.AsyncConnection[Any]] = {}


async def fetch(url: str, query: str, *parameters: Any) -> list[Any]:
    """Rows, over a connection that is kept, and made anew when its server has dropped it."""
    kept = _connections.get(url)
    if kept is not None:
        try:
            return await _rows(kept, query, parameters)
        except psycopg.OperationalError:
            await kept.close()
    _connections[url] = await psycopg.AsyncConnection.connect(
        url, autocommit=True, connect_timeout=ENOUGH
    )
    return await _rows(_connections[url], query, parameters)


async def close_connections() -> None:
    """Close those that are kept."""
    while _connections:
        _, connection = _connections.popitem()
        await connection.close()


async def _rows(
    connection: psycopg.AsyncConnection[Any], query: str, parameters: tuple[Any, ...]
) -> list[Any]:
    return await (await connection.execute(query, parameters)).fetchall()
