"""Reads an endpoint's arguments from query string and body, strictly; the pipeline calls it."""

from typing import Any
from urllib.parse import parse_qsl

from pydantic import JsonValue
from pydantic import ValidationError as ShapeError

from api.kernel.echoes import take_echoes
from api.kernel.operation import Operation
from models.content.files.rules import Content
from models.core.base import JsonObject
from models.core.problems import MAX_PROBLEMS, place, refusal, sentence
from runtime.errors import Detail, ValidationError
from runtime.strict_json import StrictJsonError, parse

_MAX_PARAMETERS = 50


def query_arguments(operation: Operation, query_string: bytes) -> dict[str, Any]:
    """The parameters of the query; unknown, repeated and malformed ones are refused."""
    # A filter that is left empty in a form is like one that is not there.
    blank = not operation.access.page
    query = _read_query(query_string, keep_blank=blank) if query_string else {}
    details: list[Detail] = []
    arguments: dict[str, Any] = {}
    for wire, text in query.items():
        parameter = operation.query.get(wire)
        if parameter is None and wire == "workspaceId" and operation.chooses_workspace:
            continue
        if parameter is None:
            details.append(Detail(wire[:100], "This operation has no such query parameter."))
            continue
        try:
            arguments[parameter.name] = parameter.adapter.validate_python(text)
        except ShapeError as error:
            details.append(Detail(wire, sentence(error.errors()[0])))
    details.extend(
        Detail(wire, "This query parameter is required.")
        for wire, parameter in operation.query.items()
        if parameter.required and wire not in query
    )
    if details:
        raise refusal(details)
    if (shape := operation.query_shape) is not None:
        fields = arguments.keys() & shape.shape.model_fields.keys()
        values = {name: arguments.pop(name) for name in fields}
        # Each field was validated as it was read.
        arguments[shape.name] = shape.shape.model_construct(**values)
    return arguments


def _read_query(query_string: bytes, *, keep_blank: bool) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=keep_blank,
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except ValueError:
        raise ValidationError("The query string is not readable UTF-8 text.") from None
    query: dict[str, str] = {}
    for name, value in pairs:
        if name in query:
            raise ValidationError.at(name[:100], "Give this query parameter once.")
        if "\x00" in value or "\x00" in name:
            raise ValidationError.at(name.replace("\x00", "")[:100], "NUL is not text.")
        query[name] = value
    return query


def body_argument(
    operation: Operation, raw: bytes, upload: Content | None = None
) -> tuple[Any, Any, dict[str, Any]]:
    """The validated body, the JSON it was read from, and what of it `echoes` has to check.

    For an `upload` there is none, and what makes it the same one stands for its JSON. The form of a
    page has fields beside its file.
    """
    if upload is not None and operation.access.page:
        argument, value, echoed = body_argument(operation, raw)
        return argument, [value, upload.summary], echoed
    if upload is not None:
        return None, upload.summary, {}
    body = operation.body
    if body is None:
        return None, _nothing(raw), {}
    if not raw:
        if not body.optional:
            raise ValidationError.at("", "The body is empty; send a JSON object.")
        raw = b"{}"
    value = _strict(raw)
    if value is None:
        raise ValidationError.at("", "The body is null; send a JSON object.")
    raw, echoed = take_echoes(operation, raw, value)
    try:
        return body.adapter.validate_json(raw), value, echoed
    except ShapeError as error:
        problems = error.errors(include_url=False, include_input=False)
        details = [
            Detail(
                place(problem, value), sentence(problem, body.shape if at < MAX_PROBLEMS else None)
            )
            for at, problem in enumerate(problems)
        ]
        raise refusal(details) from None


def _nothing(raw: bytes) -> JsonObject:
    """An operation without a body takes none, or an object without keys."""
    if raw and _strict(raw) != {}:
        raise ValidationError.at("", "This operation takes no body.")
    return {}


def _strict(raw: bytes) -> JsonValue:
    try:
        return parse(raw)
    except StrictJsonError as error:
        raise ValidationError.at(error.path, error.message) from None
