"""The parameters of each node kind: config overlaid with input, bindings resolved (C6, C8).

At run time these models check the resolved values; the compiler checks what is static with them.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from models.automations.rules.kinds import JoinMode, NodeKind
from models.automations.rules.timezones import is_timezone
from models.base import Input, InputId, JsonObject

MAX_DELAY_SECONDS = 30 * 86_400
"""A wait cannot outlast its run (decisions C3)."""


def _known_timezone(name: str) -> str:
    if not is_timezone(name):
        raise ValueError("is not an IANA time zone such as Europe/Berlin")
    return name


def _as_texts(value: Any) -> Any:
    """Numbers and truth values as text, nulls left out: what a header or a query can carry."""
    if not isinstance(value, dict):
        return value
    return {key: _as_text(item) for key, item in value.items() if item is not None}


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return [_as_text(item) for item in value] if isinstance(value, list) else value


def _iso_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is not an ISO 8601 timestamp such as 2026-01-31T09:00:00Z") from None
    return text


Timezone = Annotated[str, AfterValidator(_known_timezone)]
IsoMoment = Annotated[str, Field(max_length=64), AfterValidator(_iso_moment)]
CelText = Annotated[str, Field(min_length=1, max_length=4_000)]
FieldKey = Annotated[str, Field(min_length=1, max_length=63)]
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$")]
HeaderValue = Annotated[str, Field(max_length=8_192, pattern=r"^[^\x00\r\n]*$")]
Headers = Annotated[
    dict[HeaderName, HeaderValue], BeforeValidator(_as_texts), Field(max_length=100)
]
QueryParameters = Annotated[
    dict[str, str | list[str]], BeforeValidator(_as_texts), Field(max_length=200)
]
Status = Annotated[int, Field(ge=100, le=599)]
StatusClass = Annotated[str, Field(pattern=r"^[1-5]xx$")]


class ConditionConfig(Input):
    """Either CEL text that gives true or false, or a filter over the variables."""

    expression: CelText | None = None
    filter: JsonObject | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.expression is None) is (self.filter is None):
            raise ValueError("needs either expression or filter")
        return self


class SwitchCase(Input):
    key: Annotated[str, Field(min_length=1, max_length=64)]
    expression: CelText


class SwitchConfig(Input):
    """The first case whose expression is true is the outcome, else `default`."""

    cases: Annotated[list[SwitchCase], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _distinct_keys(self) -> Self:
        keys = [case.key for case in self.cases]
        if len(set(keys)) < len(keys):
            raise ValueError("every case needs a key of its own")
        return self


class TransformConfig(Input):
    output: JsonObject


class JoinConfig(Input):
    """`all` waits for every branch, `any` for the first, `count` for that many."""

    mode: Annotated[JoinMode, Field(strict=False)] = JoinMode.ALL
    count: Annotated[int, Field(ge=1, le=500)] | None = None

    @model_validator(mode="after")
    def _count_with_its_mode(self) -> Self:
        if (self.mode is JoinMode.COUNT) is (self.count is None):
            raise ValueError("count belongs to the mode count, which needs it")
        return self


class RecordQuery(Input):
    """The body of a records query, as far as a node uses it (decisions C5)."""

    filter: JsonObject | None = None
    sorts: Annotated[list[JsonObject], Field(max_length=10, default_factory=list)]
    search: Annotated[str, Field(max_length=1_000)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    fields: Annotated[list[FieldKey], Field(max_length=500)] | None = None


class QueryRecordsConfig(Input):
    database_id: InputId
    query: RecordQuery = RecordQuery()


class CreateRecordConfig(Input):
    """With `upsertBy`, a record whose values of these fields are equal is updated instead."""

    database_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)
    upsert_by: Annotated[list[FieldKey], Field(max_length=10, default_factory=list)]


class UpdateRecordConfig(Input):
    database_id: InputId | None = None
    record_id: InputId
    title: str | None = None
    data: JsonObject = Field(default_factory=dict)


class DeleteRecordConfig(Input):
    database_id: InputId | None = None
    record_id: InputId


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
    url: Annotated[str, Field(min_length=1, max_length=8_192, pattern=r"^https?://[^\s]+$")]
    headers: Headers = Field(default_factory=dict)
    query: QueryParameters = Field(default_factory=dict)
    body: Any = None
    auth: HttpAuth | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)] | None = None
    expect_status: Annotated[
        list[Status | StatusClass],
        Field(min_length=1, max_length=50, default_factory=lambda: ["2xx"]),
    ]

    def expects(self, status: int) -> bool:
        """Whether an answer with this status is a success of the node."""
        return status in self.expect_status or f"{status // 100}xx" in self.expect_status


class DelayConfig(Input):
    """Wait for `seconds`, or until a moment (ISO 8601; read in `timezone` without an offset)."""

    seconds: Annotated[float, Field(ge=0, le=MAX_DELAY_SECONDS, allow_inf_nan=False)] | None = None
    until: IsoMoment | None = None
    timezone: Timezone | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.seconds is None) is (self.until is None):
            raise ValueError("needs either seconds or until")
        return self


class StopConfig(Input):
    result: Literal["succeeded", "failed"] = "succeeded"
    message: Annotated[str, Field(max_length=2_000)] | None = None
    output: JsonObject | None = None


CONFIGS: Mapping[NodeKind, type[Input]] = MappingProxyType(
    {
        NodeKind.CONDITION: ConditionConfig,
        NodeKind.SWITCH: SwitchConfig,
        NodeKind.TRANSFORM: TransformConfig,
        NodeKind.JOIN: JoinConfig,
        NodeKind.QUERY_RECORDS: QueryRecordsConfig,
        NodeKind.CREATE_RECORD: CreateRecordConfig,
        NodeKind.UPDATE_RECORD: UpdateRecordConfig,
        NodeKind.DELETE_RECORD: DeleteRecordConfig,
        NodeKind.HTTP_REQUEST: HttpRequestConfig,
        NodeKind.DELAY: DelayConfig,
        NodeKind.STOP: StopConfig,
    }
)
