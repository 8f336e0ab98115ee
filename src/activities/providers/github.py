"""The adapter of GitHub (REST API 2022-11-28): repositories, their files and issues."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers import web as provider_web
from activities.sources.requests import linked
from models.core.base import JsonObject
from models.sources.external_resources.rules import resources as external_resources
from runtime.outbound.messages import OutboundResponse

API = "https://api.github.com"
JSON = "application/vnd.github+json"
OBJECT = "application/vnd.github.object+json"
RAW = "application/vnd.github.raw+json"
MOST_ENTRIES = 1_000
"""Entries of a directory that its description holds; a tree holds them all."""

REPOSITORY, FOLDER, FILE, ISSUE = "repository", "folder", "file", "issue"


class _Place(NamedTuple):
    """The parts of an external id: `owner/name`, `owner/name/path` or `owner/name#number`."""

    owner: str
    name: str
    path: str = ""
    issue: str = ""

    @property
    def repository(self) -> str:
        return f"{self.owner}/{self.name}"


class _Github(provider_web.Web):
    @override
    def refusal(self, answer: OutboundResponse) -> adapter.ProviderProblem:
        """Too many requests are a 403 whose budget is used up, or that says how long to wait."""
        spent = answer.headers.get("x-ratelimit-remaining") == "0"
        if answer.status not in {403, 429} or not (spent or answer.retry_after is not None):
            return provider_web.refusal_of(answer)
        seconds, reset = answer.retry_after, answer.headers.get("x-ratelimit-reset", "")
        if seconds is None and reset.isascii() and reset.isdecimal() and len(reset) < 12:
            seconds = max(0.0, int(reset) - time.time())
        message = "GitHub's rate limit was reached."
        return adapter.ProviderProblem(
            adapter.ProblemKind.RATE_LIMITED, message, retry_after=seconds
        )


class GithubAdapter(provider_web.TokenAdapter):
    """Files are read from the default branch; a folder's revision is its tree."""

    api_url = API
    web = _Github
    headers: ClassVar[Mapping[str, str]] = {"Accept": JSON, "X-GitHub-Api-Version": "2022-11-28"}

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        web = self._web(access)
        await web.json(web.url("user"))

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        web = self._web(access)
        if listing.query is not None:
            return await self._search(web, listing)
        if listing.parent_external_id is None:
            return await _paged(web, web.url("user", "repos"), listing, _repository)
        place = _place(listing.parent_external_id)
        if listing.external_type == ISSUE:
            url = web.url("repos", place.owner, place.name, "issues")
            return await _paged(
                web, url, listing, lambda payload: _issue(place, payload), {"state": "all"}
            )
        return await self._folder(web, place, listing)

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        web, place = self._web(access), _place(resource.external_id)
        if place.issue:
            url = web.url("repos", place.owner, place.name, "issues", place.issue)
            entry = _issue(place, await web.json(url))
        elif place.path:
            payload = await web.json(_contents(web, place), headers={"Accept": OBJECT})
            entry = _entry(place, payload)
        else:
            entry = _repository(await web.json(web.url("repos", place.owner, place.name)))
        if entry is None:
            raise provider_web.no_such_resource()
        return entry

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        web, place = self._web(access), _place(resource.external_id)
        if resource.external_type == ISSUE:
            return contents.content_of(
                resource, contents.MARKDOWN, await self._issue_text(web, place)
            )
        mime_type = contents.media_type(resource.name, resource.mime_type)
        if resource.external_type != FILE or not contents.is_text(mime_type):
            return contents.link_to(resource)
        text = await web.text(_contents(web, place), headers={"Accept": RAW})
        return contents.content_of(resource, mime_type, text)

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        web, place = self._web(access), _place(resource.external_id)
        validators = {"revision": resource.revision} if resource.revision is not None else {}
        issue = resource.external_type == ISSUE
        mime_type = (
            contents.MARKDOWN if issue else contents.media_type(resource.name, resource.mime_type)
        )
        if validators and conditions == validators:
            return adapter.Downloaded(resource.name, mime_type, validators, unchanged=True)
        if issue:
            path.write_text(await self._issue_text(web, place))  # noqa: ASYNC240  # it is small
        else:
            await web.download(_contents(web, place), path, headers={"Accept": RAW})
        return adapter.Downloaded(resource.name, mime_type, validators)

    async def _search(
        self, web: provider_web.Web, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        if listing.external_type not in (None, REPOSITORY):
            return adapter.ResourcePage([])
        words = (listing.query or "").replace('"', " ").replace("\\", " ")
        query = {"q": f'"{words}" in:name user:@me fork:true'}
        return await _paged(web, web.url("search", "repositories"), listing, _repository, query)

    async def _folder(
        self, web: provider_web.Web, place: _Place, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        payload = await web.json(_contents(web, place), headers={"Accept": OBJECT})
        entries = provider_web.objects(payload.get("entries"))
        if payload.get("type") != "dir":
            raise adapter.ProviderProblem(
                adapter.ProblemKind.INVALID, "The resource is not a folder."
            )
        if len(entries) >= MOST_ENTRIES:
            sha = provider_web.text_of(payload.get("sha")) or "HEAD"
            url = web.url("repos", place.owner, place.name, "git", "trees", sha)
            entries = provider_web.objects((await web.json(url)).get("tree"))
        page = contents.FirstNames[external_resources.ProviderResource](listing)
        for entry in entries:
            made = _entry(place, {**entry, "path": _below(place, entry)})
            if made is not None:
                page.take(made.external_id, made.external_type, made)
        return page.page(lambda _, one: one)

    async def _issue_text(self, web: provider_web.Web, place: _Place) -> str:
        url = web.url("repos", place.owner, place.name, "issues", place.issue)
        payload = await web.json(url)
        title, body = (
            provider_web.text_of(payload.get("title")) or "",
            provider_web.text_of(payload.get("body")) or "",
        )
        return provider_web.shown_text(f"# {title}\n\n{body}\n")


async def _paged(
    web: provider_web.Web,
    url: str,
    listing: adapter.Listing,
    made: Callable[[JsonObject], external_resources.ProviderResource | None],
    query: Mapping[str, str] | None = None,
) -> adapter.ResourcePage:
    """One page of a list; the cursor is the number of the next."""
    asked = {**(query or {}), "per_page": str(listing.limit), "page": listing.cursor or "1"}
    answer = await web.send(url, query=asked)
    found = [one for one in map(made, _listed(answer)) if one is not None]
    kept = [one for one in found if listing.external_type in (None, one.external_type)]
    more = linked(answer.headers.get("link", ""), "next", url) is not None
    return adapter.ResourcePage(kept, str(int(asked["page"]) + 1) if more else None)


def _listed(answer: OutboundResponse) -> list[dict[str, Any]]:
    payload = provider_web.json_of(answer)
    if isinstance(payload, dict):
        payload = payload.get("items")
    if not isinstance(payload, list):
        raise adapter.ProviderProblem(
            adapter.ProblemKind.MALFORMED, "GitHub's response is not a list."
        )
    return provider_web.objects(payload)


def _place(external_id: str) -> _Place:
    repository, _, issue = external_id.partition("#")
    parts = contents.checked_path(repository).split("/", 2)
    if len(parts) < 2 or (issue and (len(parts) > 2 or not issue.isdecimal())):
        raise provider_web.no_such_resource()
    return _Place(parts[0], parts[1], parts[2] if len(parts) > 2 else "", issue)


def _contents(web: provider_web.Web, place: _Place) -> str:
    segments = place.path.split("/") if place.path else []
    return web.url("repos", place.owner, place.name, "contents", *segments)


def _below(place: _Place, entry: Mapping[str, Any]) -> str:
    """The path of an entry: a directory's says it whole, a tree's from the tree."""
    name = contents.name_of(str(entry.get("path") or ""))
    return f"{place.path}/{name}" if place.path else name


def _repository(payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    kind = external_resources.ResourceSurfaceKind.REPOSITORY
    return adapter.listed(
        externalType=REPOSITORY,
        externalId=payload.get("full_name"),
        name=payload.get("full_name"),
        surfaceKind=kind.value,
        capabilities=[
            *contents.capabilities_of(kind),
            external_resources.Capability.WATCH.value,
        ],
        canonicalUrl=payload.get("html_url"),
        revision=payload.get("pushed_at"),
        providerCreatedAt=payload.get("created_at"),
        providerModifiedAt=payload.get("updated_at"),
    )


def _entry(place: _Place, payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    """A file or folder, of a directory or of a tree; None for modules and links."""
    types = {"dir": FOLDER, "tree": FOLDER, "file": FILE, "blob": FILE}
    external_type, path = types.get(str(payload.get("type"))), str(payload.get("path") or "")
    if external_type is None or not path or payload.get("mode") == "120000":
        return None
    mime_type = contents.media_type(path) if external_type == FILE else None
    kind = (
        external_resources.ResourceSurfaceKind.FOLDER
        if mime_type is None
        else contents.kind_of(mime_type)
    )
    able = contents.capabilities_of(kind)
    parent = path.rpartition("/")[0]
    return adapter.listed(
        externalType=external_type,
        externalId=f"{place.repository}/{path}",
        name=contents.name_of(path),
        surfaceKind=kind.value,
        capabilities=[*able, external_resources.Capability.WATCH.value]
        if mime_type is None
        else able,
        mimeType=mime_type,
        canonicalUrl=payload.get("html_url"),
        parentExternalId=f"{place.repository}/{parent}" if parent else place.repository,
        revision=payload.get("sha"),
    )


def _issue(place: _Place, payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    number = payload.get("number")
    if not isinstance(number, int):
        return None
    return adapter.listed(
        externalType=ISSUE,
        externalId=f"{place.repository}#{number}",
        name=f"#{number} {payload.get('title') or ''}",
        surfaceKind=external_resources.ResourceSurfaceKind.DOCUMENT.value,
        capabilities=[one.value for one in contents.CONTENT],
        mimeType=contents.MARKDOWN,
        canonicalUrl=payload.get("html_url"),
        parentExternalId=place.repository,
        revision=payload.get("updated_at"),
        providerCreatedAt=payload.get("created_at"),
        providerModifiedAt=payload.get("updated_at"),
        metadata={"state": payload.get("state")},
    )
