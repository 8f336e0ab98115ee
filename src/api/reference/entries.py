"""The sections of the reference and their entries, read from the OpenAPI document."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic.alias_generators import to_pascal

from api.reference.guides import guides
from api.reference.guides.parser import Guide, Step
from api.reference.schemas import PREFIX, Schema, references
from models.automation.actions.rules import ActionKind
from models.automation.automations.rules.graph.kinds import NODE_KINDS, NodeKind
from models.automation.automations.rules.graph.structure import OUTPUTS
from models.core.expressions.rules.functions import EXAMPLE_TRIGGER, FUNCTIONS, Function
from models.core.filters.grammar import OPERATOR_NOTES, OPERATORS, Op
from models.data.databases.rules import KIND_NOTES
from models.data.fields.rules.fields import FieldKind
from models.data.fields.rules.values import KIND_RULES
from models.sources.authorizations.rules import OAUTH_PROVIDERS
from models.sources.connections.providers import PROVIDERS, ProviderName
from models.sources.data_source_runs.documentation import NOTES, Subject
from models.workspace.changes.operations import NOTES as OPERATIONS
from models.workspace.changes.rules import RULES, OperationKind, keys_of, stake_of

_OWN_PAGE = frozenset({"Binding", "CelExpression", "Filter", "BoundFilter", "PartialConfig"})
"""Parts that have a section of their own, or nothing to show."""


@dataclass(frozen=True, slots=True)
class Table:
    """The keys of one shape, by the names of their components."""

    title: str
    says: str
    keys: Mapping[str, Schema]
    required: frozenset[str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One page: what it is about, facts in a line each, tables of keys, and an example."""

    name: str
    says: str
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    example: Any = None
    result: Any = None
    """The result of the example, if it is an expression."""
    steps: Sequence[Step] = ()
    """The requests of an example that has several."""


@dataclass(frozen=True, slots=True)
class Section:
    """Entries of one sort, and where their pages are."""

    slug: str
    says: str
    entries: Sequence[Entry]

    @property
    def title(self) -> str:
        """The title, made of the slug."""
        return self.slug.replace("-", " ").capitalize()


_SAYS = {
    "nodes": (
        "The steps of an automation. The `config` of a node has its parameters. Any value in it can"
        " be a binding."
    ),
    "triggers": (
        "What starts an automation: its `triggerConfig`. Bindings and expressions read the data"
        " of a trigger as `trigger`."
    ),
    "actions": (
        "What a button, a node or an API call runs. Any value of the `config` can be a binding."
    ),
    "fields": "The kinds of fields of a database. The `settings` depend on the kind.",
    "filters": (
        "A filter is `{field, op, value}`, or filters joined by `and`, `or` and `not`. In"
        " queries and views `field` is the key of a field; in automations it is a path such as"
        " `trigger.record.data.price`. Empty values only match `is_empty` and negations."
    ),
    "bindings": (
        "A binding is an object with exactly the keys `type` and `value`. It says where a value"
        " of a config comes from when the node runs."
    ),
    "expressions": (
        "Conditions, formulas, templates and `expression` bindings are written in CEL, the"
        " Common Expression Language. Whole and decimal numbers can't be mixed:"
        " `double(trigger.count) * 1.5`."
    ),
    "data-sources": "The sources of rows of a database.",
    "providers": (
        "Services that a workspace can connect to, with the credentials listed here or by"
        " signing in with the provider."
    ),
    "rows": "Imports of spreadsheets, and refreshes of data sources.",
    "changes": (
        "The operations of change sets and AI runs. Each runs the matching API operation, with its"
        ' checks. In place of any id, `{"ref": "leads"}` is what the operation with that `ref`'
        " creates."
    ),
}


_BINDINGS = ("Instead of any value", "a binding: `{type, value}`")


class Reference:
    """Reads sections from the components of the document."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def sections(self) -> list[Section]:
        """Every section, in the order of the navigation."""
        entries = {
            "nodes": [self._node(kind) for kind in NodeKind],
            "triggers": self._of_union("TriggerConfig"),
            "actions": [self._action(kind) for kind in ActionKind],
            "fields": [self._field(kind) for kind in FieldKind],
            "filters": [self._operator(op) for op in Op],
            "bindings": self._of_union("Binding"),
            "expressions": [_function(one) for one in FUNCTIONS],
            "data-sources": [self._source(kind) for kind in self._kinds("CreateDataSource")],
            "providers": [self._provider(name) for name in ProviderName],
            "rows": [self._subject(subject) for subject in Subject],
            "changes": [self._change(kind) for kind in OperationKind],
        }
        parts = [Section(slug, says, entries[slug]) for slug, says in _SAYS.items()]
        return [*(self._guide(guide) for guide in guides()), *parts]

    def _guide(self, guide: Guide) -> Section:
        entries = [
            Entry(
                topic.name,
                topic.says,
                topic.facts,
                [table for name in topic.shapes for table in self._explained(name)],
                steps=topic.steps,
            )
            for topic in guide.topics
        ]
        return Section(guide.slug, guide.says, entries)

    def _kinds(self, union: str) -> list[str]:
        return list(self._schemas[union]["discriminator"]["mapping"])

    def _member(self, union: str, kind: str) -> Schema:
        target: str = self._schemas[union]["discriminator"]["mapping"][kind]
        return self._schemas[target.removeprefix(PREFIX)]

    def _node(self, kind: NodeKind) -> Entry:
        name = next(references(self._member("GraphNode", kind)["properties"]["config"]))
        config = self._schemas[name]
        outcomes = ", ".join(f"`{one}`" for one in sorted(NODE_KINDS[kind].outcomes))
        if kind is NodeKind.ACTION:
            example = {
                "id": "run",
                "kind": kind.value,
                "actionId": "…",
                "input": config["examples"][0],
            }
        else:
            example = {"id": "step", "kind": kind.value, "config": config["examples"][0]}
        facts = [("Outgoing edges", outcomes or "none: it ends the run"), _BINDINGS]
        tables = [*_output(kind), *self._tables(name)]
        output = OUTPUTS[kind]
        if output.says:
            facts.append(("Output", output.says))
        return Entry(kind.value, config["description"], facts, tables, example)

    def _action(self, kind: ActionKind) -> Entry:
        name = next(references(self._member("CreateAction", kind)["properties"]["config"]))
        config = self._schemas[name]
        example = {"label": "…", "kind": kind.value, "config": config["examples"][0]}
        return Entry(kind.value, config["description"], [_BINDINGS], self._tables(name), example)

    def _provider(self, name: ProviderName) -> Entry:
        provider, target = PROVIDERS[name], f"Create{to_pascal(name.value)}Connection"
        config = next(references(self._schemas[target]["properties"]["config"]))
        given = dict.fromkeys(provider.credentials, "…")
        example = {"provider": name.value, "label": "…", "config": {}, "credentials": given}
        example["config"] = self._schemas[config]["examples"][0]
        can = ", ".join(one.value for one in provider.capabilities)
        facts = [
            ("Credentials", ", ".join(f"`{one}`" for one in given) or "none"),
            ("Sign-in", "supported" if name in OAUTH_PROVIDERS else "credentials only"),
            ("Resources", can or "none: used by data sources and requests"),
        ]
        return Entry(name.value, provider.description, facts, self._tables(config), example)

    def _source(self, kind: str) -> Entry:
        name = next(references(self._member("CreateDataSource", kind)["properties"]["config"]))
        config = self._schemas[name]
        example = {"label": "…", "kind": kind, "config": config["examples"][0]}
        return Entry(kind, config["description"], (), self._tables(name), example)

    def _subject(self, subject: Subject) -> Entry:
        note = NOTES[subject]
        tables = [] if note.shape is None else self._explained(note.shape)
        return Entry(subject.value, note.says, note.facts, tables, note.example)

    def _change(self, kind: OperationKind) -> Entry:
        note, rule = OPERATIONS[kind], RULES[kind]
        facts = [
            ("Stake of the example", f"`{stake_of(kind, note.example)}`"),
            ("Scope", f"`{rule.scope}`"),
        ]
        example = {"kind": kind.value, "input": note.example}
        if note.body is not None:
            facts.append(("Input", _input(kind, note.body, keys_of(rule.about))))
        return Entry(kind.value, note.says, facts, (), example)

    def _of_union(self, union: str) -> list[Entry]:
        tag = self._schemas[union]["discriminator"]
        entries: list[Entry] = []
        for kind, target in tag["mapping"].items():
            name = target.removeprefix(PREFIX)
            schema = self._schemas[name]
            example = {**schema["examples"][0], tag["propertyName"]: kind}
            entries.append(Entry(kind, schema["description"], (), self._tables(name), example))
        return entries

    def _field(self, kind: FieldKind) -> Entry:
        note, rule = KIND_NOTES[kind], KIND_RULES[kind]
        name = next(references(self._member("CreateField", kind)["properties"]["settings"]))
        settings = self._schemas[name]
        operators = ", ".join(f"`{op}`" for op in OPERATORS[rule.form])
        facts = [("Filter operators", operators)]
        facts.append(("Writable", "yes" if kind in _WRITTEN else "no"))
        example: dict[str, Any] = {"label": "…", "kind": kind.value}
        if settings.get("examples"):
            example["settings"] = settings["examples"][0]
        return Entry(kind.value, note.says, facts, self._tables(name), example, note.value)

    def _operator(self, op: Op) -> Entry:
        note = OPERATOR_NOTES[op]
        kinds = [kind for kind in FieldKind if op in OPERATORS[KIND_RULES[kind].form]]
        facts = [("Field kinds", ", ".join(f"`{kind}`" for kind in kinds))]
        example = {"field": "price", "op": op.value}
        if note.operand is not None:
            example["value"] = note.operand
        return Entry(op.value, note.says, facts, (), example)

    def _explained(self, name: str) -> list[Table]:
        """The keys of a component, and of those it consists of, with what it says itself."""
        first, *others = self._tables(name)
        return [replace(first, says=self._schemas[name].get("description", "")), *others]

    def _tables(self, name: str) -> list[Table]:
        """The keys of a component, and of those it consists of; the page says what it is."""
        tables: dict[str, Table] = {}
        waiting = [name]
        while waiting:
            here = waiting.pop(0)
            schema = self._schemas[here]
            if here in tables or here in _OWN_PAGE:
                continue
            if schema.get("properties"):
                says = "" if here == name else schema.get("description", "")
                required = frozenset(schema.get("required", ()))
                tables[here] = Table(here, says, schema["properties"], required)
            waiting += references(schema)
        return list(tables.values())


def _output(kind: NodeKind) -> Iterator[Table]:
    """The keys of a node's output, under the name that bindings know it by."""
    keys = OUTPUTS[kind].keys
    if keys:
        says = "Other nodes can read this once the node has succeeded."
        yield Table("Output", says, keys, frozenset())


_WRITTEN = frozenset(
    kind for kind in FieldKind if KIND_RULES[kind].check or kind is FieldKind.RELATION
)


def _input(kind: OperationKind, body: str, ids: Iterable[str]) -> str:
    """The input of an operation: ids, and a body that the API knows too."""
    each = "`records`, each with " if kind is OperationKind.CREATE_RECORDS else ""
    return ", ".join(
        [*(f"`{name}`" for name in ids), f"{each}the keys of `{body}` in the OpenAPI document"]
    )


def _function(one: Function) -> Entry:
    facts = [("Call", f"`{one.call}`")]
    if "trigger" in one.example:
        facts.append(("Example `trigger`", f"`{json.dumps(EXAMPLE_TRIGGER)}`"))
    return Entry(one.name, one.says, facts, (), one.example, one.result)
