"""The kinds of operations: what each takes, needs and risks. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from models.automation.actions.shapes import CreateAction
from models.automation.automations.shapes import (
    CreateAutomation,
    PublishAutomation,
    UpdateAutomation,
)
from models.content.items.rules import ItemKind
from models.content.items.shapes import MoveItem, UpdateItem
from models.content.surfaces.shapes import AddBlocks, ReplaceSurface
from models.core.access.rules import Level, Scope
from models.core.base import Input, InputId, JsonObject
from models.data.databases.shapes import CreateDatabase, UpdateDatabase
from models.data.fields.shapes import CreateField, UpdateField
from models.data.records.shapes import CreateRecord, UpdateRecord
from models.data.views.shapes import CreateView, UpdateView
from models.workspace.changes.rules.references import NAME, is_reference
from models.workspace.targets.shapes import CreateItem

MAX_RECORDS = 500


class OperationKind(StrEnum):
    CREATE_ITEM = "create_item"
    UPDATE_ITEM = "update_item"
    MOVE_ITEM = "move_item"
    DELETE_ITEM = "delete_item"
    CREATE_DATABASE = "create_database"
    UPDATE_DATABASE = "update_database"
    CREATE_FIELD = "create_field"
    UPDATE_FIELD = "update_field"
    CREATE_VIEW = "create_view"
    UPDATE_VIEW = "update_view"
    DELETE_VIEW = "delete_view"
    CREATE_RECORD = "create_record"
    CREATE_RECORDS = "create_records"
    UPDATE_RECORD = "update_record"
    DELETE_RECORD = "delete_record"
    ADD_BLOCKS = "add_blocks"
    REPLACE_SURFACE = "replace_surface"
    CREATE_ACTION = "create_action"
    CREATE_AUTOMATION = "create_automation"
    UPDATE_AUTOMATION = "update_automation"
    PUBLISH_AUTOMATION = "publish_automation"


class Stake(StrEnum):
    """The stake of an operation: it says who must have looked at it before it is applied."""

    NEVER_ASK = "never_ask"
    """It adds, and touches nothing that was there."""
    ASK = "ask"
    """It changes what was there: applied when it is approved, also together with all others."""
    ALWAYS_ASK = "always_ask"
    """It removes something, shows it to others or sets it going: approved by its index alone."""


class OnItem(Input):
    item_id: InputId


class OnDatabase(Input):
    database_id: InputId


class OnField(OnDatabase):
    field_id: InputId


class OnView(OnDatabase):
    view_id: InputId


class OnRecord(Input):
    record_id: InputId


class OnSurface(Input):
    surface_id: InputId


class OnAutomation(Input):
    automation_id: InputId


class Nowhere(Input):
    """The subject of an operation that is made at a place its body names."""


class NoBody(Input):
    """The body of an operation that only names what it is about."""


class NewRecord(CreateRecord):
    """A record of `create_records`; others name it by its `ref`."""

    ref: Annotated[str, Field(pattern=NAME)] | None = None


class CreateRecords(Input):
    """New records of one database."""

    records: Annotated[list[NewRecord], Field(min_length=1, max_length=MAX_RECORDS)]


class NewAction(CreateAction):
    """Body of create action, and where its item is put."""

    parent_item_id: InputId | None = None


StakeOf = Callable[[JsonObject], Stake]


@dataclass(frozen=True, slots=True)
class Rule:
    """The parts that one kind takes (`about` names what it changes, `body` says how) and its needs.

    The scopes, and the level on what `about` names, are the same as in the API's own operation.
    """

    about: type[Input]
    body: type[Input]
    stake: Stake | StakeOf
    scope: Scope
    resource: str | None = None
    other_scope: Scope | None = None
    """One that serves as well; the command knows which of the two it must be."""
    level: Level = Level.EDIT


_REACHES_OUT = frozenset(
    {ItemKind.DATA_SOURCE, ItemKind.ACTION, ItemKind.EXTERNAL_RESOURCE, ItemKind.FILE}
)


def _of_new_item(given: JsonObject) -> Stake:
    config = given.get("config")
    if isinstance(config, dict) and (config.get("public") or config.get("enabled")):
        return Stake.ALWAYS_ASK
    return Stake.ASK if given.get("kind") in _REACHES_OUT else Stake.NEVER_ASK


def _of_changed_item(given: JsonObject) -> Stake:
    return Stake.ALWAYS_ASK if "accessMode" in given else Stake.ASK


def _of_automation(before: Stake) -> StakeOf:
    return lambda given: Stake.ALWAYS_ASK if given.get("enabled") else before


_ITEM = (Scope.RESOURCES_WRITE, "item")
_DATABASE = (Scope.DATABASES_WRITE, "database")
_VIEW = (Scope.VIEWS_WRITE, "database")
_RECORD = (Scope.RECORDS_WRITE, "record")
_AUTOMATION = (Scope.AUTOMATIONS_WRITE, "automation")
_NEVER, _ASK, _ALWAYS = Stake.NEVER_ASK, Stake.ASK, Stake.ALWAYS_ASK

RULES: Mapping[OperationKind, Rule] = {
    OperationKind.CREATE_ITEM: Rule(Nowhere, CreateItem, _of_new_item, Scope.RESOURCES_WRITE),
    OperationKind.UPDATE_ITEM: Rule(OnItem, UpdateItem, _of_changed_item, *_ITEM),
    OperationKind.MOVE_ITEM: Rule(OnItem, MoveItem, _ASK, *_ITEM),
    OperationKind.DELETE_ITEM: Rule(OnItem, NoBody, _ALWAYS, *_ITEM),
    OperationKind.CREATE_DATABASE: Rule(Nowhere, CreateDatabase, _NEVER, Scope.DATABASES_WRITE),
    OperationKind.UPDATE_DATABASE: Rule(OnDatabase, UpdateDatabase, _ASK, *_DATABASE),
    OperationKind.CREATE_FIELD: Rule(OnDatabase, CreateField, _ASK, *_DATABASE),
    OperationKind.UPDATE_FIELD: Rule(OnField, UpdateField, _ASK, *_DATABASE),
    OperationKind.CREATE_VIEW: Rule(OnDatabase, CreateView, _NEVER, *_VIEW),
    OperationKind.UPDATE_VIEW: Rule(OnView, UpdateView, _ASK, *_VIEW),
    OperationKind.DELETE_VIEW: Rule(OnView, NoBody, _ALWAYS, *_VIEW),
    OperationKind.CREATE_RECORD: Rule(
        OnDatabase, CreateRecord, _NEVER, Scope.RECORDS_WRITE, "database"
    ),
    OperationKind.CREATE_RECORDS: Rule(
        OnDatabase, CreateRecords, _NEVER, Scope.RECORDS_WRITE, "database"
    ),
    OperationKind.UPDATE_RECORD: Rule(OnRecord, UpdateRecord, _ASK, *_RECORD),
    OperationKind.DELETE_RECORD: Rule(OnRecord, NoBody, _ALWAYS, *_RECORD),
    OperationKind.ADD_BLOCKS: Rule(
        OnSurface, AddBlocks, _ASK, Scope.BLOCKS_WRITE, "surface", Scope.CANVAS_WRITE
    ),
    OperationKind.REPLACE_SURFACE: Rule(
        OnSurface, ReplaceSurface, _ALWAYS, Scope.SURFACES_WRITE, "surface", Scope.CANVAS_WRITE
    ),
    OperationKind.CREATE_ACTION: Rule(Nowhere, NewAction, _ASK, Scope.ACTIONS_WRITE),
    OperationKind.CREATE_AUTOMATION: Rule(
        Nowhere, CreateAutomation, _of_automation(_NEVER), Scope.AUTOMATIONS_WRITE
    ),
    OperationKind.UPDATE_AUTOMATION: Rule(
        OnAutomation, UpdateAutomation, _of_automation(_ASK), *_AUTOMATION
    ),
    OperationKind.PUBLISH_AUTOMATION: Rule(OnAutomation, PublishAutomation, _ALWAYS, *_AUTOMATION),
}


def keys_of(shape: type[Input]) -> frozenset[str]:
    """The keys of a body as the wire has them."""
    return frozenset(field.alias or name for name, field in shape.model_fields.items())


def stake_of(kind: OperationKind, values: Mapping[str, Any]) -> Stake:
    """The stake; a change of what the change set itself makes is no change of the old."""
    rule = RULES[kind]
    stake = rule.stake if isinstance(rule.stake, Stake) else rule.stake(dict(values))
    own = any(is_reference(values.get(key)) for key in keys_of(rule.about))
    return Stake.NEVER_ASK if own and stake is Stake.ASK else stake
