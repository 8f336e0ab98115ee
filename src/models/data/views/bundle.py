"""Views in a bundle."""

from typing import Any

from sqlalchemy import Select

from models.content.items.joins import ITEM, live_items
from models.core.base import Id
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import USER, Stage
from models.data.databases.bundle import of_live_databases
from models.data.views.tables import view


def _rows(workspace_id: Id) -> Select[Any]:
    placed = view.c.item_id.in_(live_items(workspace_id, ITEM.id))
    return of_live_databases(workspace_id, view).where(view.c.item_id.is_(None) | placed)


VIEWS = BundleKind(
    name="view",
    stage=Stage.SCHEMA,
    file="databases.ndjson",
    table=view,
    rows=_rows,
    references={
        "database_id": "database",
        "item_id": "item",
        "relation_field_id": "field",
        "owner_user_id": USER,
    },
    needed=("item_id", "owner_user_id"),
    contents=("manifest",),
)
