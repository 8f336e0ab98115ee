"""Items in a bundle."""

from typing import Any

from sqlalchemy import Select, literal, select

from models.content.items.tables import item
from models.core.base import Id
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import Stage


def _rows(workspace_id: Id) -> Select[Any]:
    """Items outside the trash with their `depth`, so that those above others come first."""
    top = select(item, literal(0).label("depth")).where(
        item.c.workspace_id == workspace_id,
        item.c.parent_item_id.is_(None),
        item.c.deleted_at.is_(None),
    )
    tree = top.cte("tree", recursive=True)
    below = select(item, tree.c.depth + 1).where(
        item.c.workspace_id == workspace_id,
        item.c.parent_item_id == tree.c.id,
        item.c.deleted_at.is_(None),
    )
    return select(tree.union_all(below))


ITEMS = BundleKind(
    name="item",
    stage=Stage.CREATING,
    file="items.ndjson",
    table=item,
    rows=_rows,
    references={"parent_item_id": "item", "target_id": "*"},
    parent="parent_item_id",
    contents=("metadata",),
    left_out={"deleted_at": "what is in the trash stays behind", "deleted_with": "as deleted_at"},
    order=("depth", "id"),
    hides=True,
)
