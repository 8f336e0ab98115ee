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
from models.core.base import Input, InputId, JsonObject
from models.core.http_inputs import (
    CallableUrl,
    HeaderName,
    Headers,
    HeaderValue,
    QueryParameters,
)

MAX_RECIPIENTS = 100

_Title = Annotated[str, Field(min_length=1, max_length=500)]
_Body = Annotated[str, Field(max_length=20_000)]
_Address = Annotated[str, Field(max_length=254, pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$")]


class HttpAuth(Input):
    """Who the request says it comes from."""

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


class HttpRequestConfig(Input):
    """One call to another server; `expectStatus` holds statuses or classes such as 2xx."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] = "GET"
    url: CallableUrl
    headers: Headers = Field(default_factory=dict)
    query: QueryParameters = Field(default_factory=dict)
    body: Any = None
    auth: HttpAuth | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)] | None = None
    expect_status: Annotated[
        list[Status | StatusClass],
        BeforeValidator(one_or_many),
        Field(min_length=1, max_length=50, default_factory=lambda: ["2xx"]),
    ]

    def expects(self, status: int) -> bool:
        """Whether an answer with this status is a success of the node."""
        return status in self.expect_status or f"{status // 100}xx" in self.expect_status


class NotifyConfig(Input):
    """To these members, or to all who have the role."""

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
    to: Annotated[
        list[_Address],
        BeforeValidator(one_or_many),
        Field(min_length=1, max_length=MAX_RECIPIENTS),
    ]
    subject: _Title
    body: _Body = ""


class SendWebhookConfig(Input):
    """One event to an endpoint of the workspace, or to a URL."""

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
    """The answer to the webhook call that waits for this run; without one, the run's output."""

    status: Annotated[int, Field(ge=200, le=599)] = 200
    headers: AnswerHeaders = Field(default_factory=dict)
    body: Any = None


class ActionConfig(Input):
    """What the action is given; which one is the node's `actionId`."""

    model_config = ConfigDict(extra="allow")
