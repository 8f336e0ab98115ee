"""The adapter of the provider `demo`: resources in memory, to try all that integrations do."""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from typing_extensions import override

from activities.providers import adapter
from activities.providers.demo_fixtures import Fixture, everything, fixture, fixtures
from models.sources.connections.providers import DemoConnection
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.forms import GOOGLE_FORM_TYPE as GOOGLE_FORM
from models.sources.external_resources.rules.forms import HostedForm, google_form, json_form

_ADDRESS = "https://demo.example.com/"


class DemoAdapter(adapter.Adapter):
    """Resources in memory; what the config withholds is as if a provider withheld it."""

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        _config(access)

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        config, parent = _config(access), listing.parent_external_id
        if parent is not None:
            _readable_fixture(config, parent)
        start = _offset(listing.cursor)
        page = list(islice(_matching(config, listing), start, start + listing.limit + 1))
        shown = [_resource(config, one) for one in page[: listing.limit]]
        following = str(start + listing.limit) if len(page) > listing.limit else None
        return adapter.ResourcePage(shown, following)

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        config = _config(access)
        return _resource(config, _readable_fixture(config, resource.external_id))

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        config = _config(access)
        item = _readable_fixture(config, resource.external_id)
        entry = _resource(config, item)
        if item.format is None or item.holds is None:
            address = entry.canonical_url
            return adapter.ReadContent(
                external_resources.ReadFormat.LINK,
                None,
                entry.revision,
                fallback_url=address,
            )
        text = item.holds(config.edition).decode()
        content = json.loads(text) if item.format is external_resources.ReadFormat.JSON else text
        return adapter.ReadContent(
            item.format, content, entry.revision, fallback_url=entry.canonical_url
        )

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        config = _config(access)
        item = _readable_fixture(config, resource.external_id)
        if item.holds is None or item.mime_type is None:
            raise adapter.ProviderProblem(
                adapter.ProblemKind.UNSUPPORTED, "The resource has no content."
            )
        validators = {"revision": _revision(config, item)}
        if conditions == validators:
            return adapter.Downloaded(item.name, item.mime_type, validators, unchanged=True)
        content = await asyncio.to_thread(item.holds, config.edition)
        await asyncio.to_thread(path.write_bytes, content)
        return adapter.Downloaded(item.name, item.mime_type, validators)

    @override
    async def form(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> HostedForm:
        config = _config(access)
        readable = _readable_fixture(config, resource.external_id)
        if (
            readable.kind is not external_resources.ResourceSurfaceKind.FORM
            or readable.holds is None
        ):
            raise adapter.ProviderProblem(
                adapter.ProblemKind.UNSUPPORTED, "The resource is not a form."
            )
        document = json.loads(readable.holds(config.edition))
        return google_form(document) if readable.mime_type == GOOGLE_FORM else json_form(document)


def _config(access: adapter.ProviderAccess) -> DemoConnection:
    return DemoConnection.model_validate(access.config)


def _readable_fixture(config: DemoConnection, external_id: str) -> Fixture:
    readable = fixture(external_id, config.generated)
    if readable is None or readable.gone or external_id in config.vanished:
        raise adapter.ProviderProblem(
            adapter.ProblemKind.GONE, "The resource was not found at the provider."
        )
    if external_id in config.denied:
        raise adapter.ProviderProblem(
            adapter.ProblemKind.DENIED, "The provider denied access to the resource."
        )
    return readable


def _matching(config: DemoConnection, listing: adapter.Listing) -> Iterator[Fixture]:
    if listing.query is not None:
        text = listing.query.casefold()
        among = everything(config.generated)
    else:
        text = ""
        among = fixtures(listing.parent_external_id, config.generated)
    hidden = {*config.vanished, *config.denied}
    return (
        item
        for item in among
        if text in item.name.casefold()
        and item.id not in hidden
        and listing.external_type in (None, item.type)
    )


def _resource(config: DemoConnection, item: Fixture) -> external_resources.ProviderResource:
    resource = adapter.listed(
        externalType=item.type,
        externalId=item.id,
        name=item.name,
        surfaceKind=item.kind.value,
        capabilities=[capability.value for capability in item.capabilities],
        mimeType=item.mime_type,
        canonicalUrl=f"{_ADDRESS}{item.id}",
        parentExternalId=item.parent,
        revision=_revision(config, item),
        providerCreatedAt="2025-01-01T00:00:00.000Z",
        providerModifiedAt="2025-06-01T00:00:00.000Z",
    )
    assert resource is not None, "fixtures are whole"
    return resource


def _revision(config: DemoConnection, found: Fixture) -> str:
    """That of a folder changes with everything that the config says."""
    if found.kind is not external_resources.ResourceSurfaceKind.FOLDER:
        return str(config.edition)
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16]


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 9):
        raise adapter.ProviderProblem(adapter.ProblemKind.INVALID, "Invalid cursor.")
    return int(cursor)
