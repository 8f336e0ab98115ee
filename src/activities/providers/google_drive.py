"""The adapter of Google Drive (API v3), with what Google Docs, Sheets and Forms hold."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from activities.providers.adapter import (
    MAX_READ_BYTES,
    Downloaded,
    Listing,
    ProblemKind,
    ProviderAccess,
    ProviderProblem,
    ReadContent,
    ResourcePage,
    Watched,
    listed,
)
from activities.providers.contents import (
    CSV,
    HTML,
    JSON,
    MARKDOWN,
    SHOWN,
    XLSX,
    capabilities_of,
    content_of,
    is_text,
    kind_of,
    link_to,
    media_type,
)
from activities.providers.web import (
    TokenAdapter,
    Web,
    json_of,
    no_such_resource,
    object_of,
    objects,
    refusal_of,
    text_of,
)
from models.sources.external_resources.rules.forms import GOOGLE_FORM_TYPE as FORM
from models.sources.external_resources.rules.forms import HostedForm, NoFormError, google_form
from models.sources.external_resources.rules.resources import (
    Capability,
    ProviderResource,
    ResourceSurfaceKind,
)
from runtime.outbound.messages import OutboundResponse

API = "https://www.googleapis.com"
FORMS_API = "https://forms.googleapis.com"

_OWN = "application/vnd.google-apps."
FOLDER, DOCUMENT, SHEET = f"{_OWN}folder", f"{_OWN}document", f"{_OWN}spreadsheet"
SLIDES = f"{_OWN}presentation"

_KINDS = {
    FOLDER: ResourceSurfaceKind.FOLDER,
    DOCUMENT: ResourceSurfaceKind.DOCUMENT,
    SHEET: ResourceSurfaceKind.SPREADSHEET,
    FORM: ResourceSurfaceKind.FORM,
}
_TYPES = {FOLDER: "folder", DOCUMENT: "document", SHEET: "spreadsheet", FORM: "form"}
_READ_AS = {DOCUMENT: MARKDOWN, SHEET: CSV, SLIDES: "text/plain"}
"""The formats in which files are exported to be shown; of a workbook, its first sheet."""
_DOWNLOADED_AS = {DOCUMENT: HTML, SHEET: XLSX, SLIDES: "text/plain"}

_FIELDS = (
    "id,name,mimeType,parents,webViewLink,version,md5Checksum,createdTime,modifiedTime,trashed"
)
_LIMITS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded"})
_TOO_LARGE = "exportSizeLimitExceeded"


class _Google(Web):
    @override
    def refusal(self, answer: OutboundResponse) -> ProviderProblem:
        """A 403 is a limit, or a document too large to be exported, if its reason says so."""
        reasons = set(_reasons(json_of(answer))) if answer.status == 403 else set()
        if reasons & _LIMITS:
            message = "Google's rate limit was reached."
            kind = ProblemKind.RATE_LIMITED
            return ProviderProblem(kind, message, retry_after=answer.retry_after)
        if _TOO_LARGE in reasons:
            message = "The document is too large for Google to export."
            return ProviderProblem(ProblemKind.TOO_LARGE, message)
        return refusal_of(answer)


class GoogleDriveAdapter(TokenAdapter):
    """Files of My Drive and of shared drives that the account can see."""

    api_url = API
    web = _Google

    @override
    async def check(self, access: ProviderAccess) -> None:
        web = self._web(access)
        await web.json(web.url("drive", "v3", "about"), query={"fields": "user(emailAddress)"})

    @override
    async def browse(self, access: ProviderAccess, listing: Listing) -> ResourcePage:
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
        found = [_resource(one) for one in objects(payload.get("files"))]
        return ResourcePage(
            [one for one in found if one][: listing.limit], text_of(payload.get("nextPageToken"))
        )

    @override
    async def describe(
        self, access: ProviderAccess, resource: ProviderResource
    ) -> ProviderResource:
        web = self._web(access)
        query = {"fields": _FIELDS, "supportsAllDrives": "true"}
        payload = await web.json(_file(web, resource), query=query)
        made = None if payload.get("trashed") is True else _resource(payload)
        if made is None:
            raise no_such_resource()
        return made

    @override
    async def watch(
        self, access: ProviderAccess, resource: ProviderResource, mark: str | None
    ) -> Watched:
        """By the log of changes (Drive API, "Retrieve changes"), which is of all that is seen."""
        web = self._web(access)
        url, query = web.url("drive", "v3", "changes"), {"supportsAllDrives": "true"}
        if mark is not None:
            asked = {"pageToken": mark, "pageSize": "1", "includeItemsFromAllDrives": "true"}
            response = await web.send(
                url, query={**query, **asked}, accepted=(200, 400, 403, 404, 410)
            )
            found = json_of(response) if response.status == 200 else None
            if isinstance(found, dict) and found.get("changes") == []:
                return Watched(text_of(found.get("newStartPageToken")) or mark, changed=False)
        start = await web.json(f"{url}/startPageToken", query=query)
        return Watched(text_of(start.get("startPageToken")))

    @override
    async def read(self, access: ProviderAccess, resource: ProviderResource) -> ReadContent:
        web, mime_type = self._web(access), resource.mime_type or ""
        if mime_type == FORM:
            payload = object_of(await self._form(access, resource))
            return content_of(resource, JSON, _without_ids(payload))
        shown_as = _READ_AS.get(mime_type)
        if shown_as is not None:
            url, query = f"{_file(web, resource)}/export", {"mimeType": shown_as}
        else:
            shown_as = media_type(resource.name, mime_type)
            url, query = _file(web, resource), {"alt": "media", "supportsAllDrives": "true"}
            if mime_type.startswith(_OWN) or not is_text(shown_as):
                return link_to(resource)
        return content_of(resource, shown_as, await web.text(url, query=query))

    @override
    async def download(
        self,
        access: ProviderAccess,
        resource: ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> Downloaded:
        web, mime_type = self._web(access), resource.mime_type or ""
        validators = {} if resource.revision is None else {"revision": resource.revision}
        saved_as = _DOWNLOADED_AS.get(mime_type) or media_type(resource.name, mime_type)
        if validators and conditions == validators:
            return Downloaded(resource.name, saved_as, validators, unchanged=True)
        if mime_type in _DOWNLOADED_AS:
            url, query = f"{_file(web, resource)}/export", {"mimeType": saved_as}
        elif mime_type.startswith(_OWN):
            raise ProviderProblem(ProblemKind.UNSUPPORTED, "Google can't export this resource.")
        else:
            url, query = _file(web, resource), {"alt": "media", "supportsAllDrives": "true"}
        await web.download(url, path, query=query)
        return Downloaded(resource.name, saved_as, validators)

    @override
    async def form(self, access: ProviderAccess, resource: ProviderResource) -> HostedForm:
        if resource.mime_type != FORM:
            raise ProviderProblem(ProblemKind.UNSUPPORTED, "The resource is not a form.")
        try:
            return google_form(object_of(await self._form(access, resource)))
        except NoFormError as error:
            raise ProviderProblem(ProblemKind.UNSUPPORTED, str(error)) from None

    async def _form(self, access: ProviderAccess, resource: ProviderResource) -> OutboundResponse:
        # A server that replaces Google's serves both APIs.
        web = self._web(access, FORMS_API if self._api_url == API else "")
        return await web.send(
            web.url("v1", "forms", resource.external_id), max_bytes=MAX_READ_BYTES
        )


def _reasons(payload: object) -> list[str]:
    error = payload.get("error") if isinstance(payload, dict) else None
    errors = error.get("errors") if isinstance(error, dict) else None
    return [str(one.get("reason")) for one in objects(errors)]


def _question(listing: Listing) -> str:
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


def _file(web: Web, resource: ProviderResource) -> str:
    return web.url("drive", "v3", "files", resource.external_id)


def _without_ids(payload: Mapping[str, Any]) -> str:
    """A form as it is shown: JSON text of what it asks."""
    return json.dumps({name: payload[name] for name in ("info", "items") if name in payload})


def _resource(payload: Mapping[str, Any]) -> ProviderResource | None:
    mime_type = text_of(payload.get("mimeType")) or ""
    kind = _KINDS.get(mime_type)
    if kind is None:
        own = mime_type.startswith(_OWN)
        kind = ResourceSurfaceKind.GENERIC if own else kind_of(mime_type)
    able = capabilities_of(kind)
    if kind is ResourceSurfaceKind.FOLDER:
        able = [*able, Capability.WATCH.value]
    if kind is ResourceSurfaceKind.GENERIC and mime_type not in _READ_AS:
        able = [one.value for one in SHOWN]
    parents = payload.get("parents")
    return listed(
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
