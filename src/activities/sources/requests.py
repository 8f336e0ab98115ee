"""The HTTP requests of data sources, with what their secrets add."""

from collections.abc import Mapping
from typing import Any

from activities.connections import ConnectionUseError, sign_in
from models.automation.secrets.queries import secret_values
from models.core.base import Id, JsonObject
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.crypto import KeyRing
from runtime.outbound.authentication import authentication
from runtime.outbound.errors import OutboundError, OutboundTimeoutError, ResponseTooLargeError
from runtime.outbound.messages import OutboundRequest, OutboundResponse
from runtime.work import Work

HTTP_KINDS = frozenset(
    {DataSourceKind.HTTP_JSON, DataSourceKind.HTTP_CSV, DataSourceKind.HTTP_XLSX}
)
"""The kinds of sources that are fetched by HTTP."""

FETCH_SECONDS = 1_800.0
"""Seconds of one request, whose host may be silent for a minute at most (decisions C3)."""
MAX_FETCH_BYTES = 100 * 1024 * 1024
MAX_RETRY_AFTER = 300.0
"""Seconds that a server can make a run wait; one that asks for more fails it."""


async def auth_headers(
    work: Work, keys: KeyRing, workspace_id: Id, config: JsonObject
) -> Mapping[str, str]:
    """The headers that say who asks, as the config says.

    Raises SourceProblem for a secret that is not there, or a connection that is of no use.
    """
    auth = config.get("auth") or {"type": "none"}
    if auth["type"] == "none":
        return {}
    if auth["type"] == "connection":
        connection_id = Id(auth["connectionId"])
        try:
            found = await sign_in(work, keys, workspace_id, connection_id, config["url"])
        except ConnectionUseError as error:
            raise SourceProblem(ErrorKind.AUTH, error.message) from error
        return found.headers
    name = auth["secretName"]
    value = (await secret_values(work, keys, workspace_id, [name])).get(name)
    if value is None:
        raise SourceProblem(ErrorKind.AUTH, f"The workspace has no secret named {name}.")
    return authentication(auth["type"], value, auth.get("headerName"))


def request_of(
    config: JsonObject,
    auth: Mapping[str, str],
    seconds: float,
    url: str | None,
    query: Mapping[str, str],
) -> OutboundRequest:
    """The request of a config; `url` and `query` are what the next page is asked for with."""
    body: Any = config.get("body")
    return OutboundRequest(
        method=config.get("method", "GET"),
        url=url or config["url"],
        headers={**config.get("headers", {}), **auth},
        query={} if url else {**config.get("query", {}), **query},
        body=body,
        timeout_seconds=seconds,
        max_bytes=MAX_FETCH_BYTES,
    )


def problem_of(error: OutboundError) -> SourceProblem:
    """The reason a request was not answered."""
    kind = ErrorKind.FETCH
    if isinstance(error, OutboundTimeoutError):
        kind = ErrorKind.TIMEOUT
    elif isinstance(error, ResponseTooLargeError):
        kind = ErrorKind.TOO_LARGE
    return SourceProblem(kind, error.message, final=not error.retryable)


def check_status(response: OutboundResponse) -> None:
    """Raise SourceProblem for an answer that brings no rows. What it says is not repeated: it may
    echo a secret.
    """
    status = response.status
    if 200 <= status < 300:
        return
    kind = ErrorKind.AUTH if status in {401, 403, 407} else ErrorKind.FETCH
    message = f"The server answered {status}."
    wait = response.retry_after
    if wait is not None and wait > MAX_RETRY_AFTER:
        message += f" It asks to be left alone for {round(wait / 60):,} minutes."
        raise SourceProblem(kind, message, final=True)
    raise SourceProblem(kind, message, final=not response.retryable, retry_after=wait)
