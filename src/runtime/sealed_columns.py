"""Columns that hold what a `KeyRing` made, described where they are declared.

A change of the master secret finds by these descriptions what is still under the key before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, LargeBinary, MetaData, cast, func, literal
from sqlalchemy.dialects.postgresql import JSONB

from runtime.crypto import KEY_ID_BYTES

_SEALED = "sealed"

_MOMENTS = ("created_at", "registered_at", "updated_at")
"""Columns of which the first that a table has says since when a row is there."""


@dataclass(frozen=True, slots=True)
class Seal:
    """The description of a sealed value.

    `place` takes a row with the columns of its key and `place_columns`. `digest` is a
    column with a digest of the same value. `member` is the member of a JSON object that holds the
    value in base64. Short-lived values end by themselves within a day or so: nobody waits for them.
    """

    place: Callable[[Any], str]
    place_columns: tuple[str, ...] = ()
    digest: str | None = None
    member: str | None = None
    short_lived: bool = False


def sealed(
    place: Callable[[Any], str],
    place_columns: tuple[str, ...] = (),
    *,
    digest: str | None = None,
    member: str | None = None,
    short_lived: bool = False,
) -> dict[str, Any]:
    """The arguments of a column that holds a sealed value (see `Seal`)."""
    return {"info": {_SEALED: Seal(place, place_columns, digest, member, short_lived)}}


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column, or a member of its JSON objects, with sealed values."""

    column: Column[Any]
    seal: Seal

    @property
    def name(self) -> str:
        """The kind of value, as operators see it."""
        return f"{self.column.table.name}.{self.column.name}"

    @property
    def key(self) -> Sequence[Column[Any]]:
        """The columns of the primary key."""
        return list(self.column.table.primary_key.columns)

    @property
    def moment(self) -> Column[Any]:
        """The column with the time since when a row is there."""
        columns = self.column.table.columns
        return next(columns[name] for name in _MOMENTS if name in columns)

    @property
    def value(self) -> ColumnElement[Any]:
        """The sealed bytes; null where a row has none."""
        if self.seal.member is None:
            return self.column
        return func.decode(self.column[self.seal.member].astext, "base64", type_=LargeBinary)

    @property
    def key_id(self) -> ColumnElement[Any]:
        """The id of the key that a value is sealed under."""
        return key_id_of(self.value)

    def holding(self, value: ColumnElement[Any]) -> ColumnElement[Any]:
        """The content of the column with another value."""
        if self.seal.member is None:
            return value
        text = func.replace(func.encode(value, "base64"), "\n", "")
        member = func.jsonb_build_object(literal(self.seal.member), text)
        return cast(self.column.op("||")(member), JSONB)


def key_id_of(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """The id of the key at the begin of a sealed value."""
    return func.substr(value, 1, KEY_ID_BYTES, type_=LargeBinary)


def sealed_columns(metadata: MetaData) -> Sequence[SealedColumn]:
    """Every column with sealed values, out of the tables imported so far, by name."""
    columns = (
        SealedColumn(column, column.info[_SEALED])
        for table in metadata.tables.values()
        for column in table.columns
        if _SEALED in column.info
    )
    return sorted(columns, key=lambda one: one.name)
