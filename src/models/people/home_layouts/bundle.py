"""Home layouts in a bundle."""

from typing import Any

from sqlalchemy import Select, select

from models.core.base import Id, deferred_adapter
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import USER, Stage, shape_problem
from models.people.home_layouts.shapes import PlaceWidget
from models.people.home_layouts.tables import home_layout

_WIDGETS = deferred_adapter(list[PlaceWidget])


def _rows(workspace_id: Id) -> Select[Any]:
    return select(home_layout).where(home_layout.c.workspace_id == workspace_id)


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
