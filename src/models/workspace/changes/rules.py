"""Kinds of operations, references between them, and the states of a change set. Pure.

Anywhere in the input of an operation, the object `{"ref": "tasks"}` stands for the id of what the
operation with that `ref` makes; `{"ref": "tasks.views.board"}` for the id of one of its parts.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeGuard

from pydantic import Field, JsonValue

from models.automation.actions.rules import CreateAction
from models.automation.automations import shapes as automation_shapes
from models.content.items.rules import ItemKind
from models.content.items.shapes import MoveItem, UpdateItem
from models.content.surfaces.shapes import AddBlocks, ReplaceSurface
from models.core.access.rules import Level, Scope
from models.core.base import EXAMPLE_ID, Id, Input, InputId, JsonObject
from models.core.lifecycle.rules import Lifecycle
from models.data.databases.shapes import CreateDatabase, UpdateDatabase
from models.data.fields.shapes import CreateField, UpdateField
from models.data.records.shapes import CreateRecord, UpdateRecord
from models.data.views.shapes import CreateView, UpdateView
from models.workspace.targets.shapes import CreateItem
from runtime.errors import ValidationError

_REF = "ref"
NAME = r"^[a-z][a-z0-9_]{0,62}$"
NAMED = r"[a-z][a-z0-9_]{0,62}(\.[a-z0-9_]{1,63}){0,2}"

Names = Mapping[str, Id]
"""The ids of what was made, by name."""


def is_reference(value: object) -> TypeGuard[dict[str, str]]:
    """True when a value stands for the id of something that is made."""
    if not (isinstance(value, dict) and value.keys() == {_REF}):
        return False
    named = value[_REF]
    return isinstance(named, str) and re.fullmatch(NAMED, named) is not None


def named_in(value: object) -> Iterator[str]:
    """Every name that a value refers to, at any depth."""
    if is_reference(value):
        yield value[_REF]
    elif isinstance(value, dict):
        for part in value.values():
            yield from named_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from named_in(part)


def refs_in(value: object) -> set[str]:
    """The refs of the operations that a value refers to."""
    return {name.partition(".")[0] for name in named_in(value)}


def resolved(parameters: JsonObject, names: Names) -> JsonObject:
    """The input with ids in the place of references. Raises `ValidationError` for an unknown."""
    return {key: _resolved(part, names) for key, part in parameters.items()}


def _resolved(value: JsonValue, names: Names) -> JsonValue:
    if is_reference(value):
        found = names.get(value[_REF])
        if found is None:
            raise ValidationError(f"No earlier operation created {value[_REF]}.")
        return str(found)
    if isinstance(value, dict):
        return {key: _resolved(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [_resolved(part, names) for part in value]
    return value


def with_placeholders(parameters: JsonObject) -> JsonObject:
    """The input with some id in the place of every reference, so that its shape can be read."""
    return {key: _placeholder(part) for key, part in parameters.items()}


def _placeholder(value: JsonValue) -> JsonValue:
    if is_reference(value):
        return EXAMPLE_ID
    if isinstance(value, dict):
        return {key: _placeholder(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_placeholder(part) for part in value]
    return value


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
    """The risk of an operation, which decides the approval it needs."""

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
        Nowhere, automation_shapes.CreateAutomation, _of_automation(_NEVER), Scope.AUTOMATIONS_WRITE
    ),
    OperationKind.UPDATE_AUTOMATION: Rule(
        OnAutomation, automation_shapes.UpdateAutomation, _of_automation(_ASK), *_AUTOMATION
    ),
    OperationKind.PUBLISH_AUTOMATION: Rule(
        OnAutomation, automation_shapes.PublishAutomation, _ALWAYS, *_AUTOMATION
    ),
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


class ChangeSource(StrEnum):
    """The author of the operations; `request` is a request that was proposed."""

    MODEL = "model"
    RULES = "rules"
    HAND = "hand"
    REQUEST = "request"


class ChangeStatus(StrEnum):
    PLANNED = "planned"
    AWAITING_APPROVAL = "awaiting_approval"
    """It was applied as far as was approved; the rest may still be."""
    APPLYING = "applying"
    APPLIED = "applied"
    PARTIALLY_APPLIED = "partially_applied"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"


_ENDS = frozenset({ChangeStatus.APPLIED, ChangeStatus.PARTIALLY_APPLIED, ChangeStatus.FAILED})
_DROPPED = frozenset({ChangeStatus.REJECTED, ChangeStatus.EXPIRED})

TRANSITIONS: dict[ChangeStatus, frozenset[ChangeStatus]] = {
    ChangeStatus.PLANNED: _DROPPED | {ChangeStatus.APPLYING},
    ChangeStatus.AWAITING_APPROVAL: _DROPPED | {ChangeStatus.APPLYING},
    ChangeStatus.APPLYING: _ENDS | {ChangeStatus.AWAITING_APPROVAL},
    **{end: frozenset[ChangeStatus]() for end in sorted(_ENDS | _DROPPED)},
}
CHANGE_LIFECYCLE = Lifecycle(TRANSITIONS)
WAITING = (ChangeStatus.PLANNED, ChangeStatus.AWAITING_APPROVAL)
"""The states in which a change set may be applied, rejected, or expire."""


class ResultStatus(StrEnum):
    PENDING = "pending"
    APPLIED = "applied"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one operation; one that is `held` may still be applied."""

    status: ResultStatus
    needs_approval: bool = False
    error: str | None = None
    subject_id: str | None = None

    @property
    def held(self) -> bool:
        """Neither applied nor failed."""
        return self.status in {ResultStatus.PENDING, ResultStatus.SKIPPED}


@dataclass(frozen=True, slots=True)
class Approval:
    """The approved operations: all that may be approved together, and single ones."""

    every: bool = False
    indexes: Collection[int] = ()

    def covers(self, index: int, stake: Stake) -> bool:
        """True when an operation may be applied."""
        if stake is Stake.NEVER_ASK or index in self.indexes:
            return True
        return stake is Stake.ASK and self.every


def waits_for(
    index: int, uses: Collection[int], outcomes: Sequence[Outcome], stake: Stake, approval: Approval
) -> Outcome | None:
    """The reason why an operation is not applied now; None when it is to be.

    `uses` are the operations it refers to.
    """
    if not approval.covers(index, stake):
        return Outcome(ResultStatus.SKIPPED, needs_approval=True)
    for use in sorted(uses):
        other = outcomes[use]
        if other.status is ResultStatus.FAILED:
            error = f"Operation {use}, which this one needs, failed."
            return Outcome(ResultStatus.FAILED, error=error)
        if other.held:
            error = f"Operation {use}, which this one needs, was not applied."
            return Outcome(ResultStatus.SKIPPED, error=error)
    return None


def end_of(outcomes: Sequence[Outcome]) -> ChangeStatus:
    """The state of a change set when every operation was looked at."""
    if any(one.held for one in outcomes):
        return ChangeStatus.AWAITING_APPROVAL
    failed = sum(one.status is ResultStatus.FAILED for one in outcomes)
    if failed == 0:
        return ChangeStatus.APPLIED
    return ChangeStatus.FAILED if failed == len(outcomes) else ChangeStatus.PARTIALLY_APPLIED
