"""Keyset pages that stay stable while rows change, with a bound on the bytes of an answer.

A cursor holds the sort values of the last row shown. It is signed together with the list, the
workspace and the filters it belongs to, so it cannot be altered or carried elsewhere.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any, Generic, Self, TypeVar

import sqlalchemy as sa
from typing_extensions import override

from models.core.base import Nullable, Shape
from runtime import base64url
from runtime.crypto import KeyRing, fingerprint
from runtime.database import UnitOfWork
from runtime.errors import ValidationError

DEFAULT_LIMIT = 30
MAX_LIMIT = 100
WHOLE_LIMIT = 1_000
"""Of lists that are answered whole unless a limit is given, and are seldom as long as this."""

_SIGNATURE_BYTES = 16
_MAX_CURSOR = 4096

Row = TypeVar("Row")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """The items that one call of a list shows; `cursor` continues it, None ends it."""

    items: list[Item]
    cursor: str | None


class Listed(Shape):
    """A page of a list on the wire: its items under the name that a list of the resource has."""

    cursor: Nullable[str]

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        # Fields of a base come first; a page is read from its items to its cursor.
        cls.__pydantic_fields__["cursor"] = cls.__pydantic_fields__.pop("cursor")

    @classmethod
    def of(cls, page: Page[Row], shape: Callable[[Row], object] | None = None) -> Self:
        """The items of a page as they are shown by `shape`, else read from rows by attribute."""
        (name,) = cls.model_fields.keys() - {"cursor"}
        items = page.items if shape is None else [shape(row) for row in page.items]
        return cls.model_validate({name: items, "cursor": page.cursor})


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The request for one page of a list.

    Most lists are in the order of some of their columns: `ascending` and `descending` read them.
    Others fetch `fetch` rows after `after` (the sort values of the last row shown, None at the
    start) and end with `page.of(rows, lambda row: (row.created_at, row.id))`.
    """

    limit: int
    after: tuple[Any, ...] | None
    keys: KeyRing
    context: bytes

    @property
    def fetch(self) -> int:
        """One row more than is shown: it tells whether there is a next page."""
        return self.limit + 1

    async def ascending(
        self, work: UnitOfWork, rows: sa.Select[Any], *order: sa.ColumnElement[Any], of: type[Row]
    ) -> Page[Row]:
        """The page of `rows` in the order of these columns, which are among those selected.

        `of` as in `UnitOfWork.rows`.
        """
        if self.after is not None:
            rows = rows.where(sa.tuple_(*order) > sa.tuple_(*self.after))
        return await self._read(work, rows.order_by(*order), order, of)

    async def descending(
        self, work: UnitOfWork, rows: sa.Select[Any], *order: sa.ColumnElement[Any], of: type[Row]
    ) -> Page[Row]:
        """As `ascending`, the other way round."""
        if self.after is not None:
            rows = rows.where(sa.tuple_(*order) < sa.tuple_(*self.after))
        return await self._read(
            work, rows.order_by(*(column.desc() for column in order)), order, of
        )

    async def _read(
        self,
        work: UnitOfWork,
        rows: sa.Select[Any],
        order: Sequence[sa.ColumnElement[Any]],
        of: type[Row],
    ) -> Page[Row]:
        page = await work.rows(rows.limit(self.fetch), of=of)
        return self.of(page, lambda row: tuple(getattr(row, str(column.key)) for column in order))

    def among(self, items: Sequence[Item]) -> Page[Item]:
        """The page of items that are fixed while a release runs."""
        first = 0 if self.after is None else self.after[0] + 1
        page = self.of(list(enumerate(items))[first:], lambda numbered: numbered[:1])
        return Page([item for _, item in page.items], page.cursor)

    def of(
        self,
        rows: Sequence[Row],
        position: Callable[[Row], tuple[Any, ...]],
        *,
        cut: bool = False,
    ) -> Page[Row]:
        """The page made of these rows; `position` gives the sort values of one.

        `cut` says that more rows were found than are given here.
        """
        shown = list(rows[: self.limit])
        if not shown or not (cut or len(rows) > self.limit):
            return Page(shown, None)
        return Page(shown, self.cursor_behind(*position(shown[-1])))

    def cursor_behind(self, *values: object) -> str:
        """The cursor of the page after a row with these sort values."""
        return _encode(self.keys, self.context, values)


def page_request(keys: KeyRing, limit: int, cursor: str | None, *context: object) -> PageRequest:
    """Read a cursor made for the same context: list name, workspace, parent, filters.

    Raises ValidationError at `cursor` for one that is altered or belongs to another list.
    """
    bound = fingerprint(*(str(part).encode() for part in context))
    after = None if cursor is None else _decode(keys, bound, cursor)
    return PageRequest(limit=limit, after=after, keys=keys, context=bound)


def _encode(keys: KeyRing, context: bytes, position: tuple[object, ...]) -> str:
    payload = json.dumps([plain(value) for value in position], separators=(",", ":")).encode()
    signature = keys.sign(context + payload)[:_SIGNATURE_BYTES]
    return base64url.encode(signature + payload)


def _decode(keys: KeyRing, context: bytes, cursor: str) -> tuple[Any, ...]:
    if len(cursor) > _MAX_CURSOR:
        raise _refused()
    raw = base64url.decode(cursor) or b""
    signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not keys.verify(context + payload, signature, _SIGNATURE_BYTES):
        raise _refused()
    return tuple(native(value) for value in json.loads(payload))


def _refused() -> ValidationError:
    return ValidationError.at("cursor", "Invalid cursor. Start again without a cursor.")


def plain(value: object) -> object:
    """A sort value as JSON has it."""
    if isinstance(value, datetime):
        return {"t": value.isoformat()}
    if isinstance(value, uuid.UUID):
        return {"u": value.hex}
    return value


def native(value: object) -> object:
    """The sort value that `plain` wrote."""
    if isinstance(value, dict):
        return datetime.fromisoformat(value["t"]) if "t" in value else uuid.UUID(value["u"])
    return value


ANSWER_BUDGET = 8 * 1024 * 1024
"""Bytes of JSON after which no further row is answered; the first row always is."""

_CARRIED = "carried"
_TURN = "turn"


def within_budget(
    statement: sa.Select[Any],
    order: Sequence[sa.ColumnElement[Any]],
    limit: int,
    heavy: Sequence[str],
) -> sa.Select[Any]:
    """The first rows of a statement, the `heavy` JSON columns null in those past the budget.

    So a reader sees that there are more (`carried`) without their weight.
    """
    turn = sa.func.row_number().over(order_by=order).label(_TURN)
    page = statement.add_columns(turn).order_by(*order).limit(limit).subquery()
    weights = [
        sa.func.coalesce(sa.func.octet_length(sa.cast(page.c[name], sa.Text)), 0) for name in heavy
    ]
    weight = reduce(add, weights)
    before = sa.func.sum(weight).over(order_by=page.c[_TURN], rows=(None, -1))
    fits = sa.func.coalesce(before, 0) < ANSWER_BUDGET
    return sa.select(
        *(
            sa.case((fits, column)).label(column.name) if column.name in heavy else column
            for column in page.c
        ),
        fits.label(_CARRIED),
    ).order_by(page.c[_TURN])


def carried_rows(rows: Sequence[Any]) -> list[Any]:
    """The rows that the budget carries: those before the first that it does not."""
    return [row for row in rows if getattr(row, _CARRIED)]
