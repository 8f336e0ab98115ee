"""Bindings: values of a config that come from the run, with templates and marks of secrets.

An object with exactly the keys `type` and `value`, `type` being a binding type, is a binding, at
any depth. A literal of that shape is wrapped in a `literal` binding.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeGuard, overload

from pydantic import JsonValue

from models.automation.automations.rules.graph.kinds import NodeKind, shorten
from models.automation.automations.rules.language.paths import compile_path
from models.core.base import JsonObject
from models.core.expressions.rules import expressions
from models.core.expressions.rules.cel_text import segment_end
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.json_values import MAX_DEPTH
from models.core.http_requests import Place, as_it_is
from models.core.problems import an

__all__ = [
    "PLAIN_BRACES",
    "BindingContext",
    "BindingError",
    "BindingType",
    "braces",
    "check_depth",
    "holds_binding",
    "is_binding",
    "problems",
    "resolve",
    "without_literals",
]


class BindingType(StrEnum):
    LITERAL = "literal"
    TRIGGER = "trigger"
    NODE = "node"
    ITEM = "item"
    RUN = "run"
    VARIABLE = "variable"
    SECRET = "secret"  # noqa: S105  # the name of a kind of binding
    TEMPLATE = "template"
    EXPRESSION = "expression"


_TYPES = {kind.value: kind for kind in BindingType}
RUN_FACTS = ("id", "startedAt", "source", "workspaceId", "resumeUrl")
INDEX = "$index"


@dataclass(frozen=True, slots=True)
class BindingContext:
    """The JSON values a node can read: outputs by node id, the run, and the loop's item.

    Only a node that `sends_secrets` may name them, and what it gets are their marks; no expression
    reads them.
    """

    trigger: Any
    nodes: Mapping[str, Any]
    run: JsonObject
    item: Any = None
    index: int | None = None
    vars: JsonObject = field(default_factory=dict)
    sends_secrets: bool = False

    def variables(self) -> JsonObject:
        """The variables of expressions and filters (interface.md#expressions)."""
        return {
            "trigger": self.trigger,
            "nodes": self.nodes,
            "run": self.run,
            "item": self.item,
            "index": self.index,
            "vars": self.vars,
        }


def is_binding(value: object) -> TypeGuard[JsonObject]:
    """True when a JSON value is a binding rather than plain data."""
    return (
        isinstance(value, dict)
        and len(value) == 2
        and "value" in value
        and isinstance(value.get("type"), str)
        and value["type"] in _TYPES
    )


@overload
def resolve(value: JsonObject, context: BindingContext, depth: int = 0) -> JsonObject: ...


@overload
def resolve(value: JsonValue, context: BindingContext, depth: int = 0) -> JsonValue: ...


def resolve(value: JsonValue, context: BindingContext, depth: int = 0) -> JsonValue:
    """The value with every binding in it resolved. A path to nothing gives None.

    Raises BindingError for a binding that cannot be read or evaluated.
    """
    check_depth(depth)
    if is_binding(value):
        return _resolve_binding(_TYPES[value["type"]], value["value"], context)
    if isinstance(value, dict):
        return {key: resolve(item, context, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, context, depth + 1) for item in value]
    return value


def _resolve_binding(kind: BindingType, value: JsonValue, context: BindingContext) -> JsonValue:
    if kind is BindingType.LITERAL:
        return value
    text = _text(kind, value)
    if kind is BindingType.SECRET:
        if not context.sends_secrets:
            raise BindingError(SECRETS_LEAVE)
        return SecretMark.of(text)
    if kind is BindingType.EXPRESSION:
        return expressions.saved_expression(text).evaluate(context.variables())
    if kind is BindingType.TEMPLATE:
        return compile_template(text).render(context.variables())
    if kind is BindingType.NODE:
        node_id, path = compile_path(text).split()
        return path.get(context.nodes.get(node_id))
    if kind is BindingType.ITEM:
        return context.index if text == INDEX else compile_path(text).get(context.item)
    if kind is BindingType.RUN:
        return compile_path(text).get(context.run)
    if kind is BindingType.VARIABLE:
        return compile_path(text).get(context.vars)
    return compile_path(text).get(context.trigger)


def problems(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The problems with the bindings of a config, as path and message."""
    check_depth(depth)
    if is_binding(value):
        problem = _problem(_TYPES[value["type"]], value["value"])
        if problem is not None:
            yield path, problem
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from problems(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(item, f"{path}.{index}" if path else str(index), depth + 1)


@overload
def without_literals(value: JsonObject, depth: int = 0) -> JsonObject: ...


@overload
def without_literals(value: JsonValue, depth: int = 0) -> JsonValue: ...


def without_literals(value: JsonValue, depth: int = 0) -> JsonValue:
    """The value with its `literal` bindings unwrapped; other bindings stay."""
    check_depth(depth)
    if is_binding(value):
        return value["value"] if value["type"] == BindingType.LITERAL else value
    if isinstance(value, dict):
        return {key: without_literals(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [without_literals(item, depth + 1) for item in value]
    return value


def holds_binding(value: object, depth: int = 0) -> bool:
    """True when there is a binding anywhere in a value."""
    check_depth(depth)
    if is_binding(value):
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(holds_binding(part, depth + 1) for part in parts)


PLAIN_BRACES = (
    'Plain text, in which {{ … }} is not replaced. Use {"type": "template", "value": "…"} '
    'to replace it, or {"type": "literal", "value": "…"} to keep it.'
)
_BRACES = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def braces(value: object, path: str = "") -> Iterator[str]:
    """The places of plain texts in a config that look like templates and are none."""
    if isinstance(value, str):
        if _BRACES.search(value):
            yield path
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from braces(item, f"{path}.{index}" if path else str(index))
    elif isinstance(value, dict) and not is_binding(value):
        for key, item in value.items():
            yield from braces(item, f"{path}.{key}" if path else str(key))


def _problem(kind: BindingType, value: object) -> str | None:
    if kind is BindingType.LITERAL:
        return None
    try:
        text = _text(kind, value)
        if kind is BindingType.EXPRESSION:
            expressions.compile_expression(text)
        elif kind is BindingType.TEMPLATE:
            compile_template(text)
            for segment in segments(text):
                expressions.compile_expression(segment)
        elif kind in (BindingType.NODE, BindingType.VARIABLE):
            compile_path(text).split()
        elif kind is BindingType.RUN:
            known = compile_path(text).split()[0] in RUN_FACTS
            return None if known else f"A run has only {', '.join(RUN_FACTS)}."
        elif kind is not BindingType.SECRET and (kind, text) != (BindingType.ITEM, INDEX):
            compile_path(text)
    except BindingError as error:
        return error.message
    return None


def _text(kind: BindingType, value: object) -> str:
    if not isinstance(value, str):
        raise BindingError(f"The value of {an(kind)} binding must be text.")
    return value


def check_depth(depth: int) -> None:
    """Raises BindingError for a value that is nested too deep."""
    if depth > MAX_DEPTH:
        raise BindingError(f"The config is nested deeper than {MAX_DEPTH} levels.")


MAX_LENGTH = 20_000
MAX_SEGMENTS = 100
MAX_RESULT = 1024 * 1024
"""Characters of a rendered template."""


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template."""

    parts: tuple[str | expressions.Expression, ...]

    def reads(self, variable: str) -> frozenset[str] | None:
        """The keys of a variable its segments can read; None when that depends on the data."""
        names: set[str] = set()
        for part in self.parts:
            if not isinstance(part, str):
                keys = part.reads(variable)
                if keys is None:
                    return None
                names |= keys
        return frozenset(names)

    def render(self, variables: Mapping[str, Any]) -> str:
        """The text: strings as they are, nothing for null, JSON for any other value.

        Raises ExpressionError when a segment fails, BindingError when the text grows too long.
        """
        pieces: list[str] = []
        room = MAX_RESULT
        for part in self.parts:
            piece = part if isinstance(part, str) else _as_text(part.evaluate(variables))
            room -= len(piece)
            if room < 0:
                raise BindingError(f"The text of a template has at most {MAX_RESULT} characters.")
            pieces.append(piece)
        return "".join(pieces)


def segments(text: str) -> Iterator[str]:
    """The CEL texts of a template, as far as it can be read."""
    return (segment for _, segment in placed_segments(text))


def placed_segments(text: str) -> Iterator[tuple[int, str]]:
    """The same, each with the offset at which it begins."""
    at = 0
    while (opened := text.find("{{", at)) >= 0:
        closed = segment_end(text, opened + 2)
        if closed is None:
            return
        inner = text[opened + 2 : closed]
        yield opened + 2 + len(inner) - len(inner.lstrip()), inner.strip()
        at = closed + 2


@lru_cache(maxsize=1_024)
def compile_template(text: str) -> Template:
    """Read a template. Raises BindingError for an open segment, ExpressionError for bad CEL."""
    if len(text) > MAX_LENGTH:
        raise BindingError(f"A template has at most {MAX_LENGTH} characters.")
    parts: list[str | expressions.Expression] = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = segment_end(text, start + 2)
        if end is None:
            raise BindingError(f"The `{{{{` at character {start + 1} has no `}}}}`.")
        if len(parts) >= 2 * MAX_SEGMENTS:
            raise BindingError(f"A template has at most {MAX_SEGMENTS} segments.")
        parts += [text[at:start], expressions.saved_expression(text[start + 2 : end].strip())]
        at = end + 2
    parts.append(text[at:])
    return Template(tuple(part for part in parts if part != ""))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


SENDERS = frozenset({NodeKind.HTTP_REQUEST, NodeKind.SEND_EMAIL, NodeKind.SEND_WEBHOOK})
"""Kinds whose parameters leave the platform. An action's input is kept with its run, so the
secrets an action sends are named by its own config."""

SECRETS_LEAVE = "Only nodes and steps that call external services may use secrets."


class SecretMark(str):
    """The text a run shows in place of a secret.

    The effect that sends it puts the value there. Data cannot forge a mark: its text alone is none.
    """

    __slots__ = ()

    @classmethod
    def of(cls, name: str) -> "SecretMark":
        """The mark of the secret of that name."""
        return cls(f"[secret {name}]")

    @property
    def name(self) -> str:
        return self.removeprefix("[secret ").removesuffix("]")


def no_secret(name: str) -> str:
    """The error message for a name that no secret of the workspace has."""
    return f'Secret "{shorten(name)}" not found.'


def marked_names(value: object) -> Iterator[str]:
    """The names of the secrets whose marks stand in a JSON value."""
    if isinstance(value, SecretMark):
        yield value.name
    elif isinstance(value, dict):
        for item in value.values():
            yield from marked_names(item)
    elif isinstance(value, list):
        for item in value:
            yield from marked_names(item)


def revealed(parameters: JsonObject, secrets: Mapping[str, str]) -> JsonObject:
    """The parameters with the secrets in place of their marks."""
    return {key: _revealed(item, secrets) for key, item in parameters.items()}


def _revealed(value: JsonValue, secrets: Mapping[str, str]) -> JsonValue:
    if isinstance(value, SecretMark):
        return secrets[value.name]
    if isinstance(value, dict):
        return {key: _revealed(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_revealed(item, secrets) for item in value]
    return value


_WRITTEN_OUT = frozenset({BindingType.LITERAL, BindingType.TEMPLATE, BindingType.EXPRESSION})
"""Bindings whose text may hold the credential itself."""


def written(value: object) -> Iterator[tuple[Place, object]]:
    """The parts that are written out in a value that may be a binding."""
    if not is_binding(value):
        yield from as_it_is(value)
    elif value["type"] in _WRITTEN_OUT and value["value"] is not None:
        yield ("value",), value["value"]
