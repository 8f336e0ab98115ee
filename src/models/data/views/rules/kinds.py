"""The kinds, placements and scopes of views (interface.md#views)."""

from enum import StrEnum


class ViewKind(StrEnum):
    TABLE = "table"
    BOARD = "board"
    LIST = "list"
    GALLERY = "gallery"
    CALENDAR = "calendar"
    TIMELINE = "timeline"
    CHART = "chart"
    FORM = "form"


NEEDED: dict[ViewKind, tuple[str, ...]] = {
    ViewKind.BOARD: ("stackFieldKey",),
    ViewKind.CALENDAR: ("dateFieldKey",),
    ViewKind.TIMELINE: ("dateFieldKey", "endDateFieldKey"),
    ViewKind.CHART: ("chart",),
    ViewKind.FORM: ("form",),
}
"""Keys that the manifest of each kind must name; the other kinds can show any records."""


class Placement(StrEnum):
    """The place where a view is shown.

    `relation` is the list of linked records that a relation field shows; `item` is a view with an
    item of its own.
    """

    DATABASE = "database"
    RELATION = "relation"
    ITEM = "item"
    DASHBOARD = "dashboard"


class ViewScope(StrEnum):
    """`shared` views are for everyone who sees the database, `personal` ones for their owner."""

    SHARED = "shared"
    PERSONAL = "personal"


class ChartType(StrEnum):
    BAR = "bar"
    LINE = "line"
    PIE = "pie"
    NUMBER = "number"
