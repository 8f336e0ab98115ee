"""Actions: their table, created, changed, copied and read, with checks; actions in a bundle."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.actions import rules
from models.automation.automations.queries import visible as visible_automation
from models.automation.automations.rules.language.bindings import written
from models.content.items import rules as item_rules
from models.content.items.commands import check_parent, create_item_for, rename_item, trash_item
from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import closed_items, placement_of
from models.core.access.rules import Actor, Level, Placement, Scope, level_on
from models.core.base import Id, JsonObject
from models.core.bundles import BundleKind, ImportTarget, Row, Stage
from models.core.http_requests import hidden, left_hidden, restored
from models.core.keys import reserve_key, share_field_keys
from models.core.pagination import Listed, PageRequest
from models.core.references.rules import Definition, Sought, below
from models.core.values import next_updated_at
from models.data.fields.queries import visible as visible_database
from models.data.records.queries import visible as visible_record
from models.messages.webhook_endpoints.store import sees_endpoint
from models.people.members import visible as visible_member
from models.sources.connections.store import sees_connection
from models.sources.data_sources.queries import visible as visible_data_source
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of


class Action(SQLModel, table=True):
    """An action; its label is the title of its item."""

    __tablename__ = "action"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.UniqueConstraint("workspace_id", "key"),
        same_workspace("item_id", "item.id"),
        one_of("kind", rules.ActionKind),
        sa.Index("ix_action_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id = Field(unique=True)
    key: str
    kind: str
    config: dict[str, Any] = Field(sa_type=JSONB)
    enabled: bool
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


action = table_of(Action)


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


async def mail_actions(work: UnitOfWork, workspace_id: Id, ids: Collection[Id]) -> list[Id]:
    """The actions among these that send an email, themselves or in a step."""
    step = {"steps": [{"kind": rules.ActionKind.SEND_EMAIL.value}]}
    statement = sa.select(action.c.id).where(
        action.c.workspace_id == workspace_id,
        action.c.id.in_(sorted(ids)),
        sa.or_(action.c.kind == rules.ActionKind.SEND_EMAIL, action.c.config.contains(step)),
    )
    return [row.id for row in await work.rows(statement)]


async def get_action(work: UnitOfWork, actor: Actor, action_id: Id) -> rules.ActionDetail:
    """An action as the actor may see it. Raises `NotFoundError`."""
    return await _shown(work, actor, await find_action(work, actor.workspace_id, action_id))


async def _shown(work: UnitOfWork, actor: Actor, row: ActionRow) -> rules.ActionDetail:
    """An action; its credentials are only for actors who may change it."""
    detail = rules.ActionDetail.model_validate(row)
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


class ActionList(Listed):
    actions: list[rules.ActionDetail]


async def list_actions(work: UnitOfWork, actor: Actor, page: PageRequest) -> ActionList:
    """The actions the actor sees, newest first."""
    statement = _actions(actor.workspace_id).where(
        action.c.item_id.not_in(sa.select(closed_items(actor).c.id))
    )
    shown = await page.descending(work, statement, action.c.created_at, action.c.id, of=ActionRow)
    return ActionList(
        actions=[await _shown(work, actor, row) for row in shown.items], cursor=shown.cursor
    )


async def action_definitions(
    work: UnitOfWork, actor: Actor, sought: Sought
) -> Sequence[Definition]:
    """The actions that may name a thing: those whose config has its id or item in it."""
    ids = sa.literal([f"%{id_.lower()}%" for id_ in sought.ids], sa.ARRAY(sa.Text))
    condition = sa.func.lower(sa.cast(action.c.config, sa.Text)).like(sa.any_(ids))
    rows = await work.rows(
        _actions(actor.workspace_id).where(condition).order_by(ITEM.title, action.c.id)
    )
    return [
        Definition(
            kind="action",
            id=row.id,
            label=row.label,
            scope=Scope.ACTIONS_READ,
            item_id=row.item_id,
            document={"config": row.config},
            references=list(
                below(rules.action_references(rules.ActionKind(row.kind), row.config), "config")
            ),
        )
        for row in rows
    ]


def _actions(workspace_id: Id) -> sa.Select[Any]:
    return (
        sa.select(action, ITEM.title.label("label"))
        .join(*live_item_of(action))
        .where(action.c.workspace_id == workspace_id)
    )


async def create_action(
    work: UnitOfWork, actor: Actor, body: rules.CreateAction, parent_item_id: Id | None = None
) -> rules.ActionDetail:
    """A new action with its item.

    Raises `NotFoundError` for what the config names and the actor does not see,
    `ValidationError` below `config`, `ConflictError` for a key in use, and what `check_parent`
    raises.
    """
    await check_parent(work, actor, parent_item_id)
    await share_field_keys(work, actor.workspace_id)
    config = await _checked(work, actor, body.kind, body.config)
    if body.enabled:
        rules.check_given(config)
    action_id = new_id()
    item_id = await create_item_for(
        work,
        actor,
        item_rules.ItemKind.ACTION,
        action_id,
        body.label,
        parent_item_id=parent_item_id,
    )
    await work.execute(
        sa.insert(action).values(
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
    body: rules.UpdateAction,
    expected_updated_at: datetime | None = None,
) -> rules.ActionDetail:
    """Change what the body names; `expected_updated_at` is the `updatedAt` last read.

    A credential that is given back as it is shown hidden stays. Raises what `create_action` raises,
    and `ConflictError` when the action is no longer the one that was read.
    """
    await share_field_keys(work, actor.workspace_id)
    row = await find_action(work, actor.workspace_id, action_id)
    values: JsonObject = body.model_dump(exclude_unset=True)
    label = values.pop("label", None)
    if "config" in values:
        given = restored(body.config, row.config, written)
        values["config"] = await _checked(work, actor, rules.ActionKind(row.kind), given)
    if values.get("enabled", row.enabled):
        rules.check_given(values.get("config", row.config))
    if "key" in values and body.key != row.key:
        await reserve_key(work, action, actor.workspace_id, body.key, body.key)
    this = (action.c.workspace_id == actor.workspace_id, action.c.id == action_id)
    statement = (
        sa.update(action)
        .where(*this)
        .values(**values, updated_at=next_updated_at(action.c.updated_at, work.now))
    )
    if expected_updated_at is not None:
        statement = statement.where(action.c.updated_at == expected_updated_at)
    changed_rows = await work.execute(statement)
    if changed_rows.rowcount == 0:
        raise ConflictError("The action changed since you read it. Read it again.")
    if label is not None:
        await rename_item(work, actor, row.item_id, label)
    return await get_action(work, actor, action_id)


async def delete_action(work: UnitOfWork, actor: Actor, action_id: Id) -> rules.ActionDetail:
    """Put an action into the trash and return it as it was. Raises `NotFoundError`."""
    found = await get_action(work, actor, action_id)
    await trash_item(work, actor, found.item_id)
    return found


async def copy_action(
    work: UnitOfWork, actor: Actor, action_id: Id, title: str, parent_item_id: Id | None
) -> rules.ActionDetail:
    """A second action of the same config, disabled until someone has looked at it.

    Its credentials are hidden from whoever may not change the first. Raises what `create_action`
    raises.
    """
    found = await get_action(work, actor, action_id)
    body = rules.CreateAction(label=title, kind=found.kind, config=found.config, enabled=False)
    return await create_action(work, actor, body, parent_item_id)


async def _checked(
    work: UnitOfWork, actor: Actor, kind: rules.ActionKind, config: JsonObject
) -> JsonObject:
    """The config as it is stored, once everything it names was found."""
    await check_named(work, actor, rules.named_ids(kind, config))
    return rules.checked_config(kind, config)


_Visible = Callable[[UnitOfWork, Sequence[Id], Id, Id], Awaitable[Placement | None]]

_VISIBLE: Mapping[str, _Visible] = {
    "automation": visible_automation,
    "data_source": visible_data_source,
    "database": visible_database,
    "record": visible_record,
}

_SEES: Mapping[str, Callable[[UnitOfWork, Actor, Id], Awaitable[bool]]] = {
    "connection": sees_connection,
    "webhook_endpoint": sees_endpoint,
}


async def check_named(work: UnitOfWork, actor: Actor, references: Iterable[rules.Named]) -> None:
    """Raises `NotFoundError` for what the actor does not see."""
    places = [actor.workspace_id]
    for reference in references:
        if reference.resource == "user":
            is_visible = await visible_member(work, places, reference.id, actor.user_id) is not None
        elif reference.resource in _SEES:
            is_visible = await _SEES[reference.resource](work, actor, reference.id)
        else:
            found = await _VISIBLE[reference.resource](work, places, reference.id, actor.user_id)
            is_visible = found is not None and level_on(found, actor.role) >= Level.VIEW
        if not is_visible:
            raise NotFoundError(reference.resource.replace("_", " "))


def _bundled_rows(workspace_id: Id) -> sa.Select[Any]:
    return (
        sa.select(action).join(*live_item_of(action)).where(action.c.workspace_id == workspace_id)
    )


def _bundle_problem(row: Row) -> str | None:
    if row["kind"] not in set(rules.ActionKind):
        return f"nothing is known of an action of the kind {row['kind'][:50]}"
    try:
        rules.checked_config(rules.ActionKind(row["kind"]), row["config"])
    except ValidationError as error:
        return error.message
    return None


def _redacted(row: Row) -> Row:
    return {**row, "config": hidden(row["config"], written)}


async def _enabled_if_usable(
    _work: UnitOfWork, _target: ImportTarget, rows: Sequence[Row]
) -> Sequence[Row]:
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
    rows=_bundled_rows,
    references={"item_id": "item"},
    contents=("config",),
    unique_key=True,
    redact=_redacted,
    check=_bundle_problem,
    prepare=_enabled_if_usable,
)


async def rewrite_config(
    work: UnitOfWork, workspace_id: Id, action_id: Id, config: JsonObject
) -> None:
    """Store the config of an action in which a field has another key."""
    await work.execute(
        sa.update(action)
        .where(action.c.workspace_id == workspace_id, action.c.id == action_id)
        .values(config=config, updated_at=next_updated_at(action.c.updated_at, work.now))
    )
