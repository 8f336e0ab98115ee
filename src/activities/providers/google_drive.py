"""The adapter of Google Drive (API v3), with what Google Docs, Sheets and Forms hold."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers import web as provider_web
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.forms import GOOGLE_FORM_TYPE as FORM
from models.sources.external_resources.rules.forms import HostedForm, NoFormError, google_form
from runtime.outbound.messages import OutboundResponse

API = "https://www.googleapis.com"
FORMS_API = "https://forms.googleapis.com"

_OWN = "application/vnd.google-apps."
FOLDER, DOCUMENT, SHEET = f"{_OWN}folder", f"{_OWN}document", f"{_OWN}spreadsheet"
SLIDES = f"{_OWN}presentation"

_KINDS = {
    FOLDER: external_resources.ResourceSurfaceKind.FOLDER,
    DOCUMENT: external_resources.ResourceSurfaceKind.DOCUMENT,
    SHEET: external_resources.ResourceSurfaceKind.SPREADSHEET,
    FORM: external_resources.ResourceSurfaceKind.FORM,
}
_TYPES = {FOLDER: "folder", DOCUMENT: "document", SHEET: "spreadsheet", FORM: "form"}
_READ_AS = {DOCUMENT: contents.MARKDOWN, SHEET: contents.CSV, SLIDES: "text/plain"}
"""The formats in which files are exported to be shown; of a workbook, its first sheet."""
_DOWNLOADED_AS = {DOCUMENT: contents.HTML, SHEET: contents.XLSX, SLIDES: "text/plain"}

_FIELDS = (
    "id,name,mimeType,parents,webViewLink,version,md5Checksum,createdTime,modifiedTime,trashed"
)
_LIMITS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded"})
_TOO_LARGE = "exportSizeLimitExceeded"


class _Google(provider_web.Web):
    @override
    def refusal(self, answer: OutboundResponse) -> adapter.ProviderProblem:
        """A 403 is a limit, or a document too large to be exported, if its reason says so."""
        reasons = set(_reasons(provider_web.json_of(answer))) if answer.status == 403 else set()
        if reasons & _LIMITS:
            message = "Google's rate limit was reached."
            kind = adapter.ProblemKind.RATE_LIMITED
            return adapter.ProviderProblem(kind, message, retry_after=answer.retry_after)
        if _TOO_LARGE in reasons:
            message = "The document is too large for Google to export."
            return adapter.ProviderProblem(adapter.ProblemKind.TOO_LARGE, message)
        return provider_web.refusal_of(answer)


class GoogleDriveAdapter(provider_web.TokenAdapter):
    """Files of My Drive and of shared drives that the account can see."""

    api_url = API
    web = _Google

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        web = self._web(access)
        await web.json(web.url("drive", "v3", "about"), query={"fields": "user(emailAddress)"})

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        web = self._web(access)
        query = {
            "q": _question(listing),
            "pageSize": str(listing.limit),
            "fields": f"nextPageToken,files({_FIELDS})",
            "supportsAllDrives": "true",
            "includeItemsFromAllDrives": "true",
        }
        if listing.query is None:
            query["orderBy"] = "folder,name_natural"
        if listing.cursor is not None:
            query["pageToken"] = listing.cursor
        payload = await web.json(web.url("drive", "v3", "files"), query=query)
        found = [_resource(one) for one in provider_web.objects(payload.get("files"))]
        return adapter.ResourcePage(
            [one for one in found if one][: listing.limit],
            provider_web.text_of(payload.get("nextPageToken")),
        )

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        web = self._web(access)
        query = {"fields": _FIELDS, "supportsAllDrives": "true"}
        payload = await web.json(_file(web, resource), query=query)
        made = None if payload.get("trashed") is True else _resource(payload)
        if made is None:
            raise provider_web.no_such_resource()
        return made

    @override
    async def watch(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        mark: str | None,
    ) -> adapter.Watched:
        """By the log of changes (Drive API, "Retrieve changes"), which is of all that is seen."""
        web = self._web(access)
        url, query = web.url("drive", "v3", "changes"), {"supportsAllDrives": "true"}
        if mark is not None:
            asked = {"pageToken": mark, "pageSize": "1", "includeItemsFromAllDrives": "true"}
            response = await web.send(
                url, query={**query, **asked}, accepted=(200, 400, 403, 404, 410)
            )
            found = provider_web.json_of(response) if response.status == 200 else None
            if isinstance(found, dict) and found.get("changes") == []:
                return adapter.Watched(
                    provider_web.text_of(found.get("newStartPageToken")) or mark, changed=False
                )
        start = await web.json(f"{url}/startPageToken", query=query)
        return adapter.Watched(provider_web.text_of(start.get("startPageToken")))

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        web, mime_type = self._web(access), resource.mime_type or ""
        if mime_type == FORM:
            payload = provider_web.object_of(await self._form(access, resource))
            return contents.content_of(resource, contents.JSON, _without_ids(payload))
        shown_as = _READ_AS.get(mime_type)
        if shown_as is not None:
            url, query = f"{_file(web, resource)}/export", {"mimeType": shown_as}
        else:
            shown_as = contents.media_type(resource.name, mime_type)
            url, query = _file(web, resource), {"alt": "media", "supportsAllDrives": "true"}
            if mime_type.startswith(_OWN) or not contents.is_text(shown_as):
                return contents.link_to(resource)
        return contents.content_of(resource, shown_as, await web.text(url, query=query))

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        web, mime_type = self._web(access), resource.mime_type or ""
        validators = {} if resource.revision is None else {"revision": resource.revision}
        saved_as = _DOWNLOADED_AS.get(mime_type) or contents.media_type(resource.name, mime_type)
        if validators and conditions == validators:
            return adapter.Downloaded(resource.name, saved_as, validators, unchanged=True)
        if mime_type in _DOWNLOADED_AS:
            url, query = f"{_file(web, resource)}/export", {"mimeType": saved_as}
        elif mime_type.startswith(_OWN):
            raise adapter.ProviderProblem(
                adapter.ProblemKind.UNSUPPORTED, "Google can't export this resource."
            )
        else:
            url, query = _file(web, resource), {"alt": "media", "supportsAllDrives": "true"}
        await web.download(url, path, query=query)
        return adapter.Downloaded(resource.name, saved_as, validators)

    @override
    async def form(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> HostedForm:
        if resource.mime_type != FORM:
            raise adapter.ProviderProblem(
                adapter.ProblemKind.UNSUPPORTED, "The resource is not a form."
            )
        try:
            return google_form(provider_web.object_of(await self._form(access, resource)))
        except NoFormError as error:
            raise adapter.ProviderProblem(adapter.ProblemKind.UNSUPPORTED, str(error)) from None

    async def _form(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> OutboundResponse:
        # A server that replaces Google's serves both APIs.
        web = self._web(access, FORMS_API if self._api_url == API else "")
        return await web.send(
            web.url("v1", "forms", resource.external_id), max_bytes=adapter.MAX_READ_BYTES
        )


def _reasons(payload: object) -> list[str]:
    error = payload.get("error") if isinstance(payload, dict) else None
    errors = error.get("errors") if isinstance(error, dict) else None
    return [str(one.get("reason")) for one in provider_web.objects(errors)]


def _question(listing: adapter.Listing) -> str:
    """A search query (Drive API, "Search query terms"), whose texts are quoted."""
    parts = ["trashed = false"]
    if listing.query is not None:
        parts.append(f"name contains {_quoted(listing.query)}")
    else:
        parts.append(f"{_quoted(listing.parent_external_id or 'root')} in parents")
    types = {name: mime_type for mime_type, name in _TYPES.items()}
    if listing.external_type == "file":
        parts += [f"mimeType != {_quoted(one)}" for one in _TYPES]
    elif listing.external_type is not None:
        parts.append(f"mimeType = {_quoted(types.get(listing.external_type, 'none'))}")
    return " and ".join(parts)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _file(web: provider_web.Web, resource: external_resources.ProviderResource) -> str:
    return web.url("drive", "v3", "files", resource.external_id)


def _without_ids(payload: Mapping[str, Any]) -> str:
    """A form as it is shown: JSON text of what it asks."""
    return json.dumps({name: payload[name] for name in ("info", "items") if name in payload})


def _resource(payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    mime_type = provider_web.text_of(payload.get("mimeType")) or ""
    kind = _KINDS.get(mime_type)
    if kind is None:
        own = mime_type.startswith(_OWN)
        kind = (
            external_resources.ResourceSurfaceKind.GENERIC if own else contents.kind_of(mime_type)
        )
    able = contents.capabilities_of(kind)
    if kind is external_resources.ResourceSurfaceKind.FOLDER:
        able = [*able, external_resources.Capability.WATCH.value]
    if kind is external_resources.ResourceSurfaceKind.GENERIC and mime_type not in _READ_AS:
        able = [one.value for one in contents.SHOWN]
    parents = payload.get("parents")
    return adapter.listed(
        externalType=_TYPES.get(mime_type, "file"),
        externalId=payload.get("id"),
        name=payload.get("name"),
        surfaceKind=kind.value,
        capabilities=able,
        mimeType=mime_type or None,
        canonicalUrl=payload.get("webViewLink"),
        parentExternalId=parents[0] if isinstance(parents, list) and parents else None,
        revision=payload.get("md5Checksum") or payload.get("version"),
        providerCreatedAt=payload.get("createdTime"),
        providerModifiedAt=payload.get("modifiedTime"),
    )
