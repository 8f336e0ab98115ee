"""Home layouts on the wire (interface, Home layout)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from models.core.base import Input, JsonObject, Moment, Shape, example
from models.core.problems import refused_for
from models.people.home_layouts.rules import (
    COLUMNS,
    MAX_HEIGHT,
    MAX_ROW,
    MAX_WIDGETS,
    config_problem,
    repeated,
    width_problem,
)

Column = Annotated[float, Field(ge=0, lt=COLUMNS, allow_inf_nan=False)]
Width = Annotated[float, Field(gt=0, le=COLUMNS, allow_inf_nan=False)]
Row = Annotated[float, Field(ge=0, le=MAX_ROW, allow_inf_nan=False)]
Height = Annotated[float, Field(gt=0, le=MAX_HEIGHT, allow_inf_nan=False)]
WidgetId = Annotated[str, Field(min_length=1, max_length=100)]
WidgetKind = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""Any text of one line: what a client does not know it leaves as it is."""


class PlaceWidget(Input):
    """A widget on a grid of 12 columns: where it begins and how large it is.

    Its `kind` is any text without control characters. Clients know `recent`, `favorites`, `view`,
    `chart`, `automations`, `timers`, `notifications`, `shortcut` and `text`. `config` is the
    widget's own: at most 16 KiB.
    """

    id: WidgetId
    kind: WidgetKind
    x: Column
    y: Row
    w: Width
    h: Height
    config: Annotated[JsonObject, refused_for(config_problem)] | None = None

    @model_validator(mode="after")
    def _is_on_the_grid(self) -> Self:
        problem = width_problem(self.x, self.w)
        if problem is not None:
            raise ValueError(problem)
        return self


class ReplaceHomeLayout(Input):
    """Body of replace home layout: all widgets, which replace the widgets that were there."""

    model_config = example(
        {
            "widgets": [
                {"id": "a", "kind": "recent", "x": 0, "y": 0, "w": 8, "h": 4},
                {
                    "id": "b",
                    "kind": "timers",
                    "x": 8,
                    "y": 0,
                    "w": 4,
                    "h": 2,
                    "config": {"showPaused": True},
                },
            ]
        }
    )

    widgets: Annotated[list[PlaceWidget], Field(max_length=MAX_WIDGETS)]

    @model_validator(mode="after")
    def _has_every_id_once(self) -> Self:
        twice = repeated([widget.id for widget in self.widgets])
        if twice is not None:
            raise ValueError(f"Two widgets have the id {twice}; each needs one of its own.")
        return self


class HomeWidget(Shape):
    """A widget on a grid of 12 columns."""

    id: str
    kind: str
    x: float
    y: float
    w: float
    h: float
    config: JsonObject | None = None


class HomeLayoutBody(Shape):
    """The widgets of the caller's first page; `updatedAt` is absent until there was a layout."""

    widgets: list[HomeWidget]
    updated_at: Moment | None = None


class HomeLayoutAnswer(Shape):
    home_layout: HomeLayoutBody
