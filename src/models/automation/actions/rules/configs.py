"""The config of each kind of action (decisions C6).

A value may be a binding at any depth, as in the nodes of automations (C8); a binding is judged by
itself here, and what it gives when the action runs.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from models.automation.automations.rules.graph.configs import (
    CreateRecordConfig,
    DeleteRecordConfig,
    HttpRequestConfig,
    NotifyConfig,
    QueryRecordsConfig,
    SendEmailConfig,
    SendWebhookConfig,
    TransformConfig,
    UpdateRecordConfig,
)
from models.automation.automations.rules.graph.configs.types import CelExpression
from models.automation.automations.rules.graph.shapes import NodeId, Retry
from models.core.base import EXAMPLE_ID, Input, InputId, JsonObject, example
from models.sources.external_resources.rules.resources import ProviderResource

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

    model_config = example({"dataSourceId": EXAMPLE_ID})

    data_source_id: InputId


class RunAutomationConfig(Input):
    """Run an automation with the input of the action; with `wait` the result is that of its run."""

    model_config = example({"automationId": EXAMPLE_ID, "wait": True})

    automation_id: InputId
    wait: bool = False


class ImportResourceConfig(Input):
    """Copy a resource of a provider into the workspace."""

    model_config = example(
        {
            "connectionId": EXAMPLE_ID,
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
                        "databaseId": EXAMPLE_ID,
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
            raise ValueError("every step needs an id of its own")
        return steps


CONFIGS: Mapping[ActionKind, type[Input]] = MappingProxyType(
    {
        ActionKind.REFRESH_DATA_SOURCE: RefreshDataSourceConfig,
        ActionKind.RUN_AUTOMATION: RunAutomationConfig,
        ActionKind.CREATE_RECORD: CreateRecordConfig,
        ActionKind.UPDATE_RECORD: UpdateRecordConfig,
        ActionKind.DELETE_RECORD: DeleteRecordConfig,
        ActionKind.QUERY_RECORDS: QueryRecordsConfig,
        ActionKind.HTTP_REQUEST: HttpRequestConfig,
        ActionKind.SEND_NOTIFICATION: NotifyConfig,
        ActionKind.SEND_EMAIL: SendEmailConfig,
        ActionKind.SEND_WEBHOOK: SendWebhookConfig,
        ActionKind.IMPORT_RESOURCE: ImportResourceConfig,
        ActionKind.TRANSFORM: TransformConfig,
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
