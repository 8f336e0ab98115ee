"""One kind of rows in a bundle, as the noun that has the table describes it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic.alias_generators import to_camel
from sqlalchemy import Select, Table

from models.core.base import Id, JsonObject
from models.core.bundles.findings import Findings
from models.core.bundles.rules import USER, Stage
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

Row = JsonObject
"""A row: column names to JSON values, ids and moments as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTarget:
    """The destination of rows of a bundle.

    `entry_id` is the entry of the import run, which gives rows their ids (`rules.imported_id`).
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
"""The last word of a noun on rows before they are inserted; their ids are ids of the target.

Nothing is written, and nothing asked for that rows of the same stage change.
"""

Store = Callable[[UnitOfWork, ImportTarget, Sequence[Row]], Awaitable[Sequence[Row]]]
"""Writes what rows need in other tables, and gives the rows that are inserted then."""

Judge = Callable[[Sequence[Row], Sequence[Row], Findings], None]
"""Tells what will be left out of rows, which are as the bundle has them, with the rows beside."""

Identify = Callable[[UnitOfWork, ImportTarget, Sequence[Row]], Awaitable[Mapping[str, str]]]
"""Source id → target id of rows of a bundle; one that is not in it stays unknown."""

Conclude = Callable[[UnitOfWork, ImportTarget], Awaitable[None]]
"""The last step of a noun, once everything is applied."""


@dataclass(frozen=True, kw_only=True)
class BundleKind:
    """Rows of one table.

    `rows` selects what a bundle has of a workspace: what is in the trash stays behind. `file` is
    the path below `workspaces/<id>/`; `{database_id}` in it makes one file per database.
    """

    name: str
    stage: Stage
    file: str
    table: Table
    rows: Callable[[Id], Select[Any]]
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
    """True when rows are what somebody is or has as a member: no import changes such rows of a
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
