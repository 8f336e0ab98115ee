"""Operations of a change set: their documentation, everything wrong with them, carrying one out."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.automation.actions.store import create_action
from models.automation.automations.commands import create_automation, publish, update_automation
from models.automation.automations.queries import visible as visible_automation
from models.content.items import queries as items
from models.content.items.commands import move_item
from models.content.surfaces.blocks import add_blocks
from models.content.surfaces.commands import replace_surface
from models.core.access.rules import Actor, Level, Placement, level_on
from models.core.base import EXAMPLE_ID, Id, JsonObject
from models.core.problems import read_part, refuse
from models.core.values import InvalidValueError, check_storable
from models.data.databases.field_changes import create_field, update_field
from models.data.databases.shapes import DatabaseDetail
from models.data.databases.store import create_database, update_database
from models.data.fields.queries import visible as visible_database
from models.data.records.commands import create_record, delete_record, update_record, write_batch
from models.data.records.queries import visible as visible_record
from models.data.records.queries import visible_surface
from models.data.records.shapes import RecordBatch
from models.data.views.commands import create_view, delete_view, update_view
from models.workspace.changes import rules
from models.workspace.changes.rules import OperationKind
from models.workspace.changes.shapes import Operation
from models.workspace.targets.items import create_item, delete_item, update_item
from models.workspace.targets.shapes import PlacedTarget
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, Detail, NotFoundError, ValidationError


@dataclass(frozen=True, slots=True)
class OperationNote:
    """A sentence on what an operation does, the body that its `input` is, and an example of one."""

    says: str
    body: str | None
    example: JsonObject


_ITEM: JsonObject = {"itemId": EXAMPLE_ID}
_DATABASE: JsonObject = {"databaseId": EXAMPLE_ID}
_VIEW: JsonObject = {**_DATABASE, "viewId": EXAMPLE_ID}
_BLOCKS: JsonObject = {"blocks": [{"kind": "paragraph", "content": {"text": "Hello"}}]}
_LEADS: JsonObject = {"label": "Leads", "fields": [{"label": "Company", "kind": "text"}]}

NOTES: Mapping[OperationKind, OperationNote] = {
    OperationKind.CREATE_ITEM: OperationNote(
        "Create a folder, page, dashboard, form or another item.",
        "CreateItem",
        {"kind": "page", "title": "Start here", "content": _BLOCKS},
    ),
    OperationKind.UPDATE_ITEM: OperationNote(
        "Change the name, look or access of an item.",
        "UpdateItem",
        {**_ITEM, "title": "Sales"},
    ),
    OperationKind.MOVE_ITEM: OperationNote(
        "Move an item in the tree.", "MoveItem", {**_ITEM, "parentItemId": None}
    ),
    OperationKind.DELETE_ITEM: OperationNote(
        "Move an item and everything below it to the trash.", None, _ITEM
    ),
    OperationKind.CREATE_DATABASE: OperationNote(
        "Create a database with fields and views.", "CreateDatabase", _LEADS
    ),
    OperationKind.UPDATE_DATABASE: OperationNote(
        "Change a database, except its fields.",
        "UpdateDatabase",
        {**_DATABASE, "description": "People we talk to."},
    ),
    OperationKind.CREATE_FIELD: OperationNote(
        "Add a field.", "CreateField", {**_DATABASE, "label": "City", "kind": "text"}
    ),
    OperationKind.UPDATE_FIELD: OperationNote(
        "Change a field, except its kind.",
        "UpdateField",
        {**_DATABASE, "fieldId": EXAMPLE_ID, "label": "Town"},
    ),
    OperationKind.CREATE_VIEW: OperationNote(
        "Add a view.", "CreateView", {**_DATABASE, "label": "All", "kind": "table"}
    ),
    OperationKind.UPDATE_VIEW: OperationNote(
        "Change a view.", "UpdateView", {**_VIEW, "label": "Everyone"}
    ),
    OperationKind.DELETE_VIEW: OperationNote("Permanently delete a view.", None, _VIEW),
    OperationKind.CREATE_RECORD: OperationNote(
        "Create a record.", "CreateRecord", {**_DATABASE, "title": "Acme"}
    ),
    OperationKind.CREATE_RECORDS: OperationNote(
        "Create up to 500 records, all or none. Each can have its own `ref`.",
        "CreateRecord",
        {**_DATABASE, "records": [{"ref": "acme", "title": "Acme"}, {"title": "Other"}]},
    ),
    OperationKind.UPDATE_RECORD: OperationNote(
        "Change a record.", "UpdateRecord", {"recordId": EXAMPLE_ID, "data": {"city": "Bern"}}
    ),
    OperationKind.DELETE_RECORD: OperationNote(
        "Move a record to the trash.", None, {"recordId": EXAMPLE_ID}
    ),
    OperationKind.ADD_BLOCKS: OperationNote(
        "Add blocks to a page, canvas or dashboard.",
        "AddBlocks",
        {"surfaceId": EXAMPLE_ID, **_BLOCKS},
    ),
    OperationKind.REPLACE_SURFACE: OperationNote(
        "Replace all blocks of a page, canvas or dashboard.",
        "ReplaceSurface",
        {"surfaceId": EXAMPLE_ID, **_BLOCKS},
    ),
    OperationKind.CREATE_ACTION: OperationNote(
        "Create an action.",
        "CreateAction",
        {
            "label": "Notify the team",
            "kind": "send_notification",
            "config": {"role": "editor", "title": "Hello"},
        },
    ),
    OperationKind.CREATE_AUTOMATION: OperationNote(
        "Create an automation as a draft.",
        "CreateAutomation",
        {"label": "Hello", "graph": {"nodes": [], "edges": []}},
    ),
    OperationKind.UPDATE_AUTOMATION: OperationNote(
        "Change the draft of an automation, or enable it.",
        "UpdateAutomation",
        {"automationId": EXAMPLE_ID, "enabled": True},
    ),
    OperationKind.PUBLISH_AUTOMATION: OperationNote(
        "Publish the draft of an automation.", "PublishAutomation", {"automationId": EXAMPLE_ID}
    ),
}


MAX_DEPTH = 24


def check_operations(operations: Sequence[Operation]) -> None:
    """Raise `ValidationError` with every problem.

    An operation refers only to those before it, so there are no cycles.
    """
    problems: list[Detail] = []
    names: set[str] = set()
    for place, operation in enumerate(operations):
        at = f"operations.{place}"
        problems += _problems(operation, at, names)
        made = [] if operation.ref is None else [operation.ref]
        for name in [*made, *record_refs(operation)]:
            if name in names:
                problems.append(Detail(f"{at}.ref", f"The name {name} is used twice."))
            names.add(name)
    refuse(problems)


def record_refs(operation: Operation) -> list[str]:
    """The names of the records of a `create_records`."""
    if operation.kind is not rules.OperationKind.CREATE_RECORDS:
        return []
    records = operation.input.get("records")
    found = [one.get("ref") for one in records or [] if isinstance(one, dict)]
    return [name for name in found if isinstance(name, str)]


def _problems(operation: Operation, at: str, known: set[str]) -> Iterator[Detail]:
    try:
        check_storable(operation.input, MAX_DEPTH)
    except InvalidValueError as problem:
        yield Detail(f"{at}.input", str(problem))
        return
    for name in sorted(rules.refs_in(operation.input) - known):
        yield Detail(f"{at}.input", f"No earlier operation creates {name}.")
    try:
        read_input(operation.kind, rules.with_placeholders(operation.input), f"{at}.input")
    except ValidationError as error:
        yield from error.details


def read_input(kind: rules.OperationKind, values: JsonObject, path: str) -> tuple[Any, Any]:
    """The subject of the operation, and its body. Raises `ValidationError` below `path`."""
    rule = rules.RULES[kind]
    names = rules.keys_of(rule.about)
    about = {key: value for key, value in values.items() if key in names}
    rest = {key: value for key, value in values.items() if key not in names}
    return read_part(rule.about, about, path), read_part(rule.body, rest, path)


@dataclass(frozen=True, slots=True)
class Made:
    """The subject that an operation made or changed, and the ids of its parts by their names."""

    subject_id: Id
    parts: Mapping[str, Id] = field(default_factory=dict)
    records: Sequence[Id] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One operation, read: who asks, what it is about and its body."""

    work: UnitOfWork
    actor: Actor
    keys: KeyRing
    about: Any
    body: Any


async def carry_out(
    work: UnitOfWork, actor: Actor, keys: KeyRing, operation: Operation, names: rules.Names
) -> Made:
    """Do what one operation says, as its own endpoint would for this actor.

    Raises what that endpoint answers with, and `ValidationError` for a name of nothing.
    """
    about, body = read_input(operation.kind, rules.resolved(operation.input, names), "input")
    await _admit(work, actor, operation.kind, about)
    return await _COMMANDS[operation.kind](Call(work, actor, keys, about, body))


def named(operation: Operation, result: Made) -> dict[str, Id]:
    """The names by which later operations may refer to what was made."""
    names: dict[str, Id] = {}
    if operation.ref is not None:
        names[operation.ref] = result.subject_id
        names.update({f"{operation.ref}.{part}": id_ for part, id_ in result.parts.items()})
    if operation.kind is rules.OperationKind.CREATE_RECORDS:
        for record, id_ in zip(operation.input["records"], result.records, strict=True):
            if record.get("ref") is not None:
                names[record["ref"]] = id_
    return names


_Visible = Callable[[UnitOfWork, Sequence[Id], Id, Id], Awaitable[Placement | None]]
_VISIBLE: Mapping[str, _Visible] = {
    "automation": visible_automation,
    "database": visible_database,
    "item": items.placement,
    "record": visible_record,
    "surface": visible_surface,
}


async def _admit(work: UnitOfWork, actor: Actor, kind: rules.OperationKind, about: object) -> None:
    """The checks of the endpoint (interface.md#order-of-checks): scope, visibility, level."""
    rule = rules.RULES[kind]
    if rule.scope not in actor.scopes and rule.other_scope not in actor.scopes:
        raise DeniedError(f"The credential lacks the scope {rule.scope}.")
    if rule.resource is None:
        return
    resource_id: Id = getattr(about, f"{rule.resource}_id")
    find = _VISIBLE[rule.resource]
    placement = await find(work, [actor.workspace_id], resource_id, actor.user_id)
    if placement is None or level_on(placement, actor.role) < Level.VIEW:
        raise NotFoundError(rule.resource)
    if level_on(placement, actor.role) < rule.level:
        raise DeniedError(f"This needs {rule.level.name.lower()} access to the {rule.resource}.")


def _parts_of(database: DatabaseDetail) -> dict[str, Id]:
    return {
        "item": database.item_id,
        **{f"views.{one.key}": one.id for one in database.views},
        **{f"fields.{one.key}": one.id for one in database.fields},
    }


async def _create_item(call: Call) -> Made:
    placed: PlacedTarget = await create_item(call.work, call.actor, call.keys, call.body)
    target = placed.target
    parts = {"item": placed.item.id}
    if isinstance(target, DatabaseDetail):
        parts |= _parts_of(target)
    elif placed.item.target_id is not None:
        parts["target"] = placed.item.target_id
        parts["surface"] = placed.item.target_id
    return Made(placed.item.id, parts)


async def _update_item(call: Call) -> Made:
    return Made((await update_item(call.work, call.actor, call.about.item_id, call.body)).id)


async def _move_item(call: Call) -> Made:
    return Made((await move_item(call.work, call.actor, call.about.item_id, call.body)).id)


async def _delete_item(call: Call) -> Made:
    await delete_item(call.work, call.actor, call.keys, call.about.item_id)
    return Made(call.about.item_id)


async def _create_database(call: Call) -> Made:
    made = await create_database(call.work, call.actor, call.body)
    return Made(made.id, _parts_of(made))


async def _update_database(call: Call) -> Made:
    made = await update_database(call.work, call.actor, call.about.database_id, call.body)
    return Made(made.id, _parts_of(made))


async def _create_field(call: Call) -> Made:
    return Made((await create_field(call.work, call.actor, call.about.database_id, call.body)).id)


async def _update_field(call: Call) -> Made:
    about = call.about
    made = await update_field(call.work, call.actor, about.database_id, about.field_id, call.body)
    return Made(made.id)


async def _create_view(call: Call) -> Made:
    return Made((await create_view(call.work, call.actor, call.about.database_id, call.body)).id)


async def _update_view(call: Call) -> Made:
    about = call.about
    made = await update_view(call.work, call.actor, about.database_id, about.view_id, call.body)
    return Made(made.id)


async def _delete_view(call: Call) -> Made:
    about = call.about
    return Made((await delete_view(call.work, call.actor, about.database_id, about.view_id)).id)


async def _create_record(call: Call) -> Made:
    return Made((await create_record(call.work, call.actor, call.about.database_id, call.body)).id)


async def _create_records(call: Call) -> Made:
    body: rules.CreateRecords = call.body
    operations = [{"op": "create", **_fields_set(one)} for one in body.records]
    batch = RecordBatch.model_validate({"operations": operations}, strict=False)
    written = await write_batch(call.work, call.actor, call.about.database_id, batch)
    return Made(call.about.database_id, records=[one.id for one in written.records])


def _fields_set(record: rules.NewRecord) -> JsonObject:
    return record.model_dump(mode="json", by_alias=True, exclude={"ref"}, exclude_unset=True)


async def _update_record(call: Call) -> Made:
    return Made((await update_record(call.work, call.actor, call.about.record_id, call.body)).id)


async def _delete_record(call: Call) -> Made:
    return Made((await delete_record(call.work, call.actor, call.about.record_id)).id)


async def _add_blocks(call: Call) -> Made:
    await add_blocks(call.work, call.actor, call.about.surface_id, call.body)
    return Made(call.about.surface_id)


async def _replace_surface(call: Call) -> Made:
    made = await replace_surface(call.work, call.actor, call.about.surface_id, call.body)
    return Made(made.id)


async def _create_action(call: Call) -> Made:
    made = await create_action(call.work, call.actor, call.body, call.body.parent_item_id)
    return Made(made.id, {"item": made.item_id})


async def _create_automation(call: Call) -> Made:
    made = await create_automation(call.work, call.actor, call.keys, call.body)
    return Made(made.id, {"item": made.item_id})


async def _update_automation(call: Call) -> Made:
    automation_id = call.about.automation_id
    made = await update_automation(call.work, call.actor, call.keys, automation_id, call.body)
    return Made(made.id)


async def _publish_automation(call: Call) -> Made:
    automation_id = call.about.automation_id
    made = await publish(call.work, call.actor, call.keys, automation_id, call.body)
    return Made(made.id)


_COMMANDS: Mapping[rules.OperationKind, Callable[[Call], Awaitable[Made]]] = {
    rules.OperationKind.CREATE_ITEM: _create_item,
    rules.OperationKind.UPDATE_ITEM: _update_item,
    rules.OperationKind.MOVE_ITEM: _move_item,
    rules.OperationKind.DELETE_ITEM: _delete_item,
    rules.OperationKind.CREATE_DATABASE: _create_database,
    rules.OperationKind.UPDATE_DATABASE: _update_database,
    rules.OperationKind.CREATE_FIELD: _create_field,
    rules.OperationKind.UPDATE_FIELD: _update_field,
    rules.OperationKind.CREATE_VIEW: _create_view,
    rules.OperationKind.UPDATE_VIEW: _update_view,
    rules.OperationKind.DELETE_VIEW: _delete_view,
    rules.OperationKind.CREATE_RECORD: _create_record,
    rules.OperationKind.CREATE_RECORDS: _create_records,
    rules.OperationKind.UPDATE_RECORD: _update_record,
    rules.OperationKind.DELETE_RECORD: _delete_record,
    rules.OperationKind.ADD_BLOCKS: _add_blocks,
    rules.OperationKind.REPLACE_SURFACE: _replace_surface,
    rules.OperationKind.CREATE_ACTION: _create_action,
    rules.OperationKind.CREATE_AUTOMATION: _create_automation,
    rules.OperationKind.UPDATE_AUTOMATION: _update_automation,
    rules.OperationKind.PUBLISH_AUTOMATION: _publish_automation,
}
