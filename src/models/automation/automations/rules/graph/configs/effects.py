"""Kinds whose effect leaves the run: requests, mail, webhooks, notifications, answers, actions."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from models.automation.automations.rules.graph.configs.types import (
    AnswerHeaders,
    Status,
    StatusClass,
    one_or_many,
)
from models.core.access.rules import Role
from models.core.base import Input, InputId, JsonObject, example
from models.core.http_inputs import (
    CallableUrl,
    HeaderName,
    Headers,
    HeaderValue,
    QueryParameters,
)
from models.core.problems import refused_for
from runtime.callable_urls import host_name_problem

MAX_RECIPIENTS = 100

_Title = Annotated[str, Field(min_length=1, max_length=500)]
_Body = Annotated[str, Field(max_length=20_000)]
_Address = Annotated[
    str,
    Field(max_length=254, pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$"),
    refused_for(lambda address: host_name_problem(address.rpartition("@")[2])),
]
_Addresses = Annotated[list[_Address], Field(min_length=1, max_length=MAX_RECIPIENTS)]
_Statuses = Annotated[list[Status | StatusClass], Field(min_length=1, max_length=50)]


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
    answer states. An answer that is no text, such as an image or a PDF, is its bytes in Base64.
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
        BeforeValidator(one_or_many, json_schema_input_type=Status | StatusClass | _Statuses),
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
        _Addresses, BeforeValidator(one_or_many, json_schema_input_type=_Address | _Addresses)
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
    headers: AnswerHeaders = Field(default_factory=dict)
    body: Any = None


class ActionInput(Input):
    """Run the action that `actionId` of the node names, on the `input` of the node."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [{"email": {"type": "trigger", "value": "record.data.email"}}]
        },
    )
