"""Declarations of rows in a bundle: kinds, stages, imported ids, findings of a check."""

import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import JsonValue, TypeAdapter
from pydantic import ValidationError as ShapeError
from pydantic.alias_generators import to_camel

from models.core.base import Id, JsonObject
from models.core.problems import sentence
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

MAX_NOTES = 100
"""Different notes that are kept; the rest is counted together."""
_MORE = "more"


@dataclass(slots=True)
class Findings:
    """Rows by kind, and notes: `(code, message)` with how often each was made.

    A warning says what will be missing or changed, an error blocks the import.
    """

    rows: Counter[str] = field(default_factory=Counter)
    warnings: Counter[tuple[str, str]] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    def warn(self, code: str, message: str, times: int = 1) -> None:
        _note(self.warnings, code, message, times)

    def refuse(self, code: str, message: str, times: int = 1) -> None:
        _note(self.errors, code, message, times)

    def add(self, findings: "Findings") -> None:
        self.rows.update(findings.rows)
        for mine, theirs in ((self.warnings, findings.warnings), (self.errors, findings.errors)):
            for (code, message), times in theirs.items():
                _note(mine, code, message, times)

    def to_json(self) -> dict[str, Any]:
        """As it is stored: `{rows, warnings: [{code, message, times}], errors}`."""
        return {
            "rows": dict(self.rows),
            "warnings": _listed(self.warnings),
            "errors": _listed(self.errors),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Findings":
        return cls(
            Counter(document["rows"]), _counted(document["warnings"]), _counted(document["errors"])
        )


def _note(notes: Counter[tuple[str, str]], code: str, message: str, times: int) -> None:
    key = (code, message)
    full = len(notes) >= MAX_NOTES and key not in notes
    notes[(_MORE, "More problems are not listed.") if full else key] += times


def _listed(notes: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"code": code, "message": message, "times": times}
        for (code, message), times in notes.items()
    ]


def _counted(notes: Iterable[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter({(note["code"], note["message"]): note["times"] for note in notes})


USER = "user"
"""The kind that references to people name."""


class Stage(StrEnum):
    """A part of a bundle that is applied together, in this order (docs/bundles.md)."""

    CREATING = "creating"
    SCHEMA = "schema"
    RECORDS = "records"
    RELATIONS = "relations"
    FILES = "files"
    CONTENT = "content"
    AUTOMATIONS = "automations"


_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def imported_id(entry_id: Id, source_id: Id) -> Id:
    """The id that an import gives to what has `source_id` in its bundle.

    Repeating an import gives the same. The timestamp of the source's id is kept, so that rows sort
    by id as they did.
    """
    return UUID(imported_text(entry_id.hex, str(source_id)))


def imported_text(entry_hex: str, source_id: str) -> str:
    """`imported_id` as text from text, for very many; `entry_hex` are the digits of the entry."""
    own = source_id.replace("-", "")
    rest = hashlib.md5((entry_hex + own).encode(), usedforsecurity=False).hexdigest()
    return f"{source_id[:18]}-8{rest[:3]}-{rest[3:15]}"


def shape_problem(shape: TypeAdapter[Any], value: object, name: str) -> str | None:
    """The first thing of a value that its shape does not allow, as the end of a sentence."""
    try:
        shape.validate_python(value)
    except ShapeError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, (name, *first['loc'])))}: {sentence(first)}"
    return None


def ids_in(value: JsonValue) -> Iterator[str]:
    """The strings inside a JSON value that have the form of an id, keys of objects included."""
    if isinstance(value, str):
        if len(value) == 36 and _ID.fullmatch(value):
            yield value.lower()
    elif isinstance(value, list):
        for item in value:
            yield from ids_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from ids_in(key)
            yield from ids_in(item)


def rewritten(value: JsonValue, ids: Mapping[str, str]) -> JsonValue:
    """A JSON value in which each string that is a key of `ids` is replaced by what it maps to."""
    if isinstance(value, str):
        return ids.get(value.lower(), value) if len(value) == 36 else value
    if isinstance(value, list):
        return [rewritten(item, ids) for item in value]
    if isinstance(value, dict):
        # Keys have no call of their own: there are very many.
        return {
            (ids.get(key.lower(), key) if len(key) == 36 else key): rewritten(item, ids)
            for key, item in value.items()
        }
    return value


Row = JsonObject
"""A row: column names to JSON values, ids and moments as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTarget:
    """The destination of rows of a bundle.

    `entry_id` is the entry of the import run, which gives rows their ids (`imported_id`).
    `user_id` stands in for people whom the platform does not know. `hidden` says that people see
    the workspace already, so that what comes in is kept out of their sight until it is verified.
    """

    run_id: Id
    entry_id: Id
    workspace_id: Id
    user_id: Id
    keys: KeyRing
    hidden: bool = False


Prepare = Callable[[UnitOfWork, ImportTarget, Sequence[Row]], Awaitable[Sequence[Row]]]
"""The last word of a resource on rows before they are inserted; their ids are ids of the target.

Nothing is written, and nothing asked for that rows of the same stage change.
"""

Store = Callable[[UnitOfWork, ImportTarget, Sequence[Row]], Awaitable[Sequence[Row]]]
"""Writes what rows need in other tables, and gives the rows that are inserted then."""

Judge = Callable[[Sequence[Row], Sequence[Row], Findings], None]
"""Tells what will be left out of rows, which are as the bundle has them, with the rows beside."""

Identify = Callable[[UnitOfWork, ImportTarget, Sequence[Row]], Awaitable[Mapping[str, str]]]
"""Source id → target id of rows of a bundle; one that is not in it stays unknown."""

Conclude = Callable[[UnitOfWork, ImportTarget], Awaitable[None]]
"""The last step of a resource, once everything is applied."""


@dataclass(frozen=True, kw_only=True)
class BundleKind:
    """Rows of one table.

    `rows` selects what a bundle has of a workspace: what is in the trash stays behind. `file` is
    the path below `workspaces/<id>/`; `{database_id}` in it makes one file per database.
    """

    name: str
    stage: Stage
    file: str
    table: sa.Table
    rows: Callable[[Id], sa.Select[Any]]
    references: Mapping[str, str] = field(default_factory=dict)
    """Column → kind of what it names, `*` for any. Where that is missing, the column becomes null,
    and a row that needs it is left out; a person who is missing is replaced by who imports."""
    required: Collection[str] = ()
    """Columns that may be null, and whose row is left out when what they name is missing; of a
    person: without them there is no such row."""
    contents: Collection[str] = ()
    """JSON columns in which ids of the bundle are replaced, wherever they stand."""
    lists: Collection[str] = ()
    """JSON columns that hold arrays; all others hold objects."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Column → why no bundle has it."""
    imported_as: Mapping[str, Any] = field(default_factory=dict)
    """Column → the value it gets whatever the bundle says."""
    order: Sequence[str] = ("id",)
    """Columns that rows are paged by. A row that another row of its kind names comes before it."""
    group: str | None = None
    """A column whose rows of one value stay together in a page, each behind its `parent`."""
    parent: str | None = None
    """The column by which a row names another of its kind."""
    unique_key: bool = False
    """True when `key` is unique in a workspace: one that is taken is numbered."""
    redact: Callable[[Row], Row] | None = None
    """A row of a bundle (keys as there) without its secrets."""
    check: Callable[[Row], str | None] | None = None
    """The problem with a row of a bundle by itself, as the end of a sentence."""
    blobs: bool = False
    """True when rows are files, whose bytes a bundle has too."""
    identity: str = "id"
    """The column by which other rows name one of these, if it is the primary key or a person's."""
    hides: bool = False
    """True when rows are seen by themselves: `deleted_at` keeps them out of sight until an import
    is verified. All others are seen through one of these."""
    of_members: bool = False
    """True when rows are what someone is or has as a member: no import changes such rows of a
    workspace that is there."""
    identify: Identify | None = None
    """Gives rows their ids in the target, instead of `imported_id`."""
    prepare: Prepare | None = None
    store: Store | None = None
    copied: bool = False
    """True when rows are very many, new, and say all that their columns need: COPY takes them."""
    judge: Judge | None = None
    beside: str | None = None
    """The kind whose rows `judge` is given too, all of a workspace."""
    conclude: Conclude | None = None

    @cached_property
    def columns(self) -> Mapping[str, Any]:
        """Column by its name in a bundle; some are other tables'."""
        left_out = {"workspace_id", "depth", *self.left_out}
        columns: Mapping[str, Any] = dict(self.rows(Id(int=0)).selected_columns.items())
        return {
            str(to_camel(name)): self.table.c.get(name, default)
            for name, default in columns.items()
            if name not in left_out
        }

    @property
    def source_kind(self) -> str | None:
        """The kind under which others name a row of this one; None when nothing names it."""
        if self.identify is not None:
            return USER
        return self.name if [column.name for column in self.table.primary_key] == ["id"] else None
