"""The headers of answers, as the OpenAPI document declares them."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from typing import Any, get_args, get_origin
from urllib.parse import parse_qsl, urlencode

from api.kernel.limits import TooOftenError
from api.kernel.operation import Operation
from api.kernel.routing import Route
from models.core.openapi import Deprecated, deprecated_in_answer, may_use_deprecated
from runtime import errors


def _header(description: str, kind: str = "string", **options: object) -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}, **options}


REQUEST_ID = "X-Request-Id"
REPLAYED = "Idempotency-Replayed"
ENTITY_TAG = "ETag"
APPLIED = "Preference-Applied"
LINK = "Link"
DEPRECATION = "Deprecation"
SUNSET = "Sunset"
RATE_LIMIT = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")

HEADERS: dict[str, dict[str, Any]] = {
    REQUEST_ID: _header("The id of the request in the logs of the platform.", required=True),
    REPLAYED: _header("`true` for the response to an earlier request with this `Idempotency-Key`."),
    "Retry-After": _header("Seconds to wait before retrying.", "integer"),
    ENTITY_TAG: _header("The version of the content, for `If-None-Match`."),
    "Allow": _header("The methods that this path supports."),
    "Accept-Ranges": _header("`bytes`: the file supports `Range` requests."),
    "Content-Disposition": _header("The name of the file (RFC 6266)."),
    "Content-Range": _header("The returned part, and the size of the whole file."),
    "WWW-Authenticate": _header("The authentication scheme: `Bearer`."),
    APPLIED: _header("The applied preference of `Prefer`, such as `wait=30` or `dry-run`."),
    LINK: _header('The next page, if there is one: `<?cursor=…>; rel="next"`.'),
    DEPRECATION: _header("When the used feature was deprecated: `@` and seconds (RFC 9745)."),
    SUNSET: _header("When the used feature will be removed (RFC 8594)."),
    RATE_LIMIT[0]: _header("The request limit of the caller.", "integer"),
    RATE_LIMIT[1]: _header("The remaining requests.", "integer"),
    RATE_LIMIT[2]: _header("Seconds until the limit is fully restored.", "integer"),
}
"""The components; an answer refers to those it may have."""

_OF_A_FILE = (ENTITY_TAG, "Accept-Ranges", "Content-Disposition")
_REPEATED = (errors.InProgressError.code, errors.ConflictingMutationError.code)
"""Only an operation that takes an `Idempotency-Key` refuses so by itself."""


def of_success(route: Route, statuses: Iterable[int | str]) -> dict[str, Any]:
    """The headers of what an operation answers when it succeeds, with one of these statuses."""
    access = route.operation.access
    names = [REQUEST_ID]
    if "cursor" in route.operation.query and _answers_an_array(route.operation):
        names.append(LINK)
    if may_be_deprecated(route.operation):
        names += [DEPRECATION, SUNSET]
    if access.idempotent:
        names.append(REPLAYED)
    if access.prefers or route.operation.takes_dry_runs:
        names.append(APPLIED)
    if 304 in statuses:
        names += _OF_A_FILE
    elif route.operation.result is not None and route.media_type != "application/json":
        names.append("Content-Disposition")
    if 206 in statuses:
        names.append("Content-Range")
    if access.credential != "none" or any(issubclass(one, TooOftenError) for one in route.errors):
        names += RATE_LIMIT
    return _references(names)


def deprecation_headers(deprecations: Iterable[Deprecated]) -> Mapping[str, str]:
    """The headers of an answer to a use of these: the first days of all (RFC 9745, RFC 8594)."""
    deprecations = list(deprecations)
    if not deprecations:
        return {}
    since = _midnight(min(one.since for one in deprecations))
    sunset = _midnight(min(one.sunset for one in deprecations))
    return {
        DEPRECATION: f"@{int(since.timestamp())}",
        SUNSET: format_datetime(sunset, usegmt=True),
    }


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def next_link(query_string: bytes, cursor: str) -> str:
    """The header `Link` of a page that another one follows (RFC 8288).

    Its target is relative, since a proxy may serve the API below another path, and has what else
    was asked for.
    """
    asked = parse_qsl(query_string.decode(), keep_blank_values=True)
    query = [(name, value) for name, value in asked if name != "cursor"]
    return f'<?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'


def may_be_deprecated(operation: Operation) -> bool:
    """True where a call may use what is deprecated."""
    parameters = any(parameter.deprecated for parameter in operation.query.values())
    body = operation.body is not None and may_use_deprecated(operation.body.shape)
    own = operation.deprecated is not None or deprecated_in_answer(operation.endpoint)
    return bool(own or parameters or body)


def _answers_an_array(operation: Operation) -> bool:
    shapes = get_args(inspect.signature(operation.endpoint, eval_str=True).return_annotation)
    return any(get_origin(shape) is list for shape in shapes)


def of_refusals(refusals: Sequence[type[errors.PlatformError]]) -> dict[str, Any]:
    """The headers of refusals that have one status."""
    own = {name for refusal in refusals for name in refusal.headers}
    if any(refusal.code in _REPEATED for refusal in refusals):
        own.add(REPLAYED)
    return _references([REQUEST_ID, *sorted(own), *RATE_LIMIT])


def _references(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
