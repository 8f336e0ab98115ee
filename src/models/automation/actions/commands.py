"""Making and changing actions; running them is not this module's."""

from datetime import datetime

from sqlalchemy import insert, update

from models.automation.actions.queries import find_action, get_action
from models.automation.actions.references import check_named
from models.automation.actions.rules.configs import ActionKind
from models.automation.actions.rules.problems import check_given, checked_config, named_ids
from models.automation.actions.shapes import ActionDetail, CreateAction, UpdateAction
from models.automation.actions.tables import action
from models.automation.automations.rules.language.credentials import written
from models.content.items.commands import check_parent, create_item_for, rename_item, trash_item
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.credentials import restored
from models.core.keys import reserve_key
from models.core.revisions import next_updated_at
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id


async def create_action(
    work: UnitOfWork, actor: Actor, body: CreateAction, parent_item_id: Id | None = None
) -> ActionDetail:
    """A new action with its item.

    Raises `NotFoundError` for what the config names and the actor does not see,
    `ValidationError` below `config`, `ConflictError` for a key in use, and what `check_parent`
    raises.
    """
    await check_parent(work, actor, parent_item_id)
    config = await _checked(work, actor, body.kind, body.config)
    if body.enabled:
        check_given(config)
    action_id = new_id()
    item_id = await create_item_for(
        work, actor, ItemKind.ACTION, action_id, body.label, parent_item_id=parent_item_id
    )
    await work.execute(
        insert(action).values(
            id=action_id,
            workspace_id=actor.workspace_id,
            item_id=item_id,
            key=await reserve_key(work, action, actor.workspace_id, body.key, body.label),
            kind=body.kind.value,
            config=config,
            enabled=body.enabled,
            created_at=work.now,
            updated_at=work.now,
        )
    )
    return await get_action(work, actor, action_id)


async def update_action(
    work: UnitOfWork,
    actor: Actor,
    action_id: Id,
    body: UpdateAction,
    expected_updated_at: datetime | None = None,
) -> ActionDetail:
    """Change what the body names; `expected_updated_at` is the `updatedAt` last read.

    A credential that is given back as it is shown hidden stays. Raises what `create_action` raises,
    and `ConflictError` when the action is no longer the one that was read.
    """
    row = await find_action(work, actor.workspace_id, action_id)
    values: JsonObject = body.model_dump(exclude_unset=True)
    label = values.pop("label", None)
    if "config" in values:
        given = restored(body.config, row.config, written)
        values["config"] = await _checked(work, actor, ActionKind(row.kind), given)
    if values.get("enabled", row.enabled):
        check_given(values.get("config", row.config))
    if "key" in values and body.key != row.key:
        await reserve_key(work, action, actor.workspace_id, body.key, body.key)
    this = (action.c.workspace_id == actor.workspace_id, action.c.id == action_id)
    statement = (
        update(action)
        .where(*this)
        .values(**values, updated_at=next_updated_at(action.c.updated_at, work.now))
    )
    if expected_updated_at is not None:
        statement = statement.where(action.c.updated_at == expected_updated_at)
    changed_rows = await work.execute(statement)
    if changed_rows.rowcount == 0:
        raise ConflictError("The action was changed since it was read. Read it again.")
    if label is not None:
        await rename_item(work, actor, row.item_id, label)
    return await get_action(work, actor, action_id)


async def delete_action(work: UnitOfWork, actor: Actor, action_id: Id) -> ActionDetail:
    """Put an action into the trash and return it as it was. Raises `NotFoundError`."""
    found = await get_action(work, actor, action_id)
    await trash_item(work, actor, found.item_id)
    return found


async def copy_action(
    work: UnitOfWork, actor: Actor, action_id: Id, title: str, parent_item_id: Id | None
) -> ActionDetail:
    """A second action of the same config, disabled until somebody has looked at it.

    Its credentials are hidden from whoever may not change the first. Raises what `create_action`
    raises.
    """
    found = await get_action(work, actor, action_id)
    body = CreateAction(label=title, kind=found.kind, config=found.config, enabled=False)
    return await create_action(work, actor, body, parent_item_id)


async def _checked(
    work: UnitOfWork, actor: Actor, kind: ActionKind, config: JsonObject
) -> JsonObject:
    """The config as it is stored, once everything it names was found."""
    await check_named(work, actor, named_ids(kind, config))
    return checked_config(kind, config)
