"""The content of each kind of block, strictly shaped.

An id in a content is always under the key that says what it names (`fileId`, `recordId`, …): that
is how `references` finds it.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from models.content.surfaces.rules.rich_text import Color, RichText
from models.content.surfaces.rules.urls import WebUrl
from models.core.base import Icon, Input, InputId, JsonObject

Caption = Annotated[str, Field(max_length=2_000)]
Title = Annotated[str, Field(max_length=200)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
FieldKey = Annotated[str, Field(min_length=1, max_length=63)]


class Nothing(Input):
    """A block that is only there."""


class Words(Input):
    """Running text."""

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
    """An image, a video, a sound or any file: one we keep, or one of the web."""

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
            raise ValueError("must have as many cells in every row")
        return self


class DatabaseView(Input):
    """A database in the middle of a page, as one of its views shows it."""

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
    """The end of a connector: a block of the canvas, or a point of it."""

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
    """A figure of many records (decisions C5); `count` alone needs no field."""

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
    """A drawing of a database's records; `filter` is that of a query."""

    database_id: InputId
    type: Literal["bar", "line", "pie"]
    x_field_key: FieldKey
    aggregate: Aggregate
    filter: JsonObject | None = None
    title: Title | None = None


class Number(Input):
    """One figure of a database's records."""

    database_id: InputId
    aggregate: Aggregate
    filter: JsonObject | None = None
    title: Title | None = None


class Shortcut(Input):
    """A way to an item, or to a page of the web."""

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
    """A list that the platform makes by itself: the reader's timers, the automations they see, …"""

    title: Title | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10


def stored(content: Input) -> dict[str, Any]:
    """The one form in which a content is kept and shown."""
    return content.model_dump(mode="json", by_alias=True, exclude_none=True)
