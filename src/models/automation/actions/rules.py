"""Actions on the wire, the config of each kind, and everything wrong with one.

A value of a config may be a binding at any depth, as in the nodes of automations
(interface.md#bindings). The binding is judged by itself here, and what it gives is judged when the
action runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from models.automation.automations.rules.graph import configs
from models.automation.automations.rules.graph.catalog import BY_ID_ONLY, NAMED
from models.automation.automations.rules.graph.node_checks import model_problems
from models.automation.automations.rules.graph.references import ConfigReader, step_references
from models.automation.automations.rules.graph.shapes import CelExpression, NodeId, Retry
from models.automation.automations.rules.language import bindings
from models.automation.automations.rules.language.static_reads import references, secrets_in
from models.core import base
from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Shape, example
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import compile_expression
from models.core.expressions.rules.typed_reads import Struct, ValueType, reads_of
from models.core.http_requests import GIVE_AGAIN, left_hidden
from models.core.keys import Key
from models.core.problems import refuse
from models.core.references.rules import Reference, text_references
from models.sources.external_resources.rules.resources import ProviderResource
from runtime.errors import Detail, ValidationError
from runtime.ids import parse_id

MAX_STEPS = 50


class ActionKind(StrEnum):
    REFRESH_DATA_SOURCE = "refresh_data_source"
    RUN_AUTOMATION = "run_automation"
    CREATE_RECORD = "create_record"
    UPDATE_RECORD = "update_record"
    DELETE_RECORD = "delete_record"
    QUERY_RECORDS = "query_records"
    HTTP_REQUEST = "http_request"
    SEND_NOTIFICATION = "send_notification"
    SEND_EMAIL = "send_email"
    SEND_WEBHOOK = "send_webhook"
    IMPORT_RESOURCE = "import_resource"
    TRANSFORM = "transform"
    SEQUENCE = "sequence"


class RefreshDataSourceConfig(Input):
    """Refresh a data source."""

    model_config = example({"dataSourceId": base.EXAMPLE_ID})

    data_source_id: InputId


class RunAutomationConfig(Input):
    """Run an automation with the input of the action; with `wait` the result is that of its run."""

    model_config = example({"automationId": base.EXAMPLE_ID, "wait": True})

    automation_id: InputId
    wait: bool = False


class ImportResourceConfig(Input):
    """Copy a resource of a provider into the workspace."""

    model_config = example(
        {
            "connectionId": base.EXAMPLE_ID,
            "resource": {
                "externalType": "file",
                "externalId": "1BxiMVs0",
                "name": "Prices",
                "surfaceKind": "spreadsheet",
                "capabilities": ["read", "import"],
            },
        }
    )

    connection_id: InputId
    resource: ProviderResource


class Step(Input):
    """One step of a sequence: a config of its own, as that of an action of its kind.

    `input` overlays the top-level keys of `config`. A step whose `when` is false is skipped.
    """

    id: NodeId
    kind: Literal[
        "refresh_data_source",
        "run_automation",
        "create_record",
        "update_record",
        "delete_record",
        "query_records",
        "http_request",
        "send_notification",
        "send_email",
        "send_webhook",
        "import_resource",
        "transform",
    ]
    config: JsonObject = Field(default_factory=dict)
    input: JsonObject = Field(default_factory=dict)
    when: CelExpression | None = None
    continue_on_error: bool = False
    retry: Retry | None = None


class SequenceConfig(Input):
    """Take steps one after the other; later steps read the results of earlier ones as nodes."""

    model_config = example(
        {
            "steps": [
                {
                    "id": "rate",
                    "kind": "http_request",
                    "config": {"url": "https://api.example.com/rates/EUR"},
                },
                {
                    "id": "note",
                    "kind": "create_record",
                    "config": {
                        "databaseId": base.EXAMPLE_ID,
                        "data": {"rate": {"type": "node", "value": "rate.body.rate"}},
                    },
                },
            ]
        }
    )

    steps: Annotated[list[Step], Field(min_length=1, max_length=MAX_STEPS)]

    @field_validator("steps")
    @classmethod
    def _distinct_ids(cls, steps: list[Step]) -> list[Step]:
        if len({step.id for step in steps}) < len(steps):
            raise ValueError("every step needs a unique id")
        return steps


CONFIGS: Mapping[ActionKind, type[Input]] = MappingProxyType(
    {
        ActionKind.REFRESH_DATA_SOURCE: RefreshDataSourceConfig,
        ActionKind.RUN_AUTOMATION: RunAutomationConfig,
        ActionKind.CREATE_RECORD: configs.CreateRecordConfig,
        ActionKind.UPDATE_RECORD: configs.UpdateRecordConfig,
        ActionKind.DELETE_RECORD: configs.DeleteRecordConfig,
        ActionKind.QUERY_RECORDS: configs.QueryRecordsConfig,
        ActionKind.HTTP_REQUEST: configs.HttpRequestConfig,
        ActionKind.SEND_NOTIFICATION: configs.NotifyConfig,
        ActionKind.SEND_EMAIL: configs.SendEmailConfig,
        ActionKind.SEND_WEBHOOK: configs.SendWebhookConfig,
        ActionKind.IMPORT_RESOURCE: ImportResourceConfig,
        ActionKind.TRANSFORM: configs.TransformConfig,
        ActionKind.SEQUENCE: SequenceConfig,
    }
)


def parts_of(kind: ActionKind, config: JsonObject) -> list[tuple[str, ActionKind, JsonObject]]:
    """The configs an action consists of, each with its path, kind and parameters.

    Of a sequence also the configs of its steps, with their inputs laid over; what has no readable
    shape is left out, and so are more steps than it may have.
    """
    parameters = {key: value for key, value in config.items() if key != "kind"}
    parts: list[tuple[str, ActionKind, JsonObject]] = [("", kind, parameters)]
    steps: Any = parameters.get("steps") if kind is ActionKind.SEQUENCE else None
    for place, step in enumerate(steps[:MAX_STEPS] if isinstance(steps, list) else []):
        step_kind = _STEP_KINDS.get(_text(step, "kind"))
        if step_kind is not None:
            own = {**_object(step, "config"), **_object(step, "input")}
            parts.append((f"steps.{place}.config", step_kind, own))
    return parts


_STEP_KINDS = {kind.value: kind for kind in ActionKind if kind is not ActionKind.SEQUENCE}


def _text(step: object, key: str) -> str:
    value = step.get(key) if isinstance(step, dict) else None
    return value if isinstance(value, str) else ""


def _object(step: JsonObject, key: str) -> JsonObject:
    value = step.get(key)
    return value if isinstance(value, dict) else {}


_RESOURCES = {
    "databaseId": "database",
    "recordId": "record",
    "dataSourceId": "data_source",
    "automationId": "automation",
    "connectionId": "connection",
    "endpointId": "webhook_endpoint",
}


@dataclass(frozen=True, slots=True)
class Named:
    """An id in a config and the resource it must be one of."""

    resource: str
    id: Id


def checked_config(kind: ActionKind, config: JsonObject) -> JsonObject:
    """The config as it is stored, with its `kind`. Raises `ValidationError` below `config`."""
    if config.get("kind", kind.value) != kind.value:
        raise ValidationError.at("config.kind", "Must be the same as kind.")
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
    places = left_hidden(config, bindings.written)
    refuse([Detail(".".join(map(str, ("config", *one))), GIVE_AGAIN) for one in places])


def _problems(kind: ActionKind, config: JsonObject) -> Iterator[tuple[str, str]]:
    yield from bindings.problems(config)
    if references(config, "vars"):
        yield "", "An action has no variables; use its input instead."
    for place, part_kind, parameters in parts_of(kind, config):
        prefix = f"{place}." if place else ""
        sends = part_kind is ActionKind.SEQUENCE or part_kind.value in bindings.SENDERS
        if not sends:
            yield from (
                (prefix + path, bindings.SECRETS_LEAVE) for path, _ in secrets_in(parameters)
            )
        for name in NAMED.values():
            if bindings.is_binding(parameters.get(name)):
                yield prefix + name, BY_ID_ONLY
        for path, message in model_problems(
            CONFIGS[part_kind], bindings.without_literals(parameters)
        ):
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
                yield f"steps.{place}.when", "The expression must return true or false."
        except BindingError as error:
            yield f"steps.{place}.when", error.message


def action_references(kind: ActionKind, config: JsonObject) -> list[Reference]:
    """The references of an action: of its config, or of its steps."""
    parts = parts_of(kind, config)
    if kind is not ActionKind.SEQUENCE:
        return [
            one
            for _, part_kind, parameters in parts
            for one in ConfigReader({}).config_references(part_kind, parameters)
        ]
    nodes: dict[str, ValueType] = {}
    references: list[Reference] = []
    reader = ConfigReader({"nodes": Struct(nodes)})
    steps = [step for step in config["steps"] if step.get("kind") in _STEP_KINDS]
    for place, (step, (_, part_kind, parameters)) in enumerate(zip(steps, parts[1:], strict=True)):
        found = reader.config_references(part_kind, parameters)
        references += step_references(found, step.get("input") or {}, "steps", place)
        when = step.get("when")
        if isinstance(when, str):
            reads = reads_of(when, reader.variables)
            references += text_references(reads, "steps", place, "when")
        nodes[step["id"]] = reader.output_of(part_kind, parameters)
    return references


def named_ids(kind: ActionKind, config: JsonObject) -> list[Named]:
    """The ids a config names outside of bindings, whatever else is wrong with it."""
    targets: list[Named] = []
    for _, _, parameters in parts_of(kind, config):
        for key, resource in _RESOURCES.items():
            targets += _ids(resource, [parameters.get(key)])
        users = parameters.get("userIds")
        targets += _ids("user", users if isinstance(users, list) else [])
    return list(dict.fromkeys(targets))


def _ids(resource: str, values: list[Any]) -> list[Named]:
    plain = [
        bindings.without_literals(value) if bindings.is_binding(value) else value
        for value in values
    ]
    ids = [parse_id(value) for value in plain if isinstance(value, str)]
    return [Named(resource, one) for one in ids if one is not None]


class ActionConfig(Input):
    """`config` of an item of the kind action: an action without its label."""

    key: Key | None = None
    kind: Annotated[ActionKind, Field(strict=False)]
    config: JsonObject
    enabled: bool = True


class CreateAction(ActionConfig):
    """Body of create action."""

    label: Label


class UpdateAction(Input):
    """Body of update action; the kind is fixed, and `config` is replaced as a whole."""

    label: Annotated[Label, Field(default="")]
    key: Annotated[Key, Field(default="")]
    config: Annotated[JsonObject, Field(default_factory=dict)]
    enabled: Annotated[bool, Field(default=True)]


class ActionDetail(Shape):
    """An action; `config.kind` is its kind.

    Only who may edit it is shown the credentials in its config. Others are shown `[redacted]`; sent
    back, it keeps them.
    """

    id: Id
    workspace_id: Id
    item_id: Id
    key: str
    label: str
    kind: ActionKind
    config: JsonObject
    enabled: bool
    created_at: Moment
    updated_at: Moment
