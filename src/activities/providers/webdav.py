"""The adapter of WebDAV servers (RFC 4918)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers.web import DOWNLOAD_SECONDS, Web, no_such_resource, secret_of, sent
from models.sources.connections.providers import WebdavConnection
from models.sources.external_resources.rules import resources as external_resources
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest, authentication

_WANTED = (
    '<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/>'
    "<getcontenttype/><getetag/><getlastmodified/><getcontentlength/></prop></propfind>"
)


class _Found(NamedTuple):
    """One resource of a multistatus."""

    path: str
    folder: bool
    mime_type: str | None
    revision: str | None


class WebdavAdapter(adapter.Adapter):
    """Folders and files by their paths. WebDAV has no pages: they are cut from whole listings."""

    listing_seconds = contents.LISTING_SECONDS

    def __init__(self, outbound: OutboundClient) -> None:
        self._outbound = outbound

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        await self._found(access, "", 0)

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        parent = contents.checked_path(listing.parent_external_id)
        page = contents.FirstNames[_Found](listing)

        def take(child: _Found) -> None:
            if child.path != parent and (contents.parent_of(child.path) or "") == parent:
                page.take(contents.name_of(child.path), "folder" if child.folder else "file", child)

        await self._propfind(access, parent, 1, take)
        return page.page(lambda _, one: self._resource(access, one))

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        found = await self._found(access, contents.checked_path(resource.external_id), 0)
        made = self._resource(access, found)
        if made is None:
            raise no_such_resource()
        return made

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        mime_type = contents.media_type(resource.name, resource.mime_type)
        if resource.external_type == "folder" or not contents.is_text(mime_type):
            return contents.link_to(resource)
        web = self._web(access)
        text = await web.text(_url(access, contents.checked_path(resource.external_id)))
        return contents.content_of(resource, mime_type, text)

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        url = _url(access, contents.checked_path(resource.external_id))
        return await contents.fetch_file(self._web(access), resource, url, path, conditions)

    async def _found(self, access: adapter.ProviderAccess, path: str, depth: int) -> _Found:
        found: list[_Found] = []
        await self._propfind(access, path, depth, found.append)
        same = [one for one in found if one.path == path]
        if not same:
            raise no_such_resource()
        return same[0]

    async def _propfind(
        self, access: adapter.ProviderAccess, path: str, depth: int, take: Callable[[_Found], None]
    ) -> None:
        """Pass the resources at a path, and directly below it, to `take`."""
        root = unquote(urlsplit(_url(access, "")).path)
        web = self._web(access)

        def record(name: str, parts: contents.Record) -> None:
            found = _entry(parts, root) if name == "response" else None
            if found is not None:
                take(found)

        records = contents.XmlRecords(frozenset({"response"}), record)
        problems: list[adapter.ProviderProblem] = []

        async def feed(chunk: bytes) -> None:
            # A refusal comes with a body too, which is no multistatus.
            if not problems:
                try:
                    records.feed(chunk)
                except adapter.ProviderProblem as problem:
                    problems.append(problem)

        request = OutboundRequest(
            method="PROPFIND",
            url=_url(access, path, folder=depth > 0),
            headers={**web.headers, "Depth": str(depth), "Content-Type": "application/xml"},
            body=_WANTED,
            timeout_seconds=DOWNLOAD_SECONDS,
            max_bytes=adapter.MAX_DOWNLOAD_BYTES,
        )
        answer = await sent(self._outbound, request, feed)
        if answer.status != 207:
            raise web.refusal(answer)
        if problems:
            raise problems[0]
        records.feed(b"", last=True)

    def _resource(
        self, access: adapter.ProviderAccess, found: _Found
    ) -> external_resources.ProviderResource | None:
        mime_type = None if found.folder else contents.media_type(found.path, found.mime_type)
        kind = (
            external_resources.ResourceSurfaceKind.FOLDER
            if mime_type is None
            else contents.kind_of(mime_type)
        )
        return adapter.listed(
            externalType="folder" if found.folder else "file",
            externalId=found.path,
            name=contents.name_of(found.path),
            surfaceKind=kind.value,
            capabilities=contents.capabilities_of(kind),
            mimeType=mime_type,
            canonicalUrl=_url(access, found.path),
            parentExternalId=contents.parent_of(found.path),
            revision=found.revision,
        )

    def _web(self, access: adapter.ProviderAccess) -> Web:
        config = WebdavConnection.model_validate(access.config)
        headers = authentication(config.auth, secret_of(access, config.username))
        return Web(self._outbound, config.base_url, headers)


def _entry(parts: contents.Record, root: str) -> _Found | None:
    """A resource below the root; None for anything that a server lists besides."""
    href = contents.first_text(parts, "href")
    if href is None:
        return None
    place = unquote(urlsplit(href).path)
    # A server may list resources outside of the URL of the connection.
    if not place.startswith(root.rstrip("/")):
        return None
    path = place[len(root.rstrip("/")) :].strip("/")
    if any(part in {"", ".", ".."} for part in path.split("/")) and path:
        return None
    folder = contents.has_element(parts, "collection")
    moment, size = (
        contents.first_text(parts, name) for name in ("getlastmodified", "getcontentlength")
    )
    # Some servers send no ETag.
    revision = contents.first_text(parts, "getetag") or f"{moment}/{size}"
    return _Found(
        path, folder, contents.first_text(parts, "getcontenttype"), None if folder else revision
    )


def _url(access: adapter.ProviderAccess, path: str, *, folder: bool = False) -> str:
    base = str(access.config["baseUrl"]).rstrip("/")
    return f"{base}/{contents.quoted(path)}" + ("/" if folder and path else "")
