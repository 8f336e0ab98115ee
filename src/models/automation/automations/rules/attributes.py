"""Attributes of runs, and the expressions that are evaluated before a run begins.

Attributes are short texts under which people find a run, such as an order number. A caller names
them in plain text. Triggers and nodes give them as bindings, whose values become texts when the run
is accepted, or when the node has run.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from models.automation.automations.rules.language import bindings
from models.core.base import JsonObject
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import compile_expression
from models.core.expressions.rules.programs import Program, Type, environment

MAX_ATTRIBUTES = 20
LONGEST_VALUE = 200
KEY_PATTERN = "[a-z][a-zA-Z0-9_.-]{0,39}"

AttributeKey = Annotated[str, Field(pattern=f"^{KEY_PATTERN}$")]
AttributeValue = Annotated[
    str, Field(min_length=1, max_length=LONGEST_VALUE, pattern=r"^[^\x00]+$")
]
Attributes = Annotated[dict[AttributeKey, AttributeValue], Field(max_length=MAX_ATTRIBUTES)]
BoundAttributes = Annotated[dict[AttributeKey, Any], Field(max_length=MAX_ATTRIBUTES)]
"""Each value is a text or a binding."""

_EARLY = (
    bindings.BindingType.LITERAL,
    bindings.BindingType.TRIGGER,
    bindings.BindingType.TEMPLATE,
    bindings.BindingType.EXPRESSION,
)


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values that are short texts, numbers or truth values; all others are left out."""
    texts = {key: _text(value) for key, value in values.items()}
    return {key: text for key, text in texts.items() if text is not None}


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value) if isinstance(value, str | int | float) else ""
    fits = 1 <= len(text) <= LONGEST_VALUE and "\x00" not in text
    return text if fits else None


def bound_attributes(trigger_config: JsonObject, payload: JsonObject) -> dict[str, str]:
    """The attributes that a trigger gives a run, without the ones that cannot be evaluated."""
    context = bindings.BindingContext(trigger=payload, nodes={}, run={})
    values = {}
    for key, binding in (trigger_config.get("attributes") or {}).items():
        try:
            values[key] = bindings.resolve(binding, context)
        except bindings.BindingError:
            continue
    return as_texts(values)


def filled_up(own: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """The own attributes, and as many further ones as there is room for."""
    room = MAX_ATTRIBUTES - len(own)
    added = [(key, value) for key, value in further.items() if key not in own]
    return {**own, **dict(added[:room])}


def attribute_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Reasons why the attributes of a trigger cannot be evaluated, as path and sentence."""
    for key, value in values.items():
        place = f"attributes.{key}"
        if not bindings.is_binding(value):
            if bindings.holds_binding(value) or as_texts({key: value}) == {}:
                yield place, f"Must be a text of 1 to {LONGEST_VALUE} characters, or a binding."
        elif value["type"] not in _EARLY:
            yield place, f"A trigger can bind only: {', '.join(_EARLY)}."
        elif (wrong := next(bindings.problems(value, place), None)) is not None:
            yield wrong
        else:
            yield from _late_reads(place, value["type"], value["value"])


def _late_reads(place: str, kind: str, value: str) -> Iterator[tuple[str, str]]:
    texts: list[str] = []
    if kind == bindings.BindingType.EXPRESSION:
        texts = [value]
    elif kind == bindings.BindingType.TEMPLATE:
        texts = list(bindings.segments(value))
    for text in texts:
        if (problem := early_problem(text)) is not None:
            yield place, problem


READABLE = ("trigger",)
"""The variables that these expressions can read."""

_ENVIRONMENT = environment(dict.fromkeys(READABLE, Type.ANY))


def early_problem(expression: str) -> str | None:
    """The reason why an expression cannot be evaluated before the run begins, or None."""
    try:
        compile_expression(expression)
    except ExpressionError as error:
        return error.message
    try:
        # The type check knows which names the expression itself binds.
        Program(_ENVIRONMENT, expression)
    except ExpressionError as error:
        return (
            "It can read only trigger, because it is evaluated before the run begins. "
            f"{error.message}"
        )
    return None
