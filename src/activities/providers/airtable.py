"""The adapter of Airtable (Web API): bases, and their tables as rows."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers.web import TokenAdapter, Web, no_such_resource, objects, text_of
from models.sources.external_resources.rules import resources as external_resources

API = "https://api.airtable.com"
ADDRESS = "https://airtable.com"
PAGE_SIZE = "100"

BASE, TABLE = "base", "table"


class AirtableAdapter(TokenAdapter):
    """A base is a folder of tables. Airtable says of neither when it was changed."""

    api_url = API

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        web = self._web(access)
        await web.json(web.url("v0", "meta", "whoami"))

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        web = self._web(access)
        if listing.parent_external_id is None:
            query = {} if listing.cursor is None else {"offset": listing.cursor}
            payload = await web.json(web.url("v0", "meta", "bases"), query=query)
            resources = [_base(record) for record in objects(payload.get("bases"))]
            following = text_of(payload.get("offset"))
        else:
            base = contents.checked_path(listing.parent_external_id)
            start = int(listing.cursor or "0")
            tables = await _tables(web, base)
            resources = [_table(base, table) for table in tables[start : start + listing.limit]]
            end = start + listing.limit
            following = str(end) if end < len(tables) else None
        kept = [
            resource
            for resource in resources
            if resource and listing.external_type in (None, resource.external_type)
        ]
        return adapter.ResourcePage(kept, following)

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        web = self._web(access)
        base, _, table = contents.checked_path(resource.external_id).partition("/")
        if table:
            made = _table(base, await _schema(web, base, table))
        else:
            made = await _found_base(web, base)
        if made is None:
            raise no_such_resource()
        return made

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        web = self._web(access)
        base, _, table = contents.checked_path(resource.external_id).partition("/")
        if not table:
            return contents.link_to(resource)
        columns = _columns(await _schema(web, base, table))
        return contents.content_of(
            resource, contents.CSV, await contents.csv_text(columns, _rows(web, base, table))
        )

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        web = self._web(access)
        base, _, table = contents.checked_path(resource.external_id).partition("/")
        if not table:
            raise adapter.ProviderProblem(
                adapter.ProblemKind.UNSUPPORTED, "A base is not a table. Import its tables."
            )
        columns = _columns(await _schema(web, base, table))
        await contents.write_csv(path, columns, _rows(web, base, table))
        return adapter.Downloaded(resource.name, contents.CSV)


async def _tables(web: Web, base: str) -> list[dict[str, Any]]:
    payload = await web.json(web.url("v0", "meta", "bases", base, "tables"))
    return objects(payload.get("tables"))


async def _schema(web: Web, base: str, table: str) -> dict[str, Any]:
    """The schema of a table. Raises ProviderProblem for one that was deleted."""
    found = [one for one in await _tables(web, base) if one.get("id") == table]
    if not found:
        raise no_such_resource()
    return found[0]


async def _found_base(web: Web, base: str) -> external_resources.ProviderResource | None:
    """Airtable describes a base in the list of them alone."""
    async for page in _pages(web, web.url("v0", "meta", "bases"), "bases"):
        for one in page:
            if one.get("id") == base:
                return _base(one)
    return None


def _columns(schema: Mapping[str, Any]) -> list[str]:
    names = (text_of(one.get("name")) for one in objects(schema.get("fields")))
    return [name for name in names if name is not None]


async def _rows(web: Web, base: str, table: str) -> AsyncIterator[list[contents.Row]]:
    url = web.url("v0", base, table)
    async for page in _pages(web, url, "records", {"pageSize": PAGE_SIZE}):
        yield [_cells(one.get("fields")) for one in page]


async def _pages(
    web: Web, url: str, name: str, query: Mapping[str, str] | None = None
) -> AsyncIterator[list[dict[str, Any]]]:
    """The pages of a list, one after the other. One that leads back to itself is malformed."""
    offset, offsets = None, set[str]()
    while True:
        asked = {**(query or {}), **({"offset": offset} if offset else {})}
        payload = await web.json(url, query=asked)
        yield objects(payload.get(name))
        offset = text_of(payload.get("offset"))
        if offset is None:
            return
        if offset in offsets:
            raise adapter.ProviderProblem(
                adapter.ProblemKind.MALFORMED, "Airtable returned the same page twice."
            )
        offsets.add(offset)


def _cells(fields: object) -> contents.Row:
    given = fields if isinstance(fields, dict) else {}
    cells = {str(name): _text(value) for name, value in given.items()}
    return {name: text for name, text in cells.items() if text}


def _text(value: object) -> str:
    """A cell as text: several values are joined, and an object is its name."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case list():
            return ", ".join(text for text in map(_text, value) if text)
        case dict():
            for name in ("name", "email", "url", "text", "filename", "id"):
                if value.get(name):
                    return _text(value[name])
            return json.dumps(value, ensure_ascii=False)
        case _:
            return json.dumps(value)


def _base(payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    if payload.get("permissionLevel") == "none":
        return None
    kind = external_resources.ResourceSurfaceKind.FOLDER
    return adapter.listed(
        externalType=BASE,
        externalId=payload.get("id"),
        name=payload.get("name"),
        surfaceKind=kind.value,
        capabilities=contents.capabilities_of(kind),
        canonicalUrl=f"{ADDRESS}/{payload.get('id')}",
    )


def _table(base: str, payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    if text_of(payload.get("id")) is None:
        return None
    return adapter.listed(
        externalType=TABLE,
        externalId=f"{base}/{payload['id']}",
        name=payload.get("name"),
        surfaceKind=external_resources.ResourceSurfaceKind.DATABASE.value,
        capabilities=[one.value for one in contents.CONTENT],
        mimeType=contents.CSV,
        canonicalUrl=f"{ADDRESS}/{base}/{payload['id']}",
        parentExternalId=base,
    )
