"""The HTTP requests of data sources: sign-in, refusals, and the request of the next page."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from activities.connections import ConnectionUseError, sign_in
from models.automation.secrets.store import secret_values
from models.core.base import Id, JsonObject
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.options import ErrorKind, SourceProblem
from runtime.crypto import KeyRing
from runtime.database import Work
from runtime.outbound import messages
from runtime.outbound.errors import OutboundError, OutboundTimeoutError, ResponseTooLargeError

HTTP_KINDS = frozenset(
    {DataSourceKind.HTTP_JSON, DataSourceKind.HTTP_CSV, DataSourceKind.HTTP_XLSX}
)
"""The kinds of sources that are fetched by HTTP."""

FETCH_SECONDS = 1_800.0
"""Seconds of one request, whose host may be silent for a minute at most (interface.md#limits)."""
MAX_FETCH_BYTES = 100 * 1024 * 1024
MAX_RETRY_AFTER = 300.0
"""Seconds that a server can make a run wait; one that asks for more fails it."""


async def auth_headers(
    work: Work, keys: KeyRing, workspace_id: Id, config: JsonObject
) -> Mapping[str, str]:
    """The headers that authenticate, as the config says.

    Raises SourceProblem for a missing secret, or a connection that cannot be used.
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
        raise SourceProblem(ErrorKind.AUTH, f"Secret {name} not found in the workspace.")
    return messages.authentication(auth["type"], value, auth.get("headerName"))


def request_of(
    config: JsonObject,
    auth: Mapping[str, str],
    seconds: float,
    url: str | None,
    query: Mapping[str, str],
) -> messages.OutboundRequest:
    """The request of a config; `url` and `query` request the next page."""
    body: Any = config.get("body")
    return messages.OutboundRequest(
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


def check_status(response: messages.OutboundResponse) -> None:
    """Raise SourceProblem for an answer that brings no rows. What it says is not repeated: it may
    echo a secret.
    """
    status = response.status
    if 200 <= status < 300:
        return
    kind = ErrorKind.AUTH if status in {401, 403, 407} else ErrorKind.FETCH
    message = f"The server returned {status}."
    wait = response.retry_after
    if wait is not None and wait > MAX_RETRY_AFTER:
        message += f" Try again in {round(wait / 60):,} minutes."
        raise SourceProblem(kind, message, final=True)
    raise SourceProblem(kind, message, final=not response.retryable, retry_after=wait)


_BEYOND_THE_END = frozenset({400, 404, 410, 416, 422})
"""The statuses by which servers refuse a page that they do not have."""


def may_be_beyond(page: JsonObject) -> bool:
    """True for a page that the server need not have."""
    return "short" in page or "whole" in page


def is_beyond(page: JsonObject, status: int) -> bool:
    """True for the answer of a server that does not have the page."""
    if may_be_beyond(page) and status in _BEYOND_THE_END:
        return True
    # No row is missing: a server that fails where it has none says nothing more.
    return "whole" in page and status == 500


_SEPARATED = re.compile(r"[\s,]*")
_VALUE = r'"(?:[^"\\]|\\.)*"|[^\s;,"]*'
_PARAMETER = rf';\s*([^\s=;,"]+)(?:\s*=\s*({_VALUE}))?'
_LINK = re.compile(rf'<([^<>]*)>((?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:{_VALUE}))?)*)\s*;?\s*(?=,|$)')
_PARAMETERS = re.compile(_PARAMETER)
_ESCAPED = re.compile(r"\\(.)")


def linked(header: str, relation: str, base: str) -> str | None:
    """The URL of the first link of this relation, resolved against the URL of the answer."""
    for target, parameters in _links(header):
        # A link with an anchor is one of another resource (section 3.2).
        if urljoin(base, parameters.get("anchor", "")) != base:
            continue
        if relation in parameters.get("rel", "").lower().split():
            return urljoin(base, target.strip())
    return None


def _links(header: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The links up to the first that cannot be read; of a repeated parameter the first counts."""
    place = _end(_SEPARATED.match(header))
    while (found := _LINK.match(header, place)) is not None:
        parameters: dict[str, str] = {}
        for name, value in _PARAMETERS.findall(found[2]):
            parameters.setdefault(name.lower(), _plain(value))
        yield found[1], parameters
        place = _end(_SEPARATED.match(header, found.end()))


def _plain(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value


def _end(found: re.Match[str] | None) -> int:
    assert found is not None, "the pattern takes nothing, too"
    return found.end()


@dataclass(frozen=True, slots=True)
class PageFound:
    """The facts about a page that was fetched: its rows, and the place of the next page.

    `json_path` is where the page has its rows, if it has a list of them; `digest` is that of the
    rows, since what stands around them may change with each request. `stated` is the number of the
    rows of all pages, if the page has a member of such a name.
    """

    rows: int
    cursor: Any
    columns: Sequence[str] = ()
    json_path: str | None = None
    digest: str = ""
    stated: int | None = None


_OF_ALL = re.compile(r"(?!bytes\b)[a-z-]+\s+\S+/([0-9]{1,12})", re.IGNORECASE)


def stated_total(headers: Mapping[str, str]) -> int | None:
    """The number of all rows that the headers of a page state; None where they do not."""
    ranged = _OF_ALL.fullmatch(headers.get("content-range", "").strip())
    written = [headers.get(name, "") for name in ("x-total-count", "x-total", "x-wp-total")]
    totals = [int(each) for each in written if each.isdecimal() and len(each) < 13]
    return max([*totals, *([int(ranged[1])] if ranged else [])], default=None)


def first_page(config: JsonObject) -> JsonObject:
    """The parameters that ask for the first page, besides the config.

    Pages are counted from the number that the config gives, else from 1, and rows from 0.
    """
    pagination = config.get("pagination") or {"type": "none"}
    if pagination["type"] not in {"page", "offset"}:
        return {}
    param = pagination["param"]
    of_url = parse_qs(urlsplit(config["url"]).query).get(param, [None])[-1]
    given = config.get("query", {}).get(param) or of_url
    return {"query": {param: given or ("1" if pagination["type"] == "page" else "0")}}


def next_page(
    config: JsonObject,
    page: JsonObject,
    response: messages.OutboundResponse,
    content: PageFound,
    before: int,
) -> JsonObject | None:
    """The parameters that ask for the next page; None after the last one.

    Behind a page with fewer rows than a page may have, `short` says that there may be none; `whole`
    says so behind all rows that are stated, with the number `before` this page. Raises
    SourceProblem for a server that sends elsewhere.
    """
    pagination = config.get("pagination") or {"type": "none"}
    param = pagination.get("param")
    match pagination["type"]:
        case "page" | "offset" if content.rows:
            step = 1 if pagination["type"] == "page" else content.rows
            following: JsonObject = {"query": {param: str(_number(page, param) + step)}}
            if content.rows < (pagination.get("pageSize") or 0):
                following["short"] = True
            if _is_whole(response, content, before):
                following["whole"] = True
            return following
        case "cursor" if content.cursor not in (None, "", False):
            return {"query": {param: str(content.cursor)}}
        case "link_header":
            url = linked(response.headers.get("link", ""), "next", response.final_url)
            return None if url is None else {"url": _on_origin(url, config["url"])}
    return None


def _is_whole(response: messages.OutboundResponse, content: PageFound, before: int) -> bool:
    """True when as many rows have come as the server states.

    A member may count the rows of its own page, which the first page cannot tell.
    """
    rows = before + content.rows
    return stated_total(response.headers) == rows or (before > 0 and content.stated == rows)


def _number(asked: JsonObject, param: object) -> int:
    try:
        return int(asked["query"][param])
    except (TypeError, ValueError):
        raise SourceProblem(
            ErrorKind.MAPPING, f"The query parameter {param} must be a number to count pages with."
        ) from None


def _on_origin(url: str, home: str) -> str:
    """The URL, if it is on the origin that the config names: what authenticates there goes along.

    Raises SourceProblem for any other.
    """
    try:
        there, here = messages.parse_url(url), messages.parse_url(home)
    except OutboundError as error:
        raise problem_of(error) from error
    if messages.same_origin(here, there) or messages.is_https_upgrade(here, there):
        return str(there)
    message = (
        f"The next page is on another origin, {there.scheme}://{there.netloc.decode()}, than the"
        " URL of the config. Name that one if its pages are to be fetched."
    )
    raise SourceProblem(ErrorKind.FETCH, message, final=True)
