"""The catalog of what a graph may refer to, and checks that what it refers to exists."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from models.automation.automations.rules.graph.kinds import NodeKind, shorten
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.bindings import no_secret, without_literals
from models.automation.automations.rules.language.filters import CHANGE, STATE, field_problems
from models.automation.automations.rules.language.static_reads import secret_names
from models.core.base import Id, JsonObject
from models.data.fields.rules.fields import DATE_KINDS, FieldKind, FieldSpecs
from runtime.errors import Detail
from runtime.ids import parse_id


class Resource(StrEnum):
    """A kind of thing that a graph or a trigger can refer to by id, besides databases."""

    ACTION = "action"
    AUTOMATION = "automation"
    CONNECTION = "connection"
    DATA_SOURCE = "data source"
    ENDPOINT = "webhook endpoint"
    FORM = "form"
    MEMBER = "member"
    VIEW = "view"


NO_MAIL_SERVER = (
    "No mail server is configured, so this node will fail. An operator can set WORKSPACE_SMTP_URL"
    " and WORKSPACE_SMTP_FROM."
)


def mail_warnings(graph: Graph, catalog: "ReferenceCatalog") -> Iterator[tuple[str, str]]:
    """A warning at each node whose email cannot be sent, also by the action that it runs."""
    if catalog.has_mail_server:
        return
    for node in graph.nodes:
        action_id = (node.action_id or "").lower()
        is_mail = node.kind is NodeKind.ACTION and action_id in catalog.mail_actions
        if is_mail or node.kind is NodeKind.SEND_EMAIL:
            yield node.id, NO_MAIL_SERVER


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCatalog:
    """The things in the workspace, by canonical id. `automation_id` is the graph's automation."""

    automation_id: str | None = None
    has_mail_server: bool = True
    mail_actions: frozenset[str] = frozenset()
    """The ids of actions that send an email, of those a graph refers to."""
    databases: Mapping[str, FieldSpecs] = field(default_factory=dict)
    """The fields of each database."""
    existing: Mapping[Resource, frozenset[str]] = field(default_factory=dict)
    triggers: Mapping[str, JsonObject] = field(default_factory=dict)
    """The trigger config of each published automation."""
    secrets: frozenset[str] = frozenset()
    """The names of existing secrets, of those a graph or its trigger refers to."""

    def has(self, resource: Resource, id_: str) -> bool:
        """True when the workspace has it, outside the trash."""
        return id_.lower() in self.existing.get(resource, frozenset())


NAMED_BY: Mapping[str, Resource] = {
    "actionId": Resource.ACTION,
    "automationId": Resource.AUTOMATION,
    "automationIds": Resource.AUTOMATION,
    "connectionId": Resource.CONNECTION,
    "dataSourceId": Resource.DATA_SOURCE,
    "endpointId": Resource.ENDPOINT,
    "formItemId": Resource.FORM,
    "viewId": Resource.VIEW,
    "assignees": Resource.MEMBER,
    "userIds": Resource.MEMBER,
}
"""The keys of configs and triggers that hold references. The plural ones hold lists."""

NAMED: Mapping[NodeKind, str] = {
    NodeKind.HTTP_REQUEST: "connectionId",
    NodeKind.SEND_WEBHOOK: "endpointId",
}
"""Parameters that only the config itself names: what a binding gives was not checked."""
BY_ID_ONLY = "Must be an id, not a binding."

_KEYS = frozenset({*NAMED_BY, "databaseId"})


def referenced_ids(graph: Graph, trigger_config: JsonObject) -> frozenset[Id]:
    """Every well-formed id under a reference key of a graph or its trigger."""
    ids: set[Id] = set()
    texts = [graph.failure_automation_id, *(node.action_id for node in graph.nodes)]
    for node in graph.nodes:
        texts += _ids_in(without_literals(node.parameters()))
        texts += _ids_in(without_literals(node.config))
    texts += _ids_in(trigger_config)
    for text in texts:
        parsed = parse_id(text) if text is not None else None
        if parsed is not None:
            ids.add(parsed)
    return frozenset(ids)


def named_by_author(graph: Graph) -> frozenset[tuple[Resource, Id]]:
    """The connections and endpoints a graph names, which its author must see."""
    references: set[tuple[Resource, Id]] = set()
    for node in graph.nodes:
        name = NAMED.get(node.kind)
        text = None if name is None else node.config.get(name)
        parsed = parse_id(text) if isinstance(text, str) else None
        if name is not None and parsed is not None:
            references.add((NAMED_BY[name], parsed))
    return frozenset(references)


def referenced_secrets(graph: Graph, trigger_config: JsonObject) -> frozenset[str]:
    """The name of every secret a graph or its trigger names."""
    named = [secret_names(node.parameters()) for node in graph.nodes]
    if isinstance(trigger_config.get("secretName"), str):
        named.append(frozenset({trigger_config["secretName"]}))
    return frozenset().union(*named)


def _ids_in(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key in _KEYS and isinstance(item, str):
            yield item
        elif key in _KEYS and isinstance(item, list):
            yield from (text for text in item if isinstance(text, str))
        else:
            yield from _ids_in(item)


_MOMENTS = DATE_KINDS | {FieldKind.CREATED_AT, FieldKind.UPDATED_AT}


def missing(value: JsonObject, catalog: ReferenceCatalog) -> Iterator[tuple[str, str]]:
    """The references at the top level of a config that the workspace lacks, as path and message."""
    for key, resource in NAMED_BY.items():
        for path, text in _texts(key, value.get(key)):
            if parse_id(text) is not None and not catalog.has(resource, text):
                yield path, f'{resource.capitalize()} "{shorten(text)}" not found.'


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        texts = (one for one in enumerate(value) if isinstance(one[1], str))
        yield from ((f"{path}.{index}", text) for index, text in texts)


def trigger_reference_problems(config: JsonObject, catalog: ReferenceCatalog) -> Iterator[Detail]:
    """The references of a trigger that the workspace lacks."""
    for path, message in (
        *missing(config, catalog),
        *_malformed(config),
        *_secret(config, catalog),
        *_database(config, catalog),
    ):
        yield Detail(f"triggerConfig.{path}", message)


def _secret(config: JsonObject, catalog: ReferenceCatalog) -> Iterator[tuple[str, str]]:
    name = config.get("secretName")
    if isinstance(name, str) and name not in catalog.secrets:
        yield "secretName", no_secret(name)


def _database(config: JsonObject, catalog: ReferenceCatalog) -> Iterator[tuple[str, str]]:
    database_id = config.get("databaseId")
    if not isinstance(database_id, str):
        return
    fields = catalog.databases.get(database_id.lower())
    if fields is None:
        yield "databaseId", f'Database "{shorten(database_id)}" not found.'
        return
    for path, key in (*_texts("fieldKeys", config.get("fieldKeys")), *_field(config)):
        if key not in fields:
            yield path, f'The database has no field "{shorten(key)}".'
        elif path == "fieldKey" and (problem := _wrong_kind(config["kind"], fields[key].kind)):
            yield path, problem
    variables = STATE if config["kind"] == "record_matches" else CHANGE
    yield from field_problems(config.get("filter"), variables, fields)


def _malformed(config: JsonObject) -> Iterator[tuple[str, str]]:
    for key in NAMED_BY:
        for path, text in _texts(key, config.get(key)):
            if text != "any" and parse_id(text) is None:
                yield path, f'"{shorten(text)}" is not a valid id.'


def _field(config: JsonObject) -> Iterator[tuple[str, str]]:
    return _texts("fieldKey", config.get("fieldKey"))


def _wrong_kind(trigger: str, kind: str) -> str | None:
    if trigger == "record_date_reached" and kind not in _MOMENTS:
        return f"Must be a date field, not {kind}."
    if trigger == "button_pressed" and kind != FieldKind.BUTTON:
        return f"Must be a button field, not {kind}."
    return None
