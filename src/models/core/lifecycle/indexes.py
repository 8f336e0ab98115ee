"""The indexes of tables of durable work."""

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import Index

from runtime.schema import listed, partial_index


def indexes_of_work(table: str, open_states: Iterable[StrEnum]) -> tuple[Index, ...]:
    """The indexes by which sweeps and bounds meet open rows alone, whatever lies behind them.

    For a table whose rows are of one family, and hold places by their `dispatched_at`.
    """
    is_open = f"status IN ({listed(open_states)})"
    dispatched = f"dispatched_at IS NOT NULL AND {is_open}"
    return (
        partial_index(f"ix_{table}_open", "id", where=is_open),
        partial_index(f"ix_{table}_open_workspace_id", "workspace_id", where=is_open),
        partial_index(f"ix_{table}_dispatched", "workspace_id", where=dispatched),
    )
