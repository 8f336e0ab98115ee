"""Everything wrong with a config, and the ids it names."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from models.automation.actions.rules.configs import CONFIGS, ActionKind, parts_of
from models.automation.automations.rules.graph.catalog import BY_ID_ONLY, NAMED
from models.automation.automations.rules.graph.node_checks import model_problems
from models.automation.automations.rules.language.bindings import (
    is_binding,
    problems,
    without_literals,
)
from models.automation.automations.rules.language.credentials import written
from models.automation.automations.rules.language.secret_marks import SECRETS_LEAVE, SENDERS
from models.automation.automations.rules.language.static_reads import references, secrets_in
from models.core.base import Id, JsonObject
from models.core.credentials import GIVE_AGAIN, left_hidden
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import compile_expression
from models.core.problems import refuse
from runtime.errors import Detail, ValidationError
from runtime.ids import parse_id

_NOUNS = {
    "databaseId": "database",
    "recordId": "record",
    "dataSourceId": "data_source",
    "automationId": "automation",
    "connectionId": "connection",
    "endpointId": "webhook_endpoint",
}


@dataclass(frozen=True, slots=True)
class Named:
    """An id in a config and the noun it must be one of."""

    noun: str
    id: Id


def checked_config(kind: ActionKind, config: JsonObject) -> JsonObject:
    """The config as it is stored, with its `kind`. Raises `ValidationError` below `config`."""
    if config.get("kind", kind.value) != kind.value:
        raise ValidationError.at("config.kind", "It must be the same as kind.")
    try:
        details = [
            Detail(f"config.{path}" if path else "config", message)
            for path, message in _problems(kind, config)
        ]
    except BindingError as error:
        raise ValidationError.at("config", error.message) from None
    refuse(details)
    return {**config, "kind": kind.value}


def check_given(config: JsonObject) -> None:
    """Raises `ValidationError` for credentials that are hidden, and so cannot be sent."""
    places = left_hidden(config, written)
    refuse([Detail(".".join(map(str, ("config", *one))), GIVE_AGAIN) for one in places])


def _problems(kind: ActionKind, config: JsonObject) -> Iterator[tuple[str, str]]:
    yield from problems(config)
    if references(config, "vars"):
        yield "", "An action has no variables; give it an input instead."
    for place, part_kind, parameters in parts_of(kind, config):
        prefix = f"{place}." if place else ""
        sends = part_kind is ActionKind.SEQUENCE or part_kind.value in SENDERS
        if not sends:
            yield from ((prefix + path, SECRETS_LEAVE) for path, _ in secrets_in(parameters))
        for name in NAMED.values():
            if is_binding(parameters.get(name)):
                yield prefix + name, BY_ID_ONLY
        for path, message in model_problems(CONFIGS[part_kind], without_literals(parameters)):
            yield (prefix + path).rstrip("."), message
    yield from _conditions(config)


def _conditions(config: JsonObject) -> Iterator[tuple[str, str]]:
    steps = config.get("steps")
    for place, step in enumerate(steps if isinstance(steps, list) else []):
        when = step.get("when") if isinstance(step, dict) else None
        if not isinstance(when, str):
            continue
        try:
            if not compile_expression(when).decides:
                yield f"steps.{place}.when", "The expression must give true or false."
        except BindingError as error:
            yield f"steps.{place}.when", error.message


def named_ids(kind: ActionKind, config: JsonObject) -> list[Named]:
    """The ids a config names outside of bindings, whatever else is wrong with it."""
    targets: list[Named] = []
    for _, _, parameters in parts_of(kind, config):
        for key, noun in _NOUNS.items():
            targets += _ids(noun, [parameters.get(key)])
        users = parameters.get("userIds")
        targets += _ids("user", users if isinstance(users, list) else [])
    return list(dict.fromkeys(targets))


def _ids(noun: str, values: list[Any]) -> list[Named]:
    plain = [without_literals(value) if is_binding(value) else value for value in values]
    ids = [parse_id(value) for value in plain if isinstance(value, str)]
    return [Named(noun, one) for one in ids if one is not None]
