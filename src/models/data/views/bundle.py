"""Views in a bundle."""

from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from models.content.items.joins import ITEM, live_items
from models.core.base import Id
from models.core.bundles import USER, BundleKind, Row, Stage, shape_problem
from models.data.fields.bundle import of_live_databases
from models.data.views.rules.kinds import ViewKind
from models.data.views.shapes import Manifest
from models.data.views.tables import view

_MANIFEST = TypeAdapter(Manifest)


def _rows(workspace_id: Id) -> sa.Select[Any]:
    placed = view.c.item_id.in_(live_items(workspace_id, ITEM.id))
    return of_live_databases(workspace_id, view).where(view.c.item_id.is_(None) | placed)


def _problem(row: Row) -> str | None:
    if row["kind"] not in set(ViewKind):
        return f"unknown kind of view: {row['kind'][:50]}"
    return shape_problem(_MANIFEST, row["manifest"], "manifest")


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
    required=("item_id", "owner_user_id"),
    contents=("manifest",),
    check=_problem,
)
