"""The input that a button gives to its action, from the record it was pressed on (decisions C6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import saved_expression
from models.data.fields.rules.buttons import RECORD_FACTS
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.kinds import FieldKind
from runtime.errors import ValidationError
from runtime.ids import parse_id

USER_KEYS = ("id", "name", "email")


@dataclass(frozen=True, slots=True)
class Pressed:
    """The JSON values that the bindings of a button read."""

    facts: JsonObject
    """The record's id, title and database."""
    values: JsonObject
    """The record's values by field key."""
    user: JsonObject


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
        raise ValidationError("The settings of the button cannot be read; save them again.")
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
    raise ValidationError(f"The binding of {name[:64]} cannot be read; save the button again.")


def _evaluated(name: str, text: str, pressed: Pressed) -> JsonValue:
    variables = {"record": {**pressed.facts, **pressed.values}}
    try:
        return saved_expression(text).evaluate(variables)
    except ExpressionError as error:
        raise ValidationError(f"The binding of {name[:64]}: {error.message}") from None
