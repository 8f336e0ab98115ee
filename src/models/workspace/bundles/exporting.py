"""Reading rows of a workspace as the lines of a bundle, a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Subquery,
    Text,
    Uuid,
    any_,
    cast,
    func,
    literal,
    select,
    tuple_,
)

from models.core.base import Id
from models.core.bundles import BundleKind
from models.data.fields.bundle import DATABASES
from runtime.database import UnitOfWork

Position = list[str | int]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a bundle, and the position of the last; None when no more follow."""

    lines: list[bytes]
    position: Position | None


async def read_lines(
    work: UnitOfWork,
    workspace_id: Id,
    kind: BundleKind,
    after: Sequence[str | int] | None,
    limit: int,
    database_id: Id | None = None,
) -> Lines:
    """The next rows of a kind, of one database when each has its own file.

    A page of rows that stay together has more than `limit` of them when one group does.
    """
    rows = kind.rows(workspace_id).subquery("rows")
    conditions = [] if database_id is None else [rows.c.database_id == database_id]
    if kind.group is not None:
        return await _read_whole(work, kind, rows, after, limit)
    order = [rows.c[name] for name in kind.order]
    if after is not None:
        typed = (
            literal(_native(value, one), one.type) for value, one in zip(after, order, strict=True)
        )
        conditions.append(tuple_(*order) > tuple_(*typed))
    page = await work.rows(
        select(_line(kind, rows).label("line"), *order)
        .where(*conditions)
        .order_by(*order)
        .limit(limit)
    )
    last = [_plain(page[-1]._mapping[name]) for name in kind.order] if page else None
    return Lines(_shown(kind, page), last if len(page) == limit else None)


async def next_database(work: UnitOfWork, workspace_id: Id, after: str | None) -> Id | None:
    """The first database of a workspace, or that behind another; None when no more follow."""
    rows = DATABASES.rows(workspace_id).subquery("rows")
    follows = [] if after is None else [rows.c.id > Id(after)]
    found: Id | None = await work.scalar(
        select(rows.c.id).where(*follows).order_by(rows.c.id).limit(1)
    )
    return found


async def blobs_of(
    work: UnitOfWork, workspace_id: Id, kind: BundleKind, ids: Sequence[str]
) -> list[tuple[str, str]]:
    """SHA-256 and key of the objects that hold the bytes of these files."""
    table = kind.table.c
    wanted = any_(literal([Id(one) for one in ids], ARRAY(Uuid)))
    found = await work.rows(
        select(table.sha256, table.object_key).where(
            table.workspace_id == workspace_id, table.id == wanted
        )
    )
    return [(row.sha256.hex(), row.object_key) for row in found]


async def _read_whole(
    work: UnitOfWork,
    kind: BundleKind,
    rows: Subquery,
    after: Sequence[str | int] | None,
    limit: int,
) -> Lines:
    """Rows of whole groups, each behind its parent."""
    assert kind.group is not None
    assert kind.parent is not None
    group = rows.c[kind.group]
    follows = [] if after is None else [group > Id(str(after[0]))]
    upto = await work.scalar(
        select(group).where(*follows).order_by(group).offset(limit - 1).limit(1)
    )
    if upto is not None:
        follows.append(group <= upto)
    page = await work.rows(
        select(
            _line(kind, rows).label("line"),
            group.label("whole"),
            rows.c.id,
            rows.c[kind.parent].label("parent"),
        )
        .where(*follows)
        .order_by(group, rows.c.id)
    )
    return Lines(_shown(kind, _parents_first(page)), None if upto is None else [str(upto)])


def _shown(kind: BundleKind, found: Sequence[Any]) -> list[bytes]:
    lines = [row.line.encode() for row in found]
    return lines if kind.redact is None else [to_json(kind.redact(from_json(one))) for one in lines]


def _parents_first(found: Sequence[Any]) -> list[Any]:
    """The rows with each behind the one it names; rows that go in circles are left out."""
    below: dict[Any, list[Any]] = {}
    for row in found:
        below.setdefault((row.whole, row.parent), []).append(row)
    ordered = [row for (_, parent), rows in below.items() if parent is None for row in rows]
    for row in ordered:
        ordered.extend(below.get((row.whole, row.id), ()))
    return ordered


def _line(kind: BundleKind, rows: Subquery) -> ColumnElement[str]:
    pairs: list[Any] = [literal("type", Text), literal(kind.name, Text)]
    for key, one in kind.columns.items():
        pairs += [literal(key, Text), rows.c[one.name]]
    return cast(func.json_build_object(*pairs), Text)


def _native(value: str | int, of: ColumnElement[Any]) -> Id | str | int:
    return Id(str(value)) if isinstance(of.type, Uuid) else value


def _plain(value: object) -> str | int:
    return value if isinstance(value, int) else str(value)
