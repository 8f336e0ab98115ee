"""Grants in a bundle."""

from typing import Any

from sqlalchemy import Select, select

from models.content.items.joins import live_item_of
from models.content.items.tables import item_grant
from models.core.base import Id
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import USER, Stage


def _rows(workspace_id: Id) -> Select[Any]:
    return (
        select(item_grant)
        .join(*live_item_of(item_grant))
        .where(item_grant.c.workspace_id == workspace_id)
    )


GRANTS = BundleKind(
    name="item_grant",
    stage=Stage.CREATING,
    file="items.ndjson",
    table=item_grant,
    rows=_rows,
    references={"item_id": "item", "user_id": USER},
    required=("user_id",),
    order=("item_id", "user_id"),
)
