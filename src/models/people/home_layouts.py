"""Home layouts: what each member has on their first page of a workspace."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self

import sqlalchemy as sa
from pydantic import Field, model_validator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Actor
from models.core.base import Id, Input, JsonObject, Moment, Shape, deferred_adapter, example
from models.core.bundles import USER, BundleKind, Stage, shape_problem
from models.core.problems import refused_for
from models.core.values import InvalidValueError, check_storable
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, same_workspace, table_of

COLUMNS = 12
"""The width of the grid."""
MAX_ROW = 10_000
"""The lowest row in which a widget may begin."""
MAX_HEIGHT = 1_000
MAX_WIDGETS = 50

MAX_CONFIG_DEPTH = 8
MAX_CONFIG_BYTES = 16 * 1024


def config_problem(config: JsonObject) -> str | None:
    """The problem with the config of a widget, in words."""
    try:
        check_storable(config, MAX_CONFIG_DEPTH)
    except InvalidValueError as problem:
        return f"The config {problem}."
    if len(json.dumps(config, ensure_ascii=False).encode()) > MAX_CONFIG_BYTES:
        return f"The config must be at most {MAX_CONFIG_BYTES} bytes of JSON."
    return None


def width_problem(x: float, w: float) -> str | None:
    """The problem with a widget that begins at column `x` and is `w` columns wide."""
    if x + w > COLUMNS:
        return f"The widget is outside the grid: x + w must be at most {COLUMNS}."
    return None


def repeated(ids: Sequence[str]) -> str | None:
    """The first id that several widgets have."""
    return next((id_ for id_, count in Counter(ids).items() if count > 1), None)


class HomeLayout(SQLModel, table=True):
    """The widgets of one member in one workspace; they go with the membership."""

    __tablename__ = "home_layout"
    __table_args__ = (same_workspace("user_id", "workspace_member.user_id", ondelete="CASCADE"),)

    workspace_id: Id = TableField(primary_key=True)
    user_id: Id = TableField(primary_key=True)
    widgets: list[dict[str, Any]] = TableField(sa_type=JSONB)
    updated_at: datetime = TableField(sa_type=Timestamp)


home_layout = table_of(HomeLayout)

Column = Annotated[float, Field(ge=0, lt=COLUMNS, allow_inf_nan=False)]
Width = Annotated[float, Field(gt=0, le=COLUMNS, allow_inf_nan=False)]
Row = Annotated[float, Field(ge=0, le=MAX_ROW, allow_inf_nan=False)]
Height = Annotated[float, Field(gt=0, le=MAX_HEIGHT, allow_inf_nan=False)]
WidgetId = Annotated[str, Field(min_length=1, max_length=100)]
WidgetKind = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""Any text of one line: what a client does not know it leaves as it is."""


class PlaceWidget(Input):
    """A widget on a grid of 12 columns, with its position and size.

    Its `kind` is any text without control characters. Known kinds are `recent`, `favorites`,
    `view`, `chart`, `automations`, `timers`, `notifications`, `shortcut` and `text`. `config` is
    specific to the kind: at most 16 KiB.
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
            raise ValueError(f"Widget ids must be unique. The id {twice} is used twice.")
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


async def get_home_layout(work: UnitOfWork, actor: Actor) -> HomeLayoutAnswer:
    """The caller's layout in the workspace; without widgets until they have placed some."""
    row = await work.first(
        sa.select(home_layout).where(
            home_layout.c.workspace_id == actor.workspace_id,
            home_layout.c.user_id == actor.user_id,
        ),
        of=HomeLayout,
    )
    shown = HomeLayoutBody(widgets=[]) if row is None else HomeLayoutBody.model_validate(row)
    return HomeLayoutAnswer(home_layout=shown)


async def replace_home_layout(
    work: UnitOfWork, actor: Actor, body: ReplaceHomeLayout
) -> HomeLayoutAnswer:
    """Make these the caller's widgets; widgets that are there already are left as they are.

    PostgreSQL compares the two as JSON: the order of keys and the way numbers are written are no
    difference.
    """
    widgets = [widget.model_dump(exclude_none=True) for widget in body.widgets]
    values = {"widgets": widgets, "updated_at": work.now}
    statement = upsert(home_layout).values(
        workspace_id=actor.workspace_id, user_id=actor.user_id, **values
    )
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "user_id"],
            set_=values,
            where=home_layout.c.widgets.is_distinct_from(statement.excluded.widgets),
        )
    )
    return await get_home_layout(work, actor)


_WIDGETS = deferred_adapter(list[PlaceWidget])


def _rows(workspace_id: Id) -> sa.Select[Any]:
    return sa.select(home_layout).where(home_layout.c.workspace_id == workspace_id)


HOME_LAYOUTS = BundleKind(
    name="home_layout",
    stage=Stage.AUTOMATIONS,
    file="home_layouts.ndjson",
    table=home_layout,
    rows=_rows,
    references={"user_id": USER},
    required=("user_id",),
    contents=("widgets",),
    lists=("widgets",),
    check=lambda row: shape_problem(_WIDGETS, row["widgets"], "widgets"),
    order=("user_id",),
    of_members=True,
)
