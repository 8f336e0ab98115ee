"""Buttons: fields of records that run an action, with the input from the record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from models.automation.action_runs.store import ActionRequest, RunAction, accept, runnable_action
from models.automation.actions.store import visible as visible_action
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import saved_expression
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.fields.rules.new_fields import RECORD_FACTS
from models.data.records.queries import get_record, load_schema_of
from models.data.records.shapes import RecordDetail
from models.messages.events.rules import EventKind
from models.messages.events.store import emit
from models.people.users import find_user
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import parse_id
from runtime.processes.bounded_processes import evaluate_bounded


async def press_button(
    work: UnitOfWork, actor: Actor, record_id: Id, key: str, run_id: Id, body: RunAction
) -> Id:
    """Accept a run of the action behind a button, and emit `button_pressed`.

    Gives the action's id. Raises `NotFoundError` for a record or an action the actor does not
    see, `DeniedError` without edit access to the action, and `ValidationError` for a field that
    is no button, settings that cannot be read, and a disabled action.
    """
    schema = await load_schema_of(work, actor.workspace_id, record_id)
    button = read_button(key, schema.fields.get(key))
    await _require_edit(work, actor, button.action_id)
    record = await get_record(work, actor, record_id)
    user = await _user(work, actor)
    bound = await evaluate_bounded(lambda: button.input(_pressed(record, user)))
    action = await runnable_action(work, actor.workspace_id, button.action_id)
    await accept(work, actor, action, ActionRequest(run_id, {**bound, **body.input}))
    payload = {"record": record.to_json(), "user": user, "fieldKey": key}
    kind = EventKind.BUTTON_PRESSED
    await emit(work, actor.workspace_id, kind, schema.database_id, payload, event_id=run_id)
    return button.action_id


async def _require_edit(work: UnitOfWork, actor: Actor, action_id: Id) -> None:
    level = await visible_action.level(work, actor, action_id)
    if level < Level.VIEW:
        raise NotFoundError("action")
    if level < Level.EDIT:
        raise DeniedError("You need edit access to the action behind the button.")


async def _user(work: UnitOfWork, actor: Actor) -> JsonObject:
    found = await find_user(work, actor.user_id)
    facts = {key: getattr(found, key, None) for key in USER_KEYS}
    return {**facts, "id": str(actor.user_id)}


@dataclass(frozen=True, slots=True)
class Pressed:
    """The JSON values that the bindings of a button read."""

    facts: JsonObject
    """The record's id, title and database."""
    values: JsonObject
    """The record's values by field key."""
    user: JsonObject


def _pressed(record: RecordDetail, user: JsonObject) -> Pressed:
    shown = record.to_json()
    groups = ("data", "relations", "computed", "system")
    values = {key: value for group in groups for key, value in shown[group].items()}
    facts = {key: shown[key] for key in ("id", "title", "databaseId")}
    return Pressed(facts, {**values, "title": shown["title"]}, user)


USER_KEYS = ("id", "name", "email")


@dataclass(frozen=True, slots=True)
class Button:
    """A button's settings."""

    action_id: Id
    bindings: Mapping[str, Any]

    def input(self, pressed: Pressed) -> JsonObject:
        """The action's input. Raises `ValidationError` for a binding that cannot be read."""
        return {name: _bound(name, binding, pressed) for name, binding in self.bindings.items()}


def read_button(key: str, spec: FieldSpec | None) -> Button:
    """The button in a field. Raises `ValidationError` when it is none, or cannot be read."""
    if spec is None or spec.kind is not FieldKind.BUTTON:
        raise ValidationError.at("fieldKey", f"The field {key[:64]} is not a button.")
    action_id = spec.settings.get("actionId")
    bindings = spec.settings.get("bindings") or {}
    parsed = parse_id(action_id) if isinstance(action_id, str) else None
    if parsed is None or not isinstance(bindings, dict):
        raise ValidationError("The button settings are invalid. Save them again.")
    return Button(parsed, bindings)


def _bound(name: str, binding: object, pressed: Pressed) -> object:
    known = binding if isinstance(binding, dict) else {}
    kind, value = known.get("type"), known.get("value")
    if kind == "literal":
        return value
    if kind == "field" and isinstance(value, str):
        return pressed.values.get(value)
    if kind == "record" and isinstance(value, str) and value in RECORD_FACTS:
        return pressed.facts[value]
    if kind == "user" and value in (None, "", *USER_KEYS):
        return pressed.user[value or "id"]
    if kind == "expression" and isinstance(value, str):
        return _evaluated(name, value, pressed)
    raise ValidationError(f"The binding of {name[:64]} is invalid. Save the button again.")


def _evaluated(name: str, text: str, pressed: Pressed) -> JsonValue:
    variables = {"record": {**pressed.facts, **pressed.values}}
    try:
        return saved_expression(text).evaluate(variables)
    except ExpressionError as error:
        raise ValidationError(f"The binding of {name[:64]}: {error.message}") from None
