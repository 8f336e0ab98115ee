"""Checks of one node: its kind, parameters, bindings and outgoing edges (C8)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from models.automation.automations.rules.graph.call_checks import call_problems
from models.automation.automations.rules.graph.catalog import (
    BY_ID_ONLY,
    NAMED,
    Noun,
    ReferenceCatalog,
)
from models.automation.automations.rules.graph.configs import CONFIGS, SwitchConfig
from models.automation.automations.rules.graph.kinds import (
    NODE_KINDS,
    EdgeOutcome,
    NodeKind,
    shorten,
)
from models.automation.automations.rules.graph.record_checks import record_problems
from models.automation.automations.rules.graph.reference_checks import missing
from models.automation.automations.rules.graph.shapes import GraphEdge, GraphNode
from models.automation.automations.rules.language.bindings import (
    PLAIN_BRACES,
    braces,
    is_binding,
    problems,
    without_literals,
)
from models.automation.automations.rules.language.filters import filter_problems
from models.automation.automations.rules.language.static_reads import node_references
from models.core.base import Input, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import compile_expression
from models.core.nearest import known
from models.core.problems import MAX_PROBLEMS, an, known_keys, sentence

STATIC = {
    NodeKind.CONDITION: ("expression", "filter"),
    NodeKind.SWITCH: ("cases",),
    NodeKind.JOIN: ("mode", "count"),
    NodeKind.FOR_EACH: ("collect",),
    NodeKind.REPEAT: ("collect",),
}
"""Parameters that take no bindings, because they decide how the run is executed."""


def node_problems(
    node: GraphNode, nodes: Mapping[str, object], catalog: ReferenceCatalog
) -> Iterator[str]:
    """The problems with a node by itself."""
    kind = node.kind
    parameters = node.parameters()
    for path, message in problems(parameters):
        yield f"{_place(node, path)}: {message}"
    for name in STATIC.get(kind, ()):
        if is_binding(parameters.get(name)):
            yield f"{_place(node, name)}: It cannot be a binding, since it decides the plan."
    own = NAMED.get(kind)
    if own is not None and (own in node.input or is_binding(parameters.get(own))):
        yield f"{_place(node, own)}: {BY_ID_ONLY}"
    yield from _parameter_problems(node, kind, parameters)
    yield from _expression_problems(node, kind, parameters)
    for path in braces(parameters):
        yield f"{_place(node, path)}: {PLAIN_BRACES}"
    for node_id in sorted((node_references(node) or frozenset()) - nodes.keys()):
        yield f'It reads the node "{shorten(node_id)}", which does not exist.'
    named = without_literals(parameters)
    of_kind = call_problems(named, catalog) if kind is NodeKind.CALL_AUTOMATION else ()
    for path, message in (*record_problems(kind, named, catalog), *of_kind):
        yield f"{_place(node, path)}: {message}"
    yield from _missing(node, kind, named, catalog)


def _missing(
    node: GraphNode, kind: NodeKind, named: JsonObject, catalog: ReferenceCatalog
) -> Iterator[str]:
    """An action's own input may have any keys; what the other kinds name must be there."""
    if kind is not NodeKind.ACTION:
        for path, message in missing(named, catalog):
            yield f"{_place(node, path)}: {message}"
    elif node.action_id is None:
        yield "actionId is required."
    elif not catalog.has(Noun.ACTION, node.action_id):
        yield f'actionId: There is no action "{shorten(node.action_id)}".'


def _parameter_problems(node: GraphNode, kind: NodeKind, given: JsonObject) -> Iterator[str]:
    value = without_literals(given)
    reported: set[str] = set()
    for path, message in model_problems(CONFIGS[kind], value):
        if path not in reported:
            reported.add(path)
            yield f"{_place(node, path)}: {message}"


def model_problems(model: type[Input], value: JsonObject) -> Iterator[tuple[str, str]]:
    """The problems a model finds in a value whose bindings are not resolved, as path and message.

    What is said about a binding, or about a place inside one, is not said.
    """
    try:
        model.model_validate(value)
    except pydantic.ValidationError as error:
        for at, part in enumerate(error.errors(include_url=False)):
            place = _known_place(value, part["loc"])
            if part["type"] == "extra_forbidden":
                place = _unknown_key(value, part["loc"])
            if place is not None:
                yield place, _sentence(part, model, at_length=at < MAX_PROBLEMS)


def _unknown_key(value: object, loc: Sequence[str | int]) -> str | None:
    """The place of a key that the model does not have, whatever its value is."""
    *above, key = loc
    place = _known_place(value, above) if above else ""
    return None if place is None else f"{place}.{key}".lstrip(".")


def _known_place(value: object, loc: Sequence[str | int]) -> str | None:
    """The part of an error's place that the value has, one key more at most; None in a binding."""
    parts: list[str] = []
    for step in loc:
        if is_binding(value):
            return None
        if isinstance(value, dict):
            parts.append(str(step))
            if step not in value:
                return ".".join(parts)
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            parts.append(str(step))
            value = value[step]
        else:
            break
    return None if is_binding(value) else ".".join(parts)


def _sentence(problem: ErrorDetails, model: type[Input], *, at_length: bool) -> str:
    if problem["type"] == "missing":
        return "is required"
    if problem["type"] == "extra_forbidden":
        if not at_length:
            return "is not a known key"
        keys = known_keys(model, problem["loc"])
        return f"is not a known key; {known(problem['loc'][-1], keys)}"
    return sentence(problem)


def _place(node: GraphNode, path: str) -> str:
    root = "input" if path.partition(".")[0] in node.input else "config"
    return f"{root}.{path}" if path else root


def _expression_problems(node: GraphNode, kind: NodeKind, given: JsonObject) -> Iterator[str]:
    texts: list[tuple[str, Any]] = [(key, given.get(key)) for key in DECIDING.get(kind, ())]
    if kind is NodeKind.CONDITION:
        if isinstance(given.get("filter"), dict) and not is_binding(given["filter"]):
            for path, message in filter_problems(given["filter"]):
                yield f"{_place(node, path)}: {message}"
    elif kind is NodeKind.SWITCH and isinstance(given.get("cases"), list):
        texts += [
            (f"cases.{index}.expression", case.get("expression"))
            for index, case in enumerate(given["cases"])
            if isinstance(case, dict)
        ]
    for path, text in texts:
        if is_binding(text) and not (kind is NodeKind.CONDITION and path == "expression"):
            yield f"{_place(node, path)}: It is CEL text itself, not a binding."
        elif isinstance(text, str) and (problem := _cel_problem(text)) is not None:
            yield f"{_place(node, path)}: {problem}"


DECIDING = {
    NodeKind.CONDITION: ("expression",),
    NodeKind.REPEAT: ("while",),
}
"""CEL text that must give true or false."""


def _cel_problem(text: str) -> str | None:
    try:
        if compile_expression(text).decides:
            return None
    except BindingError as error:
        return error.message
    return "The expression must give true or false."


def edge_problems(node: GraphNode, ways_out: Sequence[GraphEdge]) -> Iterator[str]:
    """Outgoing edges that the node's kind cannot take."""
    kind = node.kind
    allowed = NODE_KINDS[kind].outcomes
    cases = _case_keys(node) if kind is NodeKind.SWITCH else frozenset()
    for edge in ways_out:
        if edge.outcome not in allowed:
            yield _wrong_outcome(edge.outcome, kind)
        elif edge.outcome == EdgeOutcome.CASE and edge.case_key not in cases:
            named = (
                f'names no case "{shorten(edge.case_key)}"' if edge.case_key else "has no caseKey"
            )
            listed = ", ".join(sorted(cases)) or "none"
            yield f"An edge with the outcome case {named}; cases: {listed}."
        elif edge.outcome != EdgeOutcome.CASE and edge.case_key is not None:
            yield f"An edge with the outcome {edge.outcome} has a caseKey, which only case has."


def _wrong_outcome(outcome: EdgeOutcome, kind: NodeKind) -> str:
    allowed = sorted(NODE_KINDS[kind].outcomes)
    ends = (
        f"{an(kind)} node has {', '.join(allowed)}"
        if allowed
        else f"nothing follows {an(kind)} node"
    )
    return f'An edge has the outcome "{outcome}"; {ends}.'


def _case_keys(node: GraphNode) -> frozenset[str]:
    try:
        return frozenset(case.key for case in SwitchConfig.model_validate(node.parameters()).cases)
    except pydantic.ValidationError:
        return frozenset()
