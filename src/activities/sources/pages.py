"""The pages of a JSON source: how the next one is asked for (decisions C10, pagination)."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from models.core.base import JsonObject
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.outbound.messages import OutboundResponse

_LINK = re.compile(r'<([^<>]*)>\s*((?:;\s*[^,;="\s]+\s*(?:=\s*(?:"[^"]*"|[^,;"]*))?)*)')
_NEXT = re.compile(r'(?:^|;)\s*rel\s*=\s*"?(?:[^"]*\s)?next(?:\s[^"]*)?"?\s*(?:;|$)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageFound:
    """What is known of a page that was fetched: how many rows it has and where it says to go on."""

    rows: int
    cursor: Any


def first_page(config: JsonObject) -> JsonObject:
    """What the first page is asked for with, besides the config."""
    pagination = config.get("pagination") or {"type": "none"}
    param = pagination.get("param")
    given = config.get("query", {}).get(param)
    match pagination["type"]:
        case "page":
            return {"query": {param: given or "1"}}
        case "offset":
            return {"query": {param: given or "0"}}
        case _:
            return {}


def next_page(
    config: JsonObject, asked: JsonObject, response: OutboundResponse, found: PageFound
) -> JsonObject | None:
    """What the next page is asked for with; None after the last one.

    Raises SourceProblem for a server that sends in circles or elsewhere.
    """
    pagination = config.get("pagination") or {"type": "none"}
    param, size = pagination.get("param"), pagination.get("pageSize")
    following: JsonObject | None = None
    match pagination["type"]:
        case "page" | "offset" if found.rows and (size is None or found.rows >= size):
            step = 1 if pagination["type"] == "page" else size or found.rows
            following = {"query": {param: str(_number(asked, param) + step)}}
        case "cursor" if found.cursor not in (None, "", False):
            following = {"query": {param: str(found.cursor)}}
        case "link_header":
            url = linked(response)
            following = None if url is None else {"url": url}
    if following is not None and following == asked:
        raise SourceProblem(ErrorKind.FETCH, "The server names the same page as the next one.")
    return following


def _number(asked: JsonObject, param: Any) -> int:
    try:
        return int(asked["query"][param])
    except ValueError:
        raise SourceProblem(
            ErrorKind.MAPPING, f"The query parameter {param} must be a number to count pages with."
        ) from None


def linked(response: OutboundResponse) -> str | None:
    """The URL of the relation `next` in the header Link (RFC 8288), on the same host.

    Raises SourceProblem for another host: what authenticates here is not sent there.
    """
    for target, parameters in _LINK.findall(response.headers.get("link", "")):
        if _NEXT.search(parameters):
            url: str = urljoin(response.final_url, target)
            if url.split("/")[:3] != response.final_url.split("/")[:3]:
                raise SourceProblem(ErrorKind.FETCH, "The next page is on another host.")
            return url
    return None
