"""Checks of one node: its kind, parameters, bindings, edges, records and calls."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from models.automation.automations.rules.graph import catalog as graph_catalog
from models.automation.automations.rules.graph import kinds
from models.automation.automations.rules.graph.configs import CONFIGS, SwitchConfig
from models.automation.automations.rules.graph.shapes import GraphEdge, GraphNode
from models.automation.automations.rules.language import bindings
from models.automation.automations.rules.language.filters import filter_problems
from models.automation.automations.rules.language.static_reads import node_references
from models.automation.automations.rules.triggers.configs import check_payload
from models.core.base import Input, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import compile_expression
from models.core.problems import MAX_PROBLEMS, an, known_keys, nearest_known, sentence
from models.data.fields.rules.fields import TITLE_KEY, FieldSpecs, no_field
from models.data.records.rules.links import read_relations
from models.data.records.rules.query.filters import read_filter
from models.data.records.rules.query.plan import read_query
from models.data.records.rules.values import DataCheck, may_grow, meant_values, with_title
from models.data.records.shapes import RecordQuery
from runtime.errors import Detail, ValidationError
from runtime.ids import parse_id

STATIC = {
    kinds.NodeKind.CONDITION: ("expression", "filter"),
    kinds.NodeKind.SWITCH: ("cases",),
    kinds.NodeKind.JOIN: ("mode", "count"),
    kinds.NodeKind.FOR_EACH: ("collect",),
    kinds.NodeKind.REPEAT: ("collect",),
}
"""Parameters that take no bindings, because they decide how the run is executed."""


def node_problems(
    node: GraphNode, nodes: Mapping[str, object], catalog: graph_catalog.ReferenceCatalog
) -> Iterator[str]:
    """The problems with a node by itself."""
    kind = node.kind
    parameters = node.parameters()
    for path, message in bindings.problems(parameters):
        yield f"{_place(node, path)}: {message}"
    for name in STATIC.get(kind, ()):
        if bindings.is_binding(parameters.get(name)):
            yield f"{_place(node, name)}: Must not be a binding."
    own = graph_catalog.NAMED.get(kind)
    if own is not None and (own in node.input or bindings.is_binding(parameters.get(own))):
        yield f"{_place(node, own)}: {graph_catalog.BY_ID_ONLY}"
    yield from _parameter_problems(node, kind, parameters)
    yield from _expression_problems(node, kind, parameters)
    for path in bindings.braces(parameters):
        yield f"{_place(node, path)}: {bindings.PLAIN_BRACES}"
    for node_id in sorted((node_references(node) or frozenset()) - nodes.keys()):
        yield f'Reads the node "{kinds.shorten(node_id)}", which does not exist.'
    named = bindings.without_literals(parameters)
    of_kind = call_problems(named, catalog) if kind is kinds.NodeKind.CALL_AUTOMATION else ()
    for path, message in (*record_problems(kind, named, catalog), *of_kind):
        yield f"{_place(node, path)}: {message}"
    yield from _missing(node, kind, named, catalog)


def _missing(
    node: GraphNode,
    kind: kinds.NodeKind,
    named: JsonObject,
    catalog: graph_catalog.ReferenceCatalog,
) -> Iterator[str]:
    """An action's own input may have any keys; what the other kinds name must be there."""
    if kind is not kinds.NodeKind.ACTION:
        for path, message in graph_catalog.missing(named, catalog):
            yield f"{_place(node, path)}: {message}"
    elif node.action_id is None:
        yield "actionId: is required"
    elif not catalog.has(graph_catalog.Resource.ACTION, node.action_id):
        yield f'actionId: Action "{kinds.shorten(node.action_id)}" not found.'


def _parameter_problems(node: GraphNode, kind: kinds.NodeKind, given: JsonObject) -> Iterator[str]:
    value = bindings.without_literals(given)
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
        if bindings.is_binding(value):
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
    return None if bindings.is_binding(value) else ".".join(parts)


def _sentence(problem: ErrorDetails, model: type[Input], *, at_length: bool) -> str:
    if problem["type"] == "missing":
        return "is required"
    if problem["type"] == "extra_forbidden":
        if not at_length:
            return "is not a known key"
        keys = known_keys(model, problem["loc"])
        return f"is not a known key; {nearest_known(problem['loc'][-1], keys)}"
    return sentence(problem)


def _place(node: GraphNode, path: str) -> str:
    root = "input" if path.partition(".")[0] in node.input else "config"
    return f"{root}.{path}" if path else root


def _expression_problems(node: GraphNode, kind: kinds.NodeKind, given: JsonObject) -> Iterator[str]:
    texts: list[tuple[str, Any]] = [(key, given.get(key)) for key in DECIDING.get(kind, ())]
    if kind is kinds.NodeKind.CONDITION:
        if isinstance(given.get("filter"), dict) and not bindings.is_binding(given["filter"]):
            for path, message in filter_problems(given["filter"]):
                yield f"{_place(node, path)}: {message}"
    elif kind is kinds.NodeKind.SWITCH and isinstance(given.get("cases"), list):
        texts += [
            (f"cases.{index}.expression", case.get("expression"))
            for index, case in enumerate(given["cases"])
            if isinstance(case, dict)
        ]
    for path, text in texts:
        if bindings.is_binding(text) and not (
            kind is kinds.NodeKind.CONDITION and path == "expression"
        ):
            yield f"{_place(node, path)}: Must be CEL text, not a binding."
        elif isinstance(text, str) and (problem := _cel_problem(text)) is not None:
            yield f"{_place(node, path)}: {problem}"


DECIDING = {
    kinds.NodeKind.CONDITION: ("expression",),
    kinds.NodeKind.REPEAT: ("while",),
}
"""CEL text that must give true or false."""


def _cel_problem(text: str) -> str | None:
    try:
        if compile_expression(text).decides:
            return None
    except BindingError as error:
        return error.message
    return "The expression must return true or false."


def edge_problems(node: GraphNode, ways_out: Sequence[GraphEdge]) -> Iterator[str]:
    """Outgoing edges that the node's kind cannot take."""
    kind = node.kind
    allowed = kinds.NODE_KINDS[kind].outcomes
    cases = _case_keys(node) if kind is kinds.NodeKind.SWITCH else frozenset()
    for edge in ways_out:
        if edge.outcome not in allowed:
            yield _wrong_outcome(edge.outcome, kind)
        elif edge.outcome == kinds.EdgeOutcome.CASE and edge.case_key not in cases:
            label = (
                f'names no case "{kinds.shorten(edge.case_key)}"'
                if edge.case_key
                else "has no caseKey"
            )
            listed = ", ".join(sorted(cases)) or "none"
            yield f"An edge with the outcome case {label}; cases: {listed}."
        elif edge.outcome != kinds.EdgeOutcome.CASE and edge.case_key is not None:
            yield f"An edge with the outcome {edge.outcome} has a caseKey, which only case has."


def _wrong_outcome(outcome: kinds.EdgeOutcome, kind: kinds.NodeKind) -> str:
    allowed = sorted(kinds.NODE_KINDS[kind].outcomes)
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


def call_problems(
    value: JsonObject, catalog: graph_catalog.ReferenceCatalog
) -> Iterator[tuple[str, str]]:
    """The problems of the input for the published version of the called automation.

    Of an input with bindings only the keys are checked. The input of an automation that calls
    itself is not checked: publishing this version changes the schema.
    """
    automation_id, payload = value.get("automationId"), value.get("input", {})
    if not isinstance(automation_id, str) or automation_id.lower() == catalog.automation_id:
        return
    trigger = catalog.triggers.get(automation_id.lower())
    if trigger is None or not isinstance(payload, dict) or bindings.is_binding(payload):
        return
    if bindings.holds_binding(payload):
        yield from _missing_inputs(trigger.get("inputSchema"), payload)
        return
    try:
        check_payload(trigger, payload)
    except ValidationError as error:
        for problem in error.details:
            yield problem.path.replace("triggerPayload", "input", 1), problem.message


def _missing_inputs(schema: object, given: JsonObject) -> Iterator[tuple[str, str]]:
    required = schema.get("required") if isinstance(schema, dict) else None
    for key in required if isinstance(required, list) else []:
        if key not in given:
            yield f"input.{key}", "is required"


_KINDS = (
    kinds.NodeKind.QUERY_RECORDS,
    kinds.NodeKind.CREATE_RECORD,
    kinds.NodeKind.UPDATE_RECORD,
    kinds.NodeKind.DELETE_RECORD,
)
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""Any day will do: which days a filter means does not decide whether it is valid."""


def record_problems(
    kind: kinds.NodeKind, value: JsonObject, catalog: graph_catalog.ReferenceCatalog
) -> Iterator[tuple[str, str]]:
    """The problems of a node's parameters for any values of its bindings, as path and message.

    What has the wrong shape is left to the kind's own model.
    """
    database_id = value.get("databaseId")
    if kind not in _KINDS or not isinstance(database_id, str) or parse_id(database_id) is None:
        return
    fields = catalog.databases.get(database_id.lower())
    if fields is None:
        yield "databaseId", f'Database "{kinds.shorten(database_id)}" not found.'
    elif kind is kinds.NodeKind.QUERY_RECORDS:
        query = _plain(value.get("query"))
        for problem in (*_asked(query, fields), *_view_problems(query, catalog)):
            yield f"query.{problem.path}", problem.message
    else:
        new = kind is kinds.NodeKind.CREATE_RECORD and not value.get("upsertBy")
        for problem in (*_written(value, fields, new=new), *_linked(value, fields)):
            yield problem.path, problem.message


def _plain(value: object) -> JsonObject:
    """An object whose keys are known, empty for anything else."""
    return value if isinstance(value, dict) and not bindings.is_binding(value) else {}


def _written(value: JsonObject, fields: FieldSpecs, *, new: bool) -> Iterator[Detail]:
    check, data, title = DataCheck(fields), _plain(value.get("data")), value.get("title")
    dynamic_keys = {
        key for key, one in data.items() if bindings.holds_binding(one) or may_grow(fields.get(key))
    }
    constants = {key: one for key, one in data.items() if key not in dynamic_keys}
    if isinstance(title, str) and TITLE_KEY not in dynamic_keys:
        try:
            constants = with_title(constants, title)
        except ValidationError as error:
            yield from error.details
            return
    elif title is not None:
        dynamic_keys.add(TITLE_KEY)
    _, problems = check.new(constants) if new else check.patch(constants)
    upsert_by = value.get("upsertBy")
    if upsert_by and isinstance(upsert_by, list) and not bindings.holds_binding(upsert_by):
        problems += meant_values(fields, [str(key) for key in upsert_by], constants)[1]
    places = {f"data.{key}" for key in dynamic_keys}
    whole = bindings.is_binding(value.get("data"))
    for problem in problems:
        if not (problem.path in places or (whole and problem.path.startswith("data."))):
            yield problem
    for key in sorted(dynamic_keys):
        if (reason := check.unwritable(key)) is not None:
            yield Detail(f"data.{key}", reason)


def _linked(value: JsonObject, fields: FieldSpecs) -> Iterator[Detail]:
    relations = _plain(value.get("relations"))
    known = {key: None if bindings.holds_binding(one) else one for key, one in relations.items()}
    yield from read_relations(fields, known)[1]


def _view_problems(query: JsonObject, catalog: graph_catalog.ReferenceCatalog) -> Iterator[Detail]:
    view_id = query.get("viewId")
    if (
        isinstance(view_id, str)
        and parse_id(view_id)
        and not catalog.has(graph_catalog.Resource.VIEW, view_id)
    ):
        yield Detail("viewId", f'View "{kinds.shorten(view_id)}" not found.')


def _asked(query: JsonObject, fields: FieldSpecs) -> Iterator[Detail]:
    constants = {key: value for key, value in query.items() if not bindings.holds_binding(value)}
    try:
        read_query(RecordQuery.model_validate(constants), fields, _ANY_TIME)
    except pydantic.ValidationError:
        pass  # the config's model says so
    except ValidationError as error:
        yield from error.details
    for part in sorted(query.keys() - constants.keys()):
        if part == "filter":
            yield from _tested(query[part], fields, part)
        elif part in _NAMING:
            yield from _named_fields(query[part], fields, part)


_NAMING = ("fields", "sorts", "groupBy", "aggregates")


def _named_fields(value: object, fields: FieldSpecs, path: str) -> Iterator[Detail]:
    """The fields that a part of a query names beside its bindings."""
    if isinstance(value, list):
        for place, entry in enumerate(value):
            yield from _named_fields(entry, fields, f"{path}.{place}")
    elif isinstance(value, dict) and not bindings.is_binding(value):
        yield from _named_fields(value.get("field"), fields, f"{path}.field")
    elif isinstance(value, str) and value not in fields:
        yield Detail(path, no_field(value, fields))


def _tested(tree: object, fields: FieldSpecs, path: str) -> Iterator[Detail]:
    """The problems of a filter, its bound operands aside."""
    if bindings.is_binding(tree):
        return
    if not (isinstance(tree, dict) and bindings.holds_binding(tree)):
        yield from _refused(tree, fields, path)
        return
    key, inner = next(iter(tree.items()))
    if len(tree) == 1 and bindings.is_binding(inner):
        return
    if len(tree) == 1 and key == "not":
        yield from _tested(inner, fields, f"{path}.not")
    elif len(tree) == 1 and key in ("and", "or") and isinstance(inner, list):
        for place, part in enumerate(inner):
            yield from _tested(part, fields, f"{path}.{key}.{place}")
    elif not (bindings.is_binding(tree.get("field")) or bindings.is_binding(tree.get("op"))):
        variables = {
            key: None if bindings.holds_binding(value) else value for key, value in tree.items()
        }
        bound = {
            f"{path}.{key}"
            for key in ("value", "timezone")
            if bindings.holds_binding(tree.get(key))
        }
        yield from (one for one in _refused(variables, fields, path) if one.path not in bound)


def _refused(tree: object, fields: FieldSpecs, path: str) -> Iterator[Detail]:
    try:
        read_filter(tree, fields, _ANY_TIME)
    except ValidationError as error:
        for problem in error.details:
            yield Detail(f"{path}{problem.path.removeprefix('filter')}", problem.message)
