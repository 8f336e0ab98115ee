"""References of graphs and triggers: the fields, options and things that they name.

Types of values follow the data: the record of a trigger, the records of a node, the item of a loop
have a database, and so have the outputs of nodes that pass them on. What only the data of a run
decides is no reference.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from typing_extensions import override

from models.automation.automations.rules.graph.catalog import NAMED_BY, Resource
from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind
from models.automation.automations.rules.graph.shapes import GraphEdge
from models.automation.automations.rules.language import bindings
from models.automation.automations.rules.language.paths import typed_path
from models.automation.automations.rules.planner.plan import enclosing, homes_of
from models.automation.automations.rules.triggers.kinds import RECORD_TRIGGERS, TriggerKind
from models.core.base import JsonObject
from models.core.expressions.rules import typed_reads
from models.core.references import rules
from runtime.ids import parse_id

REFERENCES_VERSION = 3
"""The version of this reading. A graph that another version has read is read again."""

_SUBJECTS: Mapping[Resource, rules.SubjectKind] = {
    Resource.ACTION: rules.SubjectKind.ACTION,
    Resource.AUTOMATION: rules.SubjectKind.AUTOMATION,
    Resource.CONNECTION: rules.SubjectKind.CONNECTION,
    Resource.DATA_SOURCE: rules.SubjectKind.DATA_SOURCE,
    Resource.ENDPOINT: rules.SubjectKind.WEBHOOK_ENDPOINT,
    Resource.FORM: rules.SubjectKind.FORM,
    Resource.MEMBER: rules.SubjectKind.MEMBER,
    Resource.VIEW: rules.SubjectKind.VIEW,
}
_IDS: Mapping[str, rules.SubjectKind] = {
    "databaseId": rules.SubjectKind.DATABASE,
    **{key: _SUBJECTS[resource] for key, resource in NAMED_BY.items()},
}
"""The keys of configs and triggers that hold ids, and what these name."""

_DECIDING = frozenset({NodeKind.CONDITION, NodeKind.SWITCH, NodeKind.REPEAT})
"""Kinds whose configs hold CEL text under `expression` and `while`."""
_WRITING = frozenset({NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD})
_OF_RECORDS = _WRITING | {NodeKind.DELETE_RECORD, NodeKind.QUERY_RECORDS}

FormDatabases = Mapping[str, str]
"""The database of each form, by the id of its item."""


def trigger_type(config: JsonObject, forms: FormDatabases) -> typed_reads.Struct:
    """The type of the payload of a trigger."""
    database = _id(config.get("databaseId"))
    if config.get("kind") == TriggerKind.FORM_SUBMITTED:
        database = forms.get(_id(config.get("formItemId")) or "")
    if database is None or config.get("kind") == TriggerKind.TIME_ENTRY_COMPLETED:
        return typed_reads.Struct({})
    members: dict[str, typed_reads.ValueType] = {
        "record": typed_reads.record_of(database),
        "before": typed_reads.record_of(database),
    }
    if config["kind"] in RECORD_TRIGGERS:
        members["changedKeys"] = typed_reads.ListOf(typed_reads.KeyOf(database))
    if config["kind"] == TriggerKind.BUTTON_PRESSED:
        members["fieldKey"] = typed_reads.KeyOf(database)
    return typed_reads.Struct(members)


def _id(value: object) -> str | None:
    parsed = parse_id(value) if isinstance(value, str) else None
    return None if parsed is None else str(parsed)


def trigger_references(
    config: JsonObject, payload: typed_reads.Struct
) -> Iterator[rules.Reference]:
    """The references of a trigger whose payload has this type."""
    yield from _ids_of(config)
    database = _id(config.get("databaseId"))
    if database is not None:
        yield from rules.key_at(database, config.get("fieldKeys"), "fieldKeys")
        yield from rules.key_at(database, config.get("fieldKey"), "fieldKey")
    if isinstance(config.get("secretName"), str):
        secret = rules.Subject(rules.SubjectKind.SECRET, config["secretName"])
        yield rules.Reference(subject=secret, place=("secretName",))
    yield from _trigger_filter(config, database, payload)
    reader = ConfigReader({"trigger": payload})
    yield from rules.below(reader.references(config.get("attributes")), "attributes")
    concurrency = config.get("concurrency")
    text = concurrency.get("keyExpression") if isinstance(concurrency, dict) else None
    if isinstance(text, str):
        reads = typed_reads.reads_of(text, {"trigger": payload})
        yield from rules.text_references(reads, "concurrency", "keyExpression")


def _trigger_filter(
    config: JsonObject, database: str | None, payload: typed_reads.Struct
) -> Iterator[rules.Reference]:
    """A leaf names a field of the record, or a path into the payload or into a field's value."""
    variables = {**payload.members, "trigger": payload}
    if config.get("kind") == TriggerKind.RECORD_MATCHES:
        variables = {"record": payload.members.get("record")}
    predicate = config.get("filter")
    if isinstance(predicate, str):
        yield from rules.text_references(typed_reads.reads_of(predicate, variables), "filter")
    elif database is not None:
        for at, leaf in rules.filter_leaves(predicate, "filter"):
            name = leaf["field"]
            if isinstance(name, str):
                of_record = name.partition(".")[0].partition("[")[0] not in {*variables, "actor"}
                root = (
                    typed_reads.FieldsOf(database) if of_record else typed_reads.Struct(variables)
                )
                yield from _leaf_references(typed_path(name, root), leaf.get("value"), at)


def _leaf_references(
    path: typed_reads.Reads, operand: object, at: rules.Place
) -> Iterator[rules.Reference]:
    """The references of a leaf whose field is a path."""
    yield from rules.text_references(path, *at, "field")
    if isinstance(path.result, typed_reads.ValueOf):
        yield from rules.options_at(path.result.database, path.result.key, operand, *at, "value")
    elif isinstance(path.result, typed_reads.ListOf) and isinstance(
        path.result.element, typed_reads.KeyOf
    ):
        yield from rules.key_at(path.result.element.database, operand, *at, "value")


def _ids_of(config: JsonObject) -> Iterator[rules.Reference]:
    """The things that the top level of a config names by id, literal bindings unwrapped."""
    for key, kind in _IDS.items():
        if key in config:
            place, value = _unwrapped((key,), config[key])
            yield from rules.named_at(kind, value, *place)


def _unwrapped(place: rules.Place, value: object) -> tuple[rules.Place, object]:
    """A value and its place; a literal binding gives its content."""
    if bindings.is_binding(value) and value["type"] == bindings.BindingType.LITERAL:
        return (*place, "value"), value["value"]
    return place, value


@dataclass(frozen=True, slots=True)
class ConfigReader:
    """Reads configs whose bindings and expressions see these variables."""

    variables: Mapping[str, typed_reads.ValueType]

    def references(self, value: object, *place: str | int) -> Iterator[rules.Reference]:
        """The references of the bindings in a value."""
        if bindings.is_binding(value):
            yield from self._binding_references(value, *place, "value")
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from self.references(item, *place, key)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.references(item, *place, index)

    def _binding_references(
        self, binding: JsonObject, *place: str | int
    ) -> Iterator[rules.Reference]:
        if binding["type"] == bindings.BindingType.SECRET and isinstance(binding["value"], str):
            yield rules.Reference(
                subject=rules.Subject(rules.SubjectKind.SECRET, binding["value"]), place=place
            )
        yield from rules.text_references(self._reads(binding), *place)

    def type_of(self, value: object) -> typed_reads.ValueType:
        """The type of a value with its bindings resolved."""
        if bindings.is_binding(value):
            if value["type"] == bindings.BindingType.LITERAL:
                return None
            return self._reads(value).result
        if isinstance(value, dict):
            return typed_reads.Struct({key: self.type_of(item) for key, item in value.items()})
        if isinstance(value, list) and value:
            return typed_reads.ListOf(self.type_of(value[0]))
        return None

    def _reads(self, binding: JsonObject) -> typed_reads.Reads:
        kind, text = binding["type"], binding["value"]
        if not isinstance(text, str):
            return typed_reads.NOTHING
        if kind == bindings.BindingType.EXPRESSION:
            return typed_reads.reads_of(text, self.variables)
        if kind == bindings.BindingType.TEMPLATE:
            return typed_reads.Reads(None, list(self._template_reads(text)))
        variable = _VARIABLES.get(kind)
        return (
            typed_reads.NOTHING
            if variable is None
            else typed_path(text, self.variables.get(variable))
        )

    def _template_reads(self, text: str) -> Iterator[typed_reads.Read]:
        for start, segment in bindings.placed_segments(text):
            for read in typed_reads.reads_of(segment, self.variables).reads:
                at = read.start + start if read.end else 0
                yield replace(read, start=at, end=read.end and read.end + start)

    def config_references(self, kind: str, parameters: JsonObject) -> Iterator[rules.Reference]:
        """Everything that the parameters of a node or step of this kind name."""
        yield from self.references(parameters)
        if kind == NodeKind.ACTION:
            return
        yield from _ids_of(parameters)
        if kind in _DECIDING:
            yield from self._deciding(parameters)
        elif kind == NodeKind.WAIT_EVENT and isinstance(parameters.get("filter"), str):
            yield from rules.text_references(
                typed_reads.reads_of(parameters["filter"], self.variables), "filter"
            )
        elif kind in _OF_RECORDS:
            database = self.database_of(parameters)
            if database is not None:
                yield from _record_references(kind, parameters, database)

    def _deciding(self, value: object, *place: str | int) -> Iterator[rules.Reference]:
        """The CEL texts of a node that decides, and the filter of a condition."""
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._deciding(item, *place, index)
        if not isinstance(value, dict):
            return
        for key, item in value.items():
            if key in ("expression", "while") and isinstance(item, str):
                yield from rules.text_references(
                    typed_reads.reads_of(item, self.variables), *place, key
                )
            elif key == "filter":
                for at, leaf in rules.filter_leaves(item, *place, key):
                    path = typed_path(str(leaf["field"]), typed_reads.Struct(self.variables))
                    yield from _leaf_references(path, leaf.get("value"), at)
            else:
                yield from self._deciding(item, *place, key)

    def database_of(self, parameters: JsonObject) -> str | None:
        """The database of the records that a node reads or writes, as far as it can be known."""
        _, named = _unwrapped((), parameters.get("databaseId"))
        record = self.type_of(parameters.get("recordId"))
        return _id(named) or (
            record.database if isinstance(record, typed_reads.RecordIdOf) else None
        )

    def output_of(self, kind: str, parameters: JsonObject) -> typed_reads.ValueType:
        """The type of the output of a node or step."""
        if kind == NodeKind.TRANSFORM:
            return self.type_of(parameters.get("output"))
        database = self.database_of(parameters) if kind in _OF_RECORDS else None
        if database is None:
            return None
        if kind == NodeKind.QUERY_RECORDS:
            return typed_reads.Struct(
                {"records": typed_reads.ListOf(typed_reads.record_of(database))}
            )
        return typed_reads.Struct({"record": typed_reads.record_of(database)})


_VARIABLES: Mapping[str, str] = {
    bindings.BindingType.TRIGGER: "trigger",
    bindings.BindingType.NODE: "nodes",
    bindings.BindingType.ITEM: "item",
}
"""The variable that the path of a binding goes into, by its type."""


def _record_references(
    kind: str, parameters: JsonObject, database: str
) -> Iterator[rules.Reference]:
    if kind == NodeKind.QUERY_RECORDS:
        place, query = _unwrapped(("query",), parameters.get("query"))
        yield from rules.query_references(database, query, *place)
    if kind not in _WRITING:
        return
    for name in ("data", "relations"):
        place, content = _unwrapped((name,), parameters.get(name))
        if bindings.is_binding(content) or not isinstance(content, dict):
            continue
        yield from rules.members_at(database, content, *place)
        for key, value in content.items():
            at, inner = _unwrapped((*place, key), value)
            if at[-1] == "value" and len(at) > len(place) + 1:
                yield from rules.options_at(database, key, inner, *at, access=rules.Access.WRITE)
    yield from rules.key_at(database, parameters.get("upsertBy"), "upsertBy")


def graph_references(
    trigger_config: JsonObject, graph: JsonObject, forms: FormDatabases
) -> list[rules.Reference]:
    """The references of a graph and its trigger.

    Their places begin with `triggerConfig` or with `graph`; references of a node have its id.
    """
    payload = trigger_type(trigger_config, forms)
    references = list(rules.below(trigger_references(trigger_config, payload), "triggerConfig"))
    failure = rules.named_at(
        rules.SubjectKind.AUTOMATION, graph.get("failureAutomationId"), "failureAutomationId"
    )
    references += rules.below(failure, "graph")
    reader = _GraphReader(graph, payload)
    for index, node in enumerate(graph.get("nodes", ())):
        node_id, place = node["id"], ("graph", "nodes", index)
        references += (
            one.at((*place, *one.place), node_id) for one in reader.node_references(node)
        )
    return references


@dataclass(frozen=True, slots=True)
class StoredTypes:
    """The types of what runs of a graph store: their payload, and the outputs of nodes."""

    payload: typed_reads.Struct
    _reader: "_GraphReader"

    def output(self, node_id: str) -> typed_reads.ValueType:
        """The type of the output of a node; of one that is not in the graph nothing is known."""
        return self._reader.output(node_id) if node_id in self._reader.nodes else None


def stored_types(
    trigger_config: JsonObject, graph: JsonObject, forms: FormDatabases
) -> StoredTypes:
    """The types of what runs of a graph store."""
    payload = trigger_type(trigger_config, forms)
    return StoredTypes(payload, _GraphReader(graph, payload))


@dataclass(slots=True)
class _GraphReader:
    """Reads the nodes of a graph; the type of each output is found when it is read."""

    graph: JsonObject
    payload: typed_reads.Struct
    nodes: dict[str, JsonObject] = field(init=False)
    homes: dict[str, str] = field(init=False)
    outputs: dict[str, typed_reads.ValueType] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = {node["id"]: node for node in self.graph.get("nodes", ())}
        edges = [
            edge
            for edge in map(GraphEdge.model_validate, self.graph.get("edges", ()))
            if {edge.source, edge.target} <= self.nodes.keys()
        ]
        loops = any(edge.outcome == EdgeOutcome.ITEM for edge in edges)
        self.homes = homes_of(self.nodes, edges) if loops else {}

    def node_references(self, node: JsonObject) -> Iterator[rules.Reference]:
        """The references of a node, their places below the node."""
        yield from rules.named_at(rules.SubjectKind.ACTION, node.get("actionId"), "actionId")
        found = self._reader(node).config_references(node["kind"], _parameters(node))
        yield from step_references(found, node.get("input", {}))

    def _reader(self, node: JsonObject) -> ConfigReader:
        variables: dict[str, typed_reads.ValueType] = {
            "trigger": self.payload,
            "nodes": typed_reads.Struct(_Outputs(self)),
            "item": self._item(node["id"]),
        }
        return ConfigReader(variables)

    def _item(self, node_id: str) -> typed_reads.ValueType:
        """The type of the item of the innermost loop around a node."""
        around = enclosing(node_id, self.homes) if node_id in self.homes else ()
        loop = self.nodes.get(around[-1]) if around else None
        if loop is None or loop["kind"] != NodeKind.FOR_EACH:
            return None
        return typed_reads.element_of(self._reader(loop).type_of(_parameters(loop).get("items")))

    def output(self, node_id: str) -> typed_reads.ValueType:
        """The type of the output of a node."""
        if node_id not in self.outputs:
            # Nodes that read each other in a circle know nothing of each other.
            self.outputs[node_id] = None
            self.outputs[node_id] = self._output(self.nodes[node_id])
        return self.outputs[node_id]

    def _output(self, node: JsonObject) -> typed_reads.ValueType:
        if node["kind"] in (NodeKind.FOR_EACH, NodeKind.REPEAT):
            collected = self._collected(node)
            return (
                None
                if collected is None
                else typed_reads.Struct({"results": typed_reads.ListOf(self.output(collected))})
            )
        return self._reader(node).output_of(node["kind"], _parameters(node))

    def _collected(self, loop: JsonObject) -> str | None:
        collect = _parameters(loop).get("collect")
        if collect is True:
            followed = {edge["from"] for edge in self.graph.get("edges", ())}
            body = [node for node, home in self.homes.items() if home == loop["id"]]
            ends = [node for node in body if node not in followed]
            return ends[0] if len(ends) == 1 else None
        return collect if isinstance(collect, str) and collect in self.nodes else None


def step_references(
    references: Iterator[rules.Reference], inputs: JsonObject, *place: str | int
) -> Iterator[rules.Reference]:
    """References of the parameters of a step, each in its config or in the input over it."""
    for reference in references:
        part = "input" if reference.place[0] in inputs else "config"
        yield reference.at((*place, part, *reference.place), reference.node)


def _parameters(node: JsonObject) -> JsonObject:
    return {**node.get("config", {}), **node.get("input", {})}


class _Outputs(Mapping[str, typed_reads.ValueType]):
    """The outputs of the nodes of a graph by their ids."""

    def __init__(self, reader: _GraphReader) -> None:
        self._reader = reader

    @override
    def __getitem__(self, node_id: str) -> typed_reads.ValueType:
        if node_id not in self._reader.nodes:
            raise KeyError(node_id)
        return self._reader.output(node_id)

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._reader.nodes)

    @override
    def __len__(self) -> int:
        return len(self._reader.nodes)
