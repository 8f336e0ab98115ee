"""The metadata every table belongs to, and expressions that keep statements on an index."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlmodel import SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata: sa.MetaData = SQLModel.metadata

# Rows are read and written, never validated: no process builds a validator for a table.
SQLModel.model_config["defer_build"] = True

# Nor are they objects: SQLModel maps no class below one that is itself a table.
SQLModel.model_config["table"] = True

Timestamp = sa.DateTime(timezone=True)
"""The column type of every moment: `timestamptz`."""

BELONGS_TO = "belongs_to"
"""Key of `Table.info` for rows without a foreign key: by table they belong to, the columns that
hold its `workspace_id` and `id`."""


def listed(values: Iterable[StrEnum]) -> str:
    """The values of an enumeration as SQL lists them."""
    return ", ".join(f"'{value.value}'" for value in values)


def one_of(column: str, values: type[StrEnum]) -> sa.CheckConstraint:
    """The constraint that a column holds one of the values of an enumeration."""
    return sa.CheckConstraint(f"{column} IN ({listed(values)})", name=column)


@cache
def table_of(model: type[SQLModel]) -> sa.Table:
    """The Core table that a SQLModel class declares: what queries are written against."""
    arguments: tuple[Any, ...] = getattr(model, "__table_args__", ())
    options = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
    constraints = arguments[:-1] if options else arguments
    columns = [_column(model, name) for name in model.model_fields]
    return sa.Table(str(model.__tablename__), metadata, *columns, *constraints, **options)


def _column(model: type[SQLModel], name: str) -> sa.Column[Any]:
    column: sa.Column[Any] = getattr(model, name)
    column.name = column.key = column.name or name
    return column


def same_workspace(
    column: str, target: str, ondelete: str | None = None
) -> sa.ForeignKeyConstraint:
    """The constraint that a column names a row of its workspace; `target` is `table.column`."""
    table = target.partition(".")[0]
    return sa.ForeignKeyConstraint(
        ["workspace_id", column], [f"{table}.workspace_id", target], ondelete=ondelete
    )


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    """An index of the rows alone for which a condition holds."""
    return sa.Index(name, *columns, unique=unique, postgresql_where=sa.text(where))


def is_among(column: sa.ColumnElement[Any], ids: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """`column = ANY (ARRAY (SELECT …))`: the ids are read first, and each is found by the index.

    `IN` is a join. One that was planned while its tables were empty may go through all rows of one
    table for each row of the other, and does so until statistics are renewed.
    """
    return column == sa.any_(sa.func.array(ids.scalar_subquery(), type_=sa.ARRAY(column.type)))


def skip_scan(
    name: str, columns: Sequence[sa.ColumnElement[Any]], *where: sa.ColumnElement[bool]
) -> sa.CTE:
    """Find each combination of values by one step along the index, however many rows have it."""
    next_row = sa.select(*columns).where(*where).order_by(*columns).limit(1)
    first = next_row.subquery()
    rows = sa.select(*first.c).cte(name, recursive=True)
    beyond = (
        next_row.where(sa.tuple_(*columns) > sa.tuple_(*rows.c)).correlate(rows).lateral("beyond")
    )
    return rows.union_all(sa.select(*beyond.c).select_from(rows.join(beyond, sa.true())))
