"""Actions in a bundle."""

from typing import Any

from sqlalchemy import Select, select

from models.automation.actions.rules.configs import ActionKind
from models.automation.actions.rules.problems import checked_config
from models.automation.actions.tables import action
from models.content.items.joins import live_item_of
from models.core.base import Id
from models.core.bundles.kinds import BundleKind, Row
from models.core.bundles.rules import Stage
from runtime.errors import ValidationError


def _rows(workspace_id: Id) -> Select[Any]:
    return select(action).join(*live_item_of(action)).where(action.c.workspace_id == workspace_id)


def _problem(row: Row) -> str | None:
    try:
        checked_config(ActionKind(row["kind"]), row["config"])
    except ValidationError as error:
        return error.message
    return None


ACTIONS = BundleKind(
    name="action",
    stage=Stage.AUTOMATIONS,
    file="actions.ndjson",
    table=action,
    rows=_rows,
    references={"item_id": "item"},
    contents=("config",),
    unique_key=True,
    check=_problem,
)
