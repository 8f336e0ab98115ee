"""Types that the configs of several kinds consist of."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field
from typing_extensions import TypeAliasType

from models.core.expressions.rules.functions import FUNCTIONS
from models.core.http_inputs import AsTexts, HeaderName, HeaderValue

MAX_WAIT_SECONDS = 30 * 86_400
"""A wait cannot outlast its run (decisions C3)."""


def one_or_many(value: object) -> object:
    """One text or number as the list it stands for."""
    return [value] if isinstance(value, str | int) and not isinstance(value, bool) else value


def _iso_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is not an ISO 8601 timestamp such as 2026-01-31T09:00:00Z") from None
    return text


_OF_THE_HOST = frozenset(
    {"alt-svc", "clear-site-data", "nel", "report-to", "service-worker-allowed"}
    | {"link", "refresh", "strict-transport-security", "www-authenticate"}
)
"""By these an answer speaks for every page of the host that gives it, not for itself: with two of
them an author would be told which others a visitor asks for, with one asked for their password."""

_OF_PROXIES = re.compile(r"x-(accel|lighttpd|litespeed|reproxy|sendfile|send-file)\b.*")
"""By these an answer has a proxy before the platform send a file of its own, or ask elsewhere."""

_NOT_TO_SET = _OF_THE_HOST | frozenset(
    {"connection", "content-encoding", "content-length", "date", "keep-alive", "server"}
    | {"proxy-authenticate", "proxy-connection", "set-cookie", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "x-request-id"}
)


def _may_be_set(name: str) -> str:
    if name.lower() in _NOT_TO_SET or _OF_PROXIES.fullmatch(name.lower()):
        raise ValueError("is a header that no answer may set")
    return name


def _can_be_sent(value: str) -> str:
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("has characters that no header can carry") from None
    return value


IsoMoment = Annotated[str, Field(max_length=64), AfterValidator(_iso_moment)]
CelExpression = TypeAliasType(
    "CelExpression",
    Annotated[
        str,
        Field(
            min_length=1,
            max_length=4_000,
            description=(
                "An expression in CEL, the Common Expression Language, over `trigger`, `nodes`,"
                " `item`, `index`, `run` and `vars`. Functions: "
                + ", ".join(f"`{function.call}`" for function in FUNCTIONS)
                + "."
            ),
            examples=["trigger.record.data.price > 100.0"],
        ),
    ],
)
FieldKey = Annotated[str, Field(min_length=1, max_length=63)]
AnswerHeaders = Annotated[
    dict[
        Annotated[HeaderName, AfterValidator(_may_be_set)],
        Annotated[HeaderValue, AfterValidator(_can_be_sent)],
    ],
    Field(max_length=100),
    AsTexts,
]
"""Headers an automation may answer with: none of the connection's or the host's, no cookies."""
Status = Annotated[int, Field(ge=100, le=599)]
StatusClass = Annotated[str, Field(pattern=r"^[1-5]xx$")]
