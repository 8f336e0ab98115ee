"""The parameters of each node kind: config overlaid with input, bindings resolved.

At run time these models check the resolved values; the compiler checks what is static with them.

See interface.md#nodes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from models.automation.automations.rules.attributes import BoundAttributes
from models.automation.automations.rules.graph import shapes
from models.automation.automations.rules.graph.kinds import JoinMode, NodeKind
from models.automation.automations.rules.graph.wait_configs import (
    ApprovalConfig,
    CallAutomationConfig,
    DelayConfig,
    WaitEventConfig,
)
from models.core.access.rules import Role
from models.core.base import EXAMPLE_ID, Input, InputId, JsonObject, example
from models.core.http_requests import CallableUrl, HeaderName, Headers, HeaderValue, QueryParameters
from models.core.openapi import documented_as
from models.core.problems import refused_for
from models.data.records.rules.values import MAX_BY
from models.data.records.shapes import RecordQuery, RelationsInput
from runtime.outbound_policy import host_name_problem

__all__ = [
    "CONFIGS",
    "ActionInput",
    "ApprovalConfig",
    "CallAutomationConfig",
    "ConditionConfig",
    "CreateRecordConfig",
    "DelayConfig",
    "DeleteRecordConfig",
    "ForEachConfig",
    "HttpAuth",
    "HttpRequestConfig",
    "JoinConfig",
    "NotifyConfig",
    "QueryRecordsConfig",
    "RepeatConfig",
    "RespondConfig",
    "SaveAs",
    "SendEmailConfig",
    "SendWebhookConfig",
    "StopConfig",
    "SwitchConfig",
    "TransformConfig",
    "UpdateRecordConfig",
    "WaitEventConfig",
]


class ConditionConfig(Input):
    """Branch on true or false: by a CEL expression, or by a filter over what the node can read.

    In the filter, `field` is a path such as `trigger.record.data.price`.
    """

    model_config = example({"expression": "trigger.record.data.price > 100.0"})

    expression: shapes.CelExpression | None = None
    filter: Annotated[JsonObject, documented_as("Filter")] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.expression is None) is (self.filter is None):
            raise ValueError("needs either expression or filter")
        return self


class SwitchCase(Input):
    """One branch: the edges with the outcome `case` and this `caseKey` follow."""

    key: Annotated[str, Field(min_length=1, max_length=64)]
    expression: shapes.CelExpression


class SwitchConfig(Input):
    """Branch on the first case whose expression is true, else on `default`."""

    model_config = example(
        {
            "cases": [
                {"key": "large", "expression": "trigger.total >= 1000.0"},
                {"key": "abroad", "expression": 'trigger.country != "DE"'},
            ]
        }
    )

    cases: Annotated[list[SwitchCase], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _distinct_keys(self) -> Self:
        keys = [case.key for case in self.cases]
        if len(set(keys)) < len(keys):
            raise ValueError("every case needs a unique key")
        return self


class TransformConfig(Input):
    """Compute values: the output of the node is `output` with its bindings resolved.

    `attributes` are added to the run, as short texts; one without a value is left out.
    """

    model_config = example(
        {
            "output": {
                "greeting": {"type": "template", "value": "Hello {{ trigger.name }}!"},
                "total": {"type": "expression", "value": "double(trigger.net) * 1.19"},
            },
            "attributes": {"order": {"type": "trigger", "value": "number"}},
        }
    )

    output: JsonObject
    attributes: BoundAttributes | None = None


class JoinConfig(Input):
    """Join branches: wait for `all`, for `any` one, or for `count` of them."""

    model_config = example({"mode": "count", "count": 2})

    mode: Annotated[JoinMode, Field(strict=False)] = JoinMode.ALL
    count: Annotated[int, Field(ge=1, le=500)] | None = None

    @model_validator(mode="after")
    def _count_with_its_mode(self) -> Self:
        if (self.mode is JoinMode.COUNT) is (self.count is None):
            raise ValueError("count is required with the mode count, and only there")
        return self


class StopConfig(Input):
    """End the run here, as succeeded or as failed."""

    model_config = example({"result": "failed", "message": "The customer is unknown."})

    result: Literal["succeeded", "failed"] = "succeeded"
    message: Annotated[str, Field(max_length=2_000)] | None = None
    output: JsonObject | None = None


MAX_ITEMS = 10_000
"""Items of one for_each (interface.md#limits)."""
MAX_PARALLELISM = 50
MAX_ITERATIONS = 1_000
"""Iterations of one repeat (interface.md#limits)."""

_Collect = bool | Annotated[str, Field(min_length=1, max_length=64)] | None


class ForEachConfig(Input):
    """Run the body once for each item, `parallelism` of them at a time.

    The body is what follows by `item`; `done` follows when all items have ended. `collect` names
    the node of the body whose outputs are gathered, or is true for the one the body ends with.
    """

    model_config = example(
        {
            "items": {"type": "node", "value": "overdue.records"},
            "parallelism": 5,
            "onItemError": "continue",
            "collect": "remind",
        }
    )

    items: list[Any]
    parallelism: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)] = 5
    on_item_error: Literal["stop", "continue"] = "stop"
    max_items: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = MAX_ITEMS
    collect: _Collect = False


class RepeatConfig(Input):
    """Run the body again while the expression holds, which is asked before each time.

    Without `while` it runs `maxIterations` times. The body is what follows by `item`.
    """

    model_config = example(
        {"while": "index < 10 && vars.pending > 0", "maxIterations": 10, "delaySeconds": 30}
    )

    while_: Annotated[shapes.CelExpression | None, Field(alias="while")] = None
    max_iterations: Annotated[int, Field(ge=1, le=MAX_ITERATIONS)] = 100
    delay_seconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 0
    collect: _Collect = False

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.while_ is None and "max_iterations" not in self.model_fields_set:
            raise ValueError("needs while or maxIterations")
        return self


class QueryRecordsConfig(Input):
    """Read one page of records; the output is `{records, cursor, count}`."""

    model_config = example(
        {
            "databaseId": EXAMPLE_ID,
            "query": {
                "filter": {
                    "and": [
                        {"field": "status", "op": "eq", "value": "open"},
                        {
                            "field": "price",
                            "op": "gte",
                            "value": {"type": "trigger", "value": "minimum"},
                        },
                    ]
                },
                "sorts": [{"field": "due", "direction": "asc"}],
                "limit": 50,
            },
        }
    )

    database_id: InputId
    query: Annotated[RecordQuery, Field(default_factory=RecordQuery)]


class CreateRecordConfig(Input):
    """Create a record; the output is `{record, created}`.

    With `upsertBy`, a record whose values of these fields are equal is updated instead.
    """

    model_config = example(
        {
            "databaseId": EXAMPLE_ID,
            "title": {"type": "template", "value": "Order {{ trigger.number }}"},
            "data": {"email": {"type": "trigger", "value": "email"}, "status": "open"},
            "upsertBy": ["email"],
        }
    )

    database_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    relations: RelationsInput | None = None
    upsert_by: Annotated[list[shapes.FieldKey], Field(max_length=MAX_BY, default_factory=list)]


class UpdateRecordConfig(Input):
    """Change a record; the output is `{record}`.

    Values are merged per key; null clears one, and a title of null the title.
    """

    model_config = example(
        {
            "recordId": {"type": "trigger", "value": "record.id"},
            "data": {"status": "done", "note": None},
        }
    )

    database_id: InputId | None = None
    record_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    relations: RelationsInput | None = None


class DeleteRecordConfig(Input):
    """Put a record into the trash; the output is `{record}` as it was."""

    model_config = example({"recordId": {"type": "item", "value": "id"}})

    database_id: InputId | None = None
    record_id: InputId


MAX_RECIPIENTS = 100

_Title = Annotated[str, Field(min_length=1, max_length=500)]
_Body = Annotated[str, Field(max_length=20_000)]
_Address = Annotated[
    str,
    Field(max_length=254, pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$"),
    refused_for(lambda address: host_name_problem(address.rpartition("@")[2])),
]
_Addresses = Annotated[list[_Address], Field(min_length=1, max_length=MAX_RECIPIENTS)]
_Statuses = Annotated[list[shapes.Status | shapes.StatusClass], Field(min_length=1, max_length=50)]


class HttpAuth(Input):
    """The credentials by which the request says who it comes from."""

    type: Literal["none", "bearer", "basic", "header"] = "none"
    token: HeaderValue | None = None
    username: HeaderValue | None = None
    password: HeaderValue | None = None
    name: HeaderName | None = None
    value: HeaderValue | None = None

    @model_validator(mode="after")
    def _what_the_type_needs(self) -> Self:
        needed = {"bearer": ("token",), "basic": ("username", "password"), "header": ("name",)}
        for key in needed.get(self.type, ()):
            if getattr(self, key) is None:
                raise ValueError(f"the type {self.type} needs {key}")
        return self


class SaveAs(Input):
    """A file of the workspace that an answer becomes.

    Without `name` it has the one that the answer gives. With `parentItemId` it is placed below that
    item, with null at the root; without, it is in the list of files alone.
    """

    model_config = example({"name": "invoice.pdf"})

    name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    parent_item_id: InputId | None = None


class HttpRequestConfig(Input):
    """Call another server; the output is `{status, headers, body, bodyEncoding}`.

    The body is the JSON of an answer that says it is JSON, else its text, in the charset that the
    answer states. An answer that is not text, such as an image or a PDF, is its bytes in Base64.
    `bodyEncoding` says which: `json`, `text` or `base64`. With `saveAs` the answer, of up to 100
    MiB, becomes a file instead: `file` of the output is `{fileId, name, mimeType, byteSize}`. It is
    made once, however often the call is tried.
    A connection that is named by its id signs in, in place of `auth`.
    `expectStatus` holds statuses or classes such as 2xx; any other answer is a failure, after which
    the same output can be read beside `error` and `errorCode`. A 4xx is not tried again, except
    408, 409, 425 and 429.
    """

    model_config = example(
        {
            "method": "POST",
            "url": "https://api.example.com/orders",
            "auth": {"type": "bearer", "token": {"type": "secret", "value": "shop_api_token"}},
            "body": {"name": {"type": "trigger", "value": "name"}, "quantity": 2},
            "expectStatus": ["2xx", 409],
        }
    )

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] = "GET"
    url: CallableUrl
    headers: Headers = Field(default_factory=dict)
    query: QueryParameters = Field(default_factory=dict)
    body: Any = None
    auth: HttpAuth | None = None
    connection_id: InputId | None = None
    save_as: SaveAs | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)] | None = None
    expect_status: Annotated[
        _Statuses,
        BeforeValidator(
            shapes.one_or_many,
            json_schema_input_type=shapes.Status | shapes.StatusClass | _Statuses,
        ),
        Field(default_factory=lambda: ["2xx"]),
    ]

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        if self.connection_id is not None and self.auth is not None:
            raise ValueError("takes either connectionId or auth")
        return self

    def expects(self, status: int) -> bool:
        """True when an answer with this status is a success of the node."""
        return status in self.expect_status or f"{status // 100}xx" in self.expect_status


class NotifyConfig(Input):
    """Notify these members, or all who have the role."""

    model_config = example(
        {
            "role": "editor",
            "title": {"type": "template", "value": "Order {{ trigger.record.title }} is late"},
            "body": "Please have a look.",
        }
    )

    user_ids: Annotated[list[InputId], Field(min_length=1, max_length=MAX_RECIPIENTS)] | None = None
    role: Annotated[Role, Field(strict=False)] | None = None
    title: _Title
    body: _Body = ""

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if (self.user_ids is None) is (self.role is None):
            raise ValueError("needs either userIds or role")
        return self


class SendEmailConfig(Input):
    """Send a mail to each of these addresses."""

    model_config = example(
        {
            "to": ["ada@example.com"],
            "subject": "Your order",
            "body": {"type": "template", "value": "Order {{ trigger.number }} has left us."},
        }
    )

    to: Annotated[
        _Addresses,
        BeforeValidator(shapes.one_or_many, json_schema_input_type=_Address | _Addresses),
    ]
    subject: _Title
    body: _Body = ""


class SendWebhookConfig(Input):
    """Send one event, signed by Standard Webhooks; the output is `{webhookId, status}`.

    A webhook endpoint of the workspace that is named by its id gets it, signed with its own secret;
    a URL gets it signed with the secret of the workspace. An endpoint that is disabled or deleted
    is a failure.
    """

    model_config = example(
        {
            "url": "https://hooks.example.com/orders",
            "type": "order.shipped",
            "data": {"number": {"type": "trigger", "value": "number"}},
        }
    )

    endpoint_id: InputId | None = None
    url: CallableUrl | None = None
    type: Annotated[str, Field(min_length=1, max_length=200)]
    data: JsonObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if (self.endpoint_id is None) is (self.url is None):
            raise ValueError("needs either endpointId or url")
        return self


class RespondConfig(Input):
    """Answer the webhook call that waits for this run; without one, it is the run's output."""

    model_config = example(
        {"status": 201, "body": {"id": {"type": "node", "value": "create.record.id"}}}
    )

    status: Annotated[int, Field(ge=200, le=599)] = 200
    headers: shapes.AnswerHeaders = Field(default_factory=dict)
    body: Any = None


class ActionInput(Input):
    """Run the action that `actionId` of the node names, on the `input` of the node."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [{"email": {"type": "trigger", "value": "record.data.email"}}]
        },
    )


CONFIGS: Mapping[NodeKind, type[Input]] = MappingProxyType(
    {
        NodeKind.ACTION: ActionInput,
        NodeKind.HTTP_REQUEST: HttpRequestConfig,
        NodeKind.QUERY_RECORDS: QueryRecordsConfig,
        NodeKind.CREATE_RECORD: CreateRecordConfig,
        NodeKind.UPDATE_RECORD: UpdateRecordConfig,
        NodeKind.DELETE_RECORD: DeleteRecordConfig,
        NodeKind.TRANSFORM: TransformConfig,
        NodeKind.CONDITION: ConditionConfig,
        NodeKind.SWITCH: SwitchConfig,
        NodeKind.FOR_EACH: ForEachConfig,
        NodeKind.REPEAT: RepeatConfig,
        NodeKind.JOIN: JoinConfig,
        NodeKind.DELAY: DelayConfig,
        NodeKind.WAIT_EVENT: WaitEventConfig,
        NodeKind.APPROVAL: ApprovalConfig,
        NodeKind.CALL_AUTOMATION: CallAutomationConfig,
        NodeKind.NOTIFY: NotifyConfig,
        NodeKind.SEND_EMAIL: SendEmailConfig,
        NodeKind.SEND_WEBHOOK: SendWebhookConfig,
        NodeKind.RESPOND: RespondConfig,
        NodeKind.STOP: StopConfig,
    }
)
