"""Contents of blocks by kind, down to URLs and rich text; the places of blocks, and their ids.

An id in a content is always under the key that says what it names (`fileId`, `recordId`, …): that
is how `references` finds it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from models.core.access.rules import Scope
from models.core.base import Icon, Id, Input, InputId, JsonObject
from runtime.ids import parse_id

LONGEST = 2_048
_WEB = frozenset({"http", "https"})


def _web_url(text: str) -> str:
    if not _is_web(text):
        raise ValueError("must be an http or https URL")
    return text


def _link(text: str) -> str:
    if not (_is_web(text) or _is_mail(text)):
        raise ValueError("must be an http, https or mailto URL")
    return text


def _is_web(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in _WEB and bool(parts.hostname) and _is_plain(text)
    except ValueError:
        return False


def _is_mail(text: str) -> bool:
    scheme, _, address = text.partition(":")
    return scheme.lower() == "mailto" and "@" in address and _is_plain(text)


def _is_plain(text: str) -> bool:
    """Browsers drop control characters and read backslashes as slashes: neither may be there."""
    return text.isprintable() and not any(sign.isspace() or sign == "\\" for sign in text)


WebUrl = Annotated[str, Field(max_length=LONGEST), AfterValidator(_web_url)]
Link = Annotated[str, Field(max_length=LONGEST), AfterValidator(_link)]

Mark = Literal["bold", "italic", "underline", "strikethrough", "code"]

Color = Annotated[str, Field(pattern=r"^([a-z][a-z_]{0,31}|#[0-9a-fA-F]{6})$")]
"""The name of a color, which the client's theme gives a meaning, or `#rrggbb`."""

Day = Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$")]


class Mention(Input):
    """The thing that a span mentions: a member, an item, a record or a day; exactly one of them."""

    user_id: InputId | None = None
    item_id: InputId | None = None
    record_id: InputId | None = None
    date: Day | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        named = (self.user_id, self.item_id, self.record_id, self.date)
        if sum(value is not None for value in named) != 1:
            raise ValueError("must name one of userId, itemId, recordId and date")
        return self


class Span(Input):
    """A piece of text with one style and one link."""

    text: Annotated[str, Field(max_length=10_000)]
    marks: Annotated[list[Mark], Field(max_length=5)] | None = None
    color: Color | None = None
    link: Link | None = None
    mention: Mention | None = None


def _spans(value: object) -> object:
    """Plain text is one span without marks."""
    return [{"text": value}] if isinstance(value, str) else value


RichText = Annotated[list[Span], BeforeValidator(_spans), Field(max_length=500)]

Caption = Annotated[str, Field(max_length=2_000)]
Title = Annotated[str, Field(max_length=200)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
FieldKey = Annotated[str, Field(min_length=1, max_length=63)]


class Nothing(Input):
    """A block without content."""


class Words(Input):
    """Formatted text."""

    text: RichText = Field(default_factory=list)
    color: Color | None = None


class ToDo(Words):
    checked: bool = False


class Callout(Words):
    icon: Icon | None = None


class Code(Input):
    code: Annotated[str, Field(max_length=60_000)] = ""
    language: Annotated[str, Field(max_length=50)] | None = None
    caption: Caption | None = None


class Equation(Input):
    """LaTeX."""

    expression: Annotated[str, Field(max_length=10_000)]


class Media(Input):
    """An image, a video, a sound or any file: an uploaded one, or one of the web."""

    file_id: InputId | None = None
    url: WebUrl | None = None
    name: Title | None = None
    alt: Caption | None = None
    caption: Caption | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.file_id is None) == (self.url is None):
            raise ValueError("must have either fileId or url")
        return self


class Embed(Input):
    url: WebUrl
    caption: Caption | None = None


class Bookmark(Embed):
    title: Title | None = None
    description: Caption | None = None


class Table(Input):
    """A simple table: rows of cells, all of the same width."""

    rows: Annotated[
        list[Annotated[list[RichText], Field(min_length=1, max_length=50)]],
        Field(min_length=1, max_length=500),
    ]
    header_row: bool = False
    header_column: bool = False

    @model_validator(mode="after")
    def _rectangle(self) -> Self:
        if len({len(row) for row in self.rows}) != 1:
            raise ValueError("must have the same number of cells in every row")
        return self


class DatabaseView(Input):
    """A database inside a page, as one of its views shows it."""

    database_id: InputId
    view_id: InputId | None = None
    title: Title | None = None


class RecordLink(Input):
    record_id: InputId


class ItemLink(Input):
    item_id: InputId


class Column(Input):
    """One column; `ratio` is its share of the width."""

    ratio: Annotated[float, Field(gt=0, le=1)] | None = None


class Shape(Words):
    shape: Literal[
        "rectangle", "rounded", "ellipse", "diamond", "triangle", "hexagon", "cylinder", "star"
    ] = "rectangle"
    stroke: Color | None = None


class Frame(Input):
    title: Title | None = None
    color: Color | None = None


class End(Input):
    """The end of a connector: a block or a point of the canvas."""

    block_id: InputId | None = None
    x: Coordinate | None = None
    y: Coordinate | None = None

    @model_validator(mode="after")
    def _block_or_point(self) -> Self:
        point = (self.x is not None, self.y is not None)
        if point[0] != point[1] or point[0] == (self.block_id is not None):
            raise ValueError("must have either blockId, or x and y")
        return self


class Connector(Input):
    from_: Annotated[End, Field(alias="from")]
    to: End
    line: Literal["straight", "curved", "elbow"] = "straight"
    arrows: Literal["none", "start", "end", "both"] = "end"
    color: Color | None = None
    text: RichText = Field(default_factory=list)


class Drawing(Input):
    """One stroke of a pen: `points` are x, y, x, y, …"""

    points: Annotated[list[Coordinate], Field(min_length=4, max_length=4_000)]
    color: Color | None = None
    width: Annotated[float, Field(gt=0, le=100)] = 1


class Aggregate(Input):
    """An aggregate of records (interface.md#record-queries); only `count` needs no field."""

    op: Literal[
        "count", "count_empty", "count_filled", "count_unique", "percent_empty", "percent_filled",
        "sum", "avg", "min", "max", "median", "range", "stddev", "earliest", "latest", "checked",
        "unchecked",
    ]  # fmt: skip
    field: FieldKey | None = None

    @model_validator(mode="after")
    def _field_of_it(self) -> Self:
        if self.field is None and self.op != "count":
            raise ValueError("must have a field for every op but count")
        return self


class ViewWidget(Input):
    view_id: InputId
    title: Title | None = None


class Chart(Input):
    """A chart of a database's records; `filter` is that of a query."""

    database_id: InputId
    type: Literal["bar", "line", "pie"]
    x_field_key: FieldKey
    granularity: Literal["day", "week", "month", "quarter", "year"] | None = None
    aggregate: Aggregate
    filter: JsonObject | None = None
    title: Title | None = None


class Number(Input):
    """One aggregate of a database's records."""

    database_id: InputId
    aggregate: Aggregate
    filter: JsonObject | None = None
    title: Title | None = None


class Shortcut(Input):
    """A link to an item, or to a page of the web."""

    item_id: InputId | None = None
    url: WebUrl | None = None
    title: Title | None = None
    icon: Icon | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.item_id is None) == (self.url is None):
            raise ValueError("must have either itemId or url")
        return self


class Listing(Input):
    """A list that the platform fills: the reader's timers, the latest runs they see, …"""

    title: Title | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10


def stored(content: Input) -> dict[str, Any]:
    """The one form in which a content is kept and shown."""
    return content.model_dump(mode="json", by_alias=True, exclude_none=True)


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
    "paragraph": BlockRule(Words, nests=True),
    "heading_1": BlockRule(Words, nests=True),
    "heading_2": BlockRule(Words, nests=True),
    "heading_3": BlockRule(Words, nests=True),
    "bulleted_list_item": BlockRule(Words, nests=True),
    "numbered_list_item": BlockRule(Words, nests=True),
    "to_do": BlockRule(ToDo, nests=True),
    "toggle": BlockRule(Words, nests=True),
    "quote": BlockRule(Words, nests=True),
    "callout": BlockRule(Callout, nests=True),
    "code": BlockRule(Code),
    "equation": BlockRule(Equation),
    "divider": BlockRule(Nothing),
    "table_of_contents": BlockRule(Nothing),
    "image": BlockRule(Media),
    "video": BlockRule(Media),
    "audio": BlockRule(Media),
    "file": BlockRule(Media),
    "embed": BlockRule(Embed),
    "bookmark": BlockRule(Bookmark),
    "table": BlockRule(Table),
    "database_view": BlockRule(DatabaseView),
    "record_link": BlockRule(RecordLink),
    "item_link": BlockRule(ItemLink),
    _COLUMN_LIST: BlockRule(Nothing, nests=True),
    _COLUMN: BlockRule(Column, nests=True),
}

_CANVAS: Mapping[str, BlockRule] = {
    "text": BlockRule(Words),
    "sticky": BlockRule(Words),
    "shape": BlockRule(Shape),
    "connector": BlockRule(Connector),
    "drawing": BlockRule(Drawing),
    "image": BlockRule(Media),
    "frame": BlockRule(Frame, nests=True),
    "embed": BlockRule(Embed),
    "record_link": BlockRule(RecordLink),
    "item_link": BlockRule(ItemLink),
}

_DASHBOARD: Mapping[str, BlockRule] = {
    "view": BlockRule(ViewWidget),
    "chart": BlockRule(Chart),
    "number": BlockRule(Number),
    "text": BlockRule(Words),
    "shortcut": BlockRule(Shortcut),
    "image": BlockRule(Media),
    "embed": BlockRule(Embed),
    "recent": BlockRule(Listing),
    "automations": BlockRule(Listing),
    "timers": BlockRule(Listing),
    "runs": BlockRule(Listing),
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
    """The scope that stands for `scope` on this kind of surface.

    See interface.md#scopes-of-item-kinds.
    """
    return _ON_CANVAS.get(scope, scope) if surface is SurfaceKind.CANVAS else scope


RESOURCES = {
    "fileId": "file",
    "viewId": "view",
    "recordId": "record",
    "databaseId": "database",
    "itemId": "item",
    "userId": "user",
    "blockId": "block",
}
"""The key an id stands under, and what it names."""


class Reference(NamedTuple):
    resource: str
    id: Id


def references(content: object) -> set[Reference]:
    """Everything named anywhere in a JSON value; what is no id names nothing."""
    return set(_named(content))


def _named(value: object) -> Iterator[Reference]:
    if isinstance(value, list):
        for entry in value:
            yield from _named(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key in RESOURCES and isinstance(entry, str):
                found = parse_id(entry)
                if found is not None:
                    yield Reference(RESOURCES[key], found)
            else:
                yield from _named(entry)
