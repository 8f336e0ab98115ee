"""The pages of a JSON source: how the next one is asked for (decisions C10, pagination)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from activities.sources.links import linked
from activities.sources.requests import problem_of
from models.core.base import JsonObject
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.outbound.errors import OutboundError
from runtime.outbound.messages import OutboundResponse
from runtime.outbound.urls import is_https_upgrade, parse_url, same_origin


@dataclass(frozen=True, slots=True)
class PageFound:
    """The facts about a page that was fetched: its rows, and the place it says to go on at."""

    rows: int
    cursor: Any
    columns: Sequence[str] = ()


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
    config: JsonObject, page: JsonObject, response: OutboundResponse, content: PageFound
) -> JsonObject | None:
    """The parameters that ask for the next page; None after the last one.

    Raises SourceProblem for a server that sends elsewhere.
    """
    pagination = config.get("pagination") or {"type": "none"}
    param, size = pagination.get("param"), pagination.get("pageSize")
    match pagination["type"]:
        case "page" | "offset" if content.rows and (size is None or content.rows >= size):
            step = 1 if pagination["type"] == "page" else size or content.rows
            return {"query": {param: str(_number(page, param) + step)}}
        case "cursor" if content.cursor not in (None, "", False):
            return {"query": {param: str(content.cursor)}}
        case "link_header":
            url = linked(response.headers.get("link", ""), "next", response.final_url)
            return None if url is None else {"url": _on_origin(url, config["url"])}
    return None


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
        there, here = parse_url(url), parse_url(home)
    except OutboundError as error:
        raise problem_of(error) from error
    if same_origin(here, there) or is_https_upgrade(here, there):
        return str(there)
    message = (
        f"The next page is on another origin, {there.scheme}://{there.netloc.decode()}, than the"
        " URL of the config. Name that one if its pages are to be fetched."
    )
    raise SourceProblem(ErrorKind.FETCH, message, final=True)
