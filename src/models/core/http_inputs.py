"""The parts of a request to another server, as the configs of requests give them."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from models.core.problems import refused_for
from runtime.callable_urls import url_problem

CallableUrl = Annotated[
    str,
    Field(min_length=1, max_length=8_192, pattern=r"^https?://[^\s]+$"),
    refused_for(url_problem),
]
"""A URL that can be called, as far as it tells.

One that a client saves names no private address; what a name stands for is judged when it is
called.
"""


def as_texts(value: object) -> object:
    """Numbers and truth values as text, nulls left out: what a header or a query can carry.

    What is no object stays as it is, for the type to refuse.
    """
    if not isinstance(value, dict):
        return value
    return {key: _as_text(item) for key, item in value.items() if item is not None}


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return [_as_text(item) for item in value] if isinstance(value, list) else value


HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$")]
HeaderValue = Annotated[str, Field(max_length=8_192, pattern=r"^[^\x00\r\n]*$")]
_Scalar = str | float | bool
_HeaderInputs = Annotated[
    dict[HeaderName, HeaderValue | float | bool | None], Field(max_length=100)
]
_ParameterInputs = Annotated[dict[str, _Scalar | list[_Scalar] | None], Field(max_length=200)]
AsTexts = BeforeValidator(as_texts, json_schema_input_type=_HeaderInputs)
Headers = Annotated[dict[HeaderName, HeaderValue], Field(max_length=100), AsTexts]
QueryParameters = Annotated[
    dict[str, str | list[str]],
    Field(max_length=200),
    BeforeValidator(as_texts, json_schema_input_type=_ParameterInputs),
]
