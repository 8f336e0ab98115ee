"""Reading actions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Select, Text, bindparam, cast, func, select

from models.automation.actions.rules import ActionKind, action_references
from models.automation.actions.shapes import ActionDetail, ActionList
from models.automation.actions.tables import action
from models.automation.automations.rules.language.bindings import written
from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import closed_items, placement_of
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from models.core.http_requests import hidden
from models.core.pagination import PageRequest
from models.core.references.rules import Definition, Sought, below
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

visible = placement_of(action)
"""The placement of an action: `await visible(work, workspace_ids, action_id, user_id)`."""


class ActionRow(Protocol):
    """An action with its label."""

    id: Id
    workspace_id: Id
    item_id: Id
    key: str
    kind: str
    label: str
    config: JsonObject
    enabled: bool
    created_at: datetime
    updated_at: datetime


async def check_visible(work: UnitOfWork, actor: Actor, action_id: Id) -> None:
    """Raise `NotFoundError` for an action that the actor does not see."""
    if await visible.level(work, actor, action_id) < Level.VIEW:
        raise NotFoundError("action")


async def get_action(work: UnitOfWork, actor: Actor, action_id: Id) -> ActionDetail:
    """An action as the actor may see it. Raises `NotFoundError`."""
    return await _shown(work, actor, await find_action(work, actor.workspace_id, action_id))


async def _shown(work: UnitOfWork, actor: Actor, row: ActionRow) -> ActionDetail:
    """An action; its credentials are only for actors who may change it."""
    detail = ActionDetail.model_validate(row)
    config = hidden(row.config, written)
    if config != row.config and not await may_edit(work, actor, row.id):
        detail.config = config
    return detail


async def may_edit(work: UnitOfWork, actor: Actor, action_id: Id) -> bool:
    """True when the actor may change this action: by scope, and by level on its item."""
    if Scope.ACTIONS_WRITE not in actor.scopes:
        return False
    return await visible.level(work, actor, action_id) >= Level.EDIT


async def find_action(work: UnitOfWork, workspace_id: Id, action_id: Id) -> ActionRow:
    """An action's row with its label. Raises `NotFoundError`."""
    statement = _actions(workspace_id).where(action.c.id == action_id)
    return await work.one(statement, "action", of=ActionRow)


async def list_actions(work: UnitOfWork, actor: Actor, page: PageRequest) -> ActionList:
    """The actions the actor sees, newest first."""
    statement = _actions(actor.workspace_id).where(
        action.c.item_id.not_in(select(closed_items(actor).c.id))
    )
    shown = await page.descending(work, statement, action.c.created_at, action.c.id, of=ActionRow)
    return ActionList(
        actions=[await _shown(work, actor, row) for row in shown.items], cursor=shown.cursor
    )


async def action_definitions(
    work: UnitOfWork, actor: Actor, sought: Sought
) -> Sequence[Definition]:
    """The actions that may name a thing: those whose config has its id in it."""
    found = func.strpos(func.lower(cast(action.c.config, Text)), bindparam("id", type_=Text)) > 0
    rows = await work.rows(
        _actions(actor.workspace_id)
        .where(found)
        .order_by(ITEM.title, action.c.id)
        .params(id=sought.subject.id.lower())
    )
    return [
        Definition(
            kind="action",
            id=row.id,
            label=row.label,
            scope=Scope.ACTIONS_READ,
            item_id=row.item_id,
            document={"config": row.config},
            references=list(below(action_references(ActionKind(row.kind), row.config), "config")),
        )
        for row in rows
    ]


def _actions(workspace_id: Id) -> Select[Any]:
    return (
        select(action, ITEM.title.label("label"))
        .join(*live_item_of(action))
        .where(action.c.workspace_id == workspace_id)
    )
