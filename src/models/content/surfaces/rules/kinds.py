"""The kinds of surfaces, and which blocks stand on each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from models.content.surfaces.rules import contents
from models.core.access.rules import Scope
from models.core.base import Input


class SurfaceKind(StrEnum):
    PAGE = "page"
    NOTE = "note"
    CANVAS = "canvas"
    DASHBOARD = "dashboard"
    FORM = "form"
    """Beside the questions of a form: what its makers write for each other."""
    RECORD = "record"
    """The content of a record, or of a record template."""


@dataclass(frozen=True, slots=True)
class BlockRule:
    """`nests` says whether a block of this kind holds others."""

    content: type[Input]
    nests: bool = False


_COLUMN_LIST, _COLUMN = "column_list", "column"

_DOCUMENT: Mapping[str, BlockRule] = {
    "paragraph": BlockRule(contents.Words, nests=True),
    "heading_1": BlockRule(contents.Words, nests=True),
    "heading_2": BlockRule(contents.Words, nests=True),
    "heading_3": BlockRule(contents.Words, nests=True),
    "bulleted_list_item": BlockRule(contents.Words, nests=True),
    "numbered_list_item": BlockRule(contents.Words, nests=True),
    "to_do": BlockRule(contents.ToDo, nests=True),
    "toggle": BlockRule(contents.Words, nests=True),
    "quote": BlockRule(contents.Words, nests=True),
    "callout": BlockRule(contents.Callout, nests=True),
    "code": BlockRule(contents.Code),
    "equation": BlockRule(contents.Equation),
    "divider": BlockRule(contents.Nothing),
    "table_of_contents": BlockRule(contents.Nothing),
    "image": BlockRule(contents.Media),
    "video": BlockRule(contents.Media),
    "audio": BlockRule(contents.Media),
    "file": BlockRule(contents.Media),
    "embed": BlockRule(contents.Embed),
    "bookmark": BlockRule(contents.Bookmark),
    "table": BlockRule(contents.Table),
    "database_view": BlockRule(contents.DatabaseView),
    "record_link": BlockRule(contents.RecordLink),
    "item_link": BlockRule(contents.ItemLink),
    _COLUMN_LIST: BlockRule(contents.Nothing, nests=True),
    _COLUMN: BlockRule(contents.Column, nests=True),
}

_CANVAS: Mapping[str, BlockRule] = {
    "text": BlockRule(contents.Words),
    "sticky": BlockRule(contents.Words),
    "shape": BlockRule(contents.Shape),
    "connector": BlockRule(contents.Connector),
    "drawing": BlockRule(contents.Drawing),
    "image": BlockRule(contents.Media),
    "frame": BlockRule(contents.Frame, nests=True),
    "embed": BlockRule(contents.Embed),
    "record_link": BlockRule(contents.RecordLink),
    "item_link": BlockRule(contents.ItemLink),
}

_DASHBOARD: Mapping[str, BlockRule] = {
    "view": BlockRule(contents.ViewWidget),
    "chart": BlockRule(contents.Chart),
    "number": BlockRule(contents.Number),
    "text": BlockRule(contents.Words),
    "shortcut": BlockRule(contents.Shortcut),
    "image": BlockRule(contents.Media),
    "embed": BlockRule(contents.Embed),
    "recent": BlockRule(contents.Listing),
    "automations": BlockRule(contents.Listing),
    "timers": BlockRule(contents.Listing),
}

BLOCKS: Mapping[SurfaceKind, Mapping[str, BlockRule]] = {
    SurfaceKind.PAGE: _DOCUMENT,
    SurfaceKind.NOTE: _DOCUMENT,
    SurfaceKind.FORM: _DOCUMENT,
    SurfaceKind.RECORD: _DOCUMENT,
    SurfaceKind.CANVAS: _CANVAS,
    SurfaceKind.DASHBOARD: _DASHBOARD,
}


def may_hold(surface: SurfaceKind, parent: str | None, kind: str) -> bool:
    """True when `kind` may stand in a block of kind `parent`, or at the top when that is None.

    A column list holds columns alone, and columns stand nowhere else.
    """
    if kind == _COLUMN or parent == _COLUMN_LIST:
        return kind == _COLUMN and parent == _COLUMN_LIST
    return parent is None or BLOCKS[surface][parent].nests


_ON_CANVAS = {
    Scope.SURFACES_READ: Scope.CANVAS_READ,
    Scope.SURFACES_WRITE: Scope.CANVAS_WRITE,
    Scope.BLOCKS_READ: Scope.CANVAS_READ,
    Scope.BLOCKS_WRITE: Scope.CANVAS_WRITE,
}


def scope_on(surface: SurfaceKind, scope: Scope) -> Scope:
    """The scope that stands for `scope` on this kind of surface (decisions C16, canvas)."""
    return _ON_CANVAS.get(scope, scope) if surface is SurfaceKind.CANVAS else scope
