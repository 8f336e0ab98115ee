"""Actions in a bundle."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select

from models.automation.actions.rules.configs import ActionKind
from models.automation.actions.rules.problems import checked_config
from models.automation.actions.tables import action
from models.automation.automations.rules.language.credentials import written
from models.content.items.joins import live_item_of
from models.core.base import Id
from models.core.bundles.kinds import BundleKind, ImportTarget, Row
from models.core.bundles.rules import Stage
from models.core.credentials import hidden, left_hidden
from runtime.database import UnitOfWork
from runtime.errors import ValidationError


def _rows(workspace_id: Id) -> Select[Any]:
    return select(action).join(*live_item_of(action)).where(action.c.workspace_id == workspace_id)


def _problem(row: Row) -> str | None:
    if row["kind"] not in set(ActionKind):
        return f"nothing is known of an action of the kind {row['kind'][:50]}"
    try:
        checked_config(ActionKind(row["kind"]), row["config"])
    except ValidationError as error:
        return error.message
    return None


def _shown(row: Row) -> Row:
    return {**row, "config": hidden(row["config"], written)}


async def _usable(_work: UnitOfWork, _target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows, switched off whose credentials are to be given first."""
    return [
        {**row, "enabled": row["enabled"] and not left_hidden(row["config"], written)}
        for row in rows
    ]


ACTIONS = BundleKind(
    name="action",
    stage=Stage.AUTOMATIONS,
    file="actions.ndjson",
    table=action,
    rows=_rows,
    references={"item_id": "item"},
    contents=("config",),
    unique_key=True,
    redact=_shown,
    check=_problem,
    prepare=_usable,
)
