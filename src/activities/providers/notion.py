"""The adapter of Notion (API 2022-06-28): pages as Markdown, databases as rows."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers import web as provider_web
from models.core.base import JsonObject
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.notion import notion_markdown, notion_row, title_of

API = "https://api.notion.com"
VERSION = "2022-06-28"
MAX_BLOCKS = 5_000
"""Blocks of a page that is read."""
MAX_DEPTH = 8
PAGE_SIZE = "100"

PAGE, DATABASE = "page", "database"
_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_ABLE = [one.value for one in (external_resources.Capability.BROWSE, *contents.CONTENT)]


class NotionAdapter(provider_web.TokenAdapter):
    """The resources an integration was given; the top lists them all, as Notion's search does."""

    api_url = API
    headers: ClassVar[Mapping[str, str]] = {"Notion-Version": VERSION}

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        web = self._web(access)
        await web.json(web.url("v1", "users", "me"))

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        web = self._web(access)
        if listing.query is not None or listing.parent_external_id is None:
            return await _search(web, listing)
        parent = _checked(listing.parent_external_id)
        if await _is_database(web, parent):
            asked: dict[str, Any] = {"page_size": listing.limit}
            if listing.cursor is not None:
                asked["start_cursor"] = listing.cursor
            url = web.url("v1", "databases", parent, "query")
            payload = await web.json(url, method="POST", body=asked)
            return _page(payload, listing, _resource)
        query = {"page_size": str(listing.limit)}
        if listing.cursor is not None:
            query["start_cursor"] = listing.cursor
        payload = await web.json(web.url("v1", "blocks", parent, "children"), query=query)
        return _page(payload, listing, lambda block: _child(parent, block))

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        web, external_id = self._web(access), _checked(resource.external_id)
        kind = "databases" if resource.external_type == DATABASE else "pages"
        payload = await web.json(web.url("v1", kind, external_id))
        made = None
        if payload.get("archived") is not True and payload.get("in_trash") is not True:
            made = _resource(payload)
        if made is None:
            raise provider_web.no_such_resource()
        return made

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        web, external_id = self._web(access), _checked(resource.external_id)
        if resource.external_type == DATABASE:
            columns = await _columns(web, external_id)
            return contents.content_of(
                resource, contents.CSV, await contents.csv_text(columns, _rows(web, external_id))
            )
        return contents.content_of(resource, contents.MARKDOWN, await _markdown(web, external_id))

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        web, external_id = self._web(access), _checked(resource.external_id)
        table = resource.external_type == DATABASE
        mime_type = contents.CSV if table else contents.MARKDOWN
        # The moment of a database does not change with its rows.
        known = None if table else resource.revision
        validators = {} if known is None else {"revision": known}
        if validators and conditions == validators:
            return adapter.Downloaded(resource.name, mime_type, validators, unchanged=True)
        if table:
            await contents.write_csv(
                path, await _columns(web, external_id), _rows(web, external_id)
            )
        else:
            text = await _markdown(web, external_id)
            await asyncio.to_thread(path.write_text, text, "utf-8")
        return adapter.Downloaded(resource.name, mime_type, validators)


async def _search(web: provider_web.Web, listing: adapter.Listing) -> adapter.ResourcePage:
    body: dict[str, Any] = {"page_size": listing.limit}
    if listing.query:
        body["query"] = listing.query
    if listing.external_type in {PAGE, DATABASE}:
        body["filter"] = {"property": "object", "value": listing.external_type}
    if listing.cursor is not None:
        body["start_cursor"] = listing.cursor
    payload = await web.json(web.url("v1", "search"), method="POST", body=body)
    return _page(payload, listing, _resource)


async def _is_database(web: provider_web.Web, external_id: str) -> bool:
    """A listing names its parent by the id alone, and Notion has an address for each kind."""
    try:
        await web.json(web.url("v1", "databases", external_id))
    except adapter.ProviderProblem as problem:
        if problem.kind in {adapter.ProblemKind.GONE, adapter.ProblemKind.INVALID}:
            return False
        raise
    return True


def _page(
    payload: Mapping[str, Any],
    listing: adapter.Listing,
    made: Callable[[JsonObject], external_resources.ProviderResource | None],
) -> adapter.ResourcePage:
    found = [
        one for one in map(made, provider_web.objects(payload.get("results"))) if one is not None
    ]
    matches = [one for one in found if listing.external_type in (None, one.external_type)]
    more = (
        provider_web.text_of(payload.get("next_cursor"))
        if payload.get("has_more") is True
        else None
    )
    return adapter.ResourcePage(matches[: listing.limit], more)


async def _markdown(web: provider_web.Web, external_id: str) -> str:
    return provider_web.shown_text(notion_markdown(await _Blocks(web).below(external_id)))


class _Blocks:
    """The blocks of a page with those in them, up to a number and a depth."""

    def __init__(self, web: provider_web.Web) -> None:
        self._web = web
        self._left = MAX_BLOCKS

    async def below(self, external_id: str, depth: int = 1) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        async for page in _results(
            self._web, self._web.url("v1", "blocks", external_id, "children")
        ):
            self._left -= len(page)
            if self._left < 0 or depth > MAX_DEPTH:
                message = f"The page has more than {MAX_BLOCKS} blocks or {MAX_DEPTH} levels."
                raise adapter.ProviderProblem(adapter.ProblemKind.TOO_LARGE, message)
            blocks += page
        for block in blocks:
            inside, below = provider_web.text_of(block.get("id")), block.get("type")
            if block.get("has_children") is True and inside and below not in _ELSEWHERE:
                block["children"] = await self.below(inside, depth + 1)
        return blocks


_ELSEWHERE = frozenset({"child_page", "child_database"})
"""Blocks that are resources of their own."""


async def _results(
    web: provider_web.Web, url: str, method: str = "GET"
) -> AsyncIterator[list[dict[str, Any]]]:
    """The pages of a list, one after the other. One that leads back to itself is malformed."""
    cursor, cursors = None, set[str]()
    while True:
        asked = {"page_size": PAGE_SIZE, **({"start_cursor": cursor} if cursor else {})}
        if method == "GET":
            payload = await web.json(url, query=asked)
        else:
            payload = await web.json(
                url, method=method, body={**asked, "page_size": int(PAGE_SIZE)}
            )
        yield provider_web.objects(payload.get("results"))
        cursor = (
            provider_web.text_of(payload.get("next_cursor"))
            if payload.get("has_more") is True
            else None
        )
        if cursor is None:
            return
        if cursor in cursors:
            raise adapter.ProviderProblem(
                adapter.ProblemKind.MALFORMED, "Notion returned the same page twice."
            )
        cursors.add(cursor)


async def _columns(web: provider_web.Web, external_id: str) -> Sequence[str]:
    """The names of a database's properties, its title first."""
    properties = (await web.json(web.url("v1", "databases", external_id))).get("properties")
    known = properties if isinstance(properties, dict) else {}
    return sorted(known, key=lambda name: (_is_title(known[name]) is False, name))


def _is_title(described: object) -> bool:
    return isinstance(described, dict) and described.get("type") == "title"


async def _rows(web: provider_web.Web, external_id: str) -> AsyncIterator[list[contents.Row]]:
    url = web.url("v1", "databases", external_id, "query")
    async for page in _results(web, url, "POST"):
        yield [notion_row(one.get("properties")) for one in page]


def _checked(external_id: str) -> str:
    if not _ID.fullmatch(external_id):
        raise provider_web.no_such_resource()
    return external_id


def _resource(payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    external_type = payload.get("object")
    if external_type not in {PAGE, DATABASE}:
        return None
    table = external_type == DATABASE
    parent = payload.get("parent")
    above = parent.get(str(parent.get("type"))) if isinstance(parent, dict) else None
    kind = (
        external_resources.ResourceSurfaceKind.DATABASE
        if table
        else external_resources.ResourceSurfaceKind.DOCUMENT
    )
    return adapter.listed(
        externalType=external_type,
        externalId=payload.get("id"),
        name=title_of(dict(payload)),
        surfaceKind=kind.value,
        capabilities=_ABLE,
        mimeType=contents.CSV if table else contents.MARKDOWN,
        canonicalUrl=payload.get("url"),
        parentExternalId=above if isinstance(above, str) else None,
        revision=None if table else payload.get("last_edited_time"),
        providerCreatedAt=payload.get("created_time"),
        providerModifiedAt=payload.get("last_edited_time"),
    )


def _child(parent: str, block: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    """A page or database inside a page; other blocks are its content."""
    kinds = {"child_page": PAGE, "child_database": DATABASE}
    external_type = kinds.get(str(block.get("type")))
    if external_type is None:
        return None
    content = block.get(str(block.get("type")))
    table = external_type == DATABASE
    kind = (
        external_resources.ResourceSurfaceKind.DATABASE
        if table
        else external_resources.ResourceSurfaceKind.DOCUMENT
    )
    return adapter.listed(
        externalType=external_type,
        externalId=block.get("id"),
        name=content.get("title") if isinstance(content, dict) else None,
        surfaceKind=kind.value,
        capabilities=_ABLE,
        mimeType=contents.CSV if table else contents.MARKDOWN,
        parentExternalId=parent,
        revision=None if table else block.get("last_edited_time"),
        providerCreatedAt=block.get("created_time"),
        providerModifiedAt=block.get("last_edited_time"),
    )
