"""The adapter of buckets: Amazon S3, and what speaks its protocol.

Requests are signed by botocore (AWS Signature Version 4) and sent by the client of all outbound
calls.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers.web import Web, no_such_resource, refusal_of
from models.sources.connections.providers import S3Connection
from models.sources.external_resources.rules import resources as external_resources
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundResponse

_CODES = {
    "InvalidAccessKeyId": adapter.ProblemKind.AUTH,
    "SignatureDoesNotMatch": adapter.ProblemKind.AUTH,
    "ExpiredToken": adapter.ProblemKind.AUTH,
    "InvalidToken": adapter.ProblemKind.AUTH,
    "SlowDown": adapter.ProblemKind.RATE_LIMITED,
    "PermanentRedirect": adapter.ProblemKind.INVALID,
    "AuthorizationHeaderMalformed": adapter.ProblemKind.INVALID,
}
_SAYS = {
    adapter.ProblemKind.AUTH: (
        "The server of the bucket rejected the credentials of the connection."
    ),
    adapter.ProblemKind.RATE_LIMITED: "The rate limit of the bucket was reached.",
    adapter.ProblemKind.INVALID: "The bucket is in a different region than in the connection.",
}


WATCHED_PAGES, WATCHED_KEYS = 20, 1_000
"""Pages of a listing that is compared, and the keys of one: S3 gives no more at once."""


class S3Adapter(adapter.Adapter):
    """Objects by their keys; each part before a slash is a folder."""

    def __init__(self, outbound: OutboundClient) -> None:
        self._outbound = outbound

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        await self._list(access, "", None, 1)

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        parent = contents.checked_path(listing.parent_external_id)
        prefix = f"{parent}/" if parent else ""
        found = await self._list(access, prefix, listing.cursor, listing.limit)
        wanted = listing.external_type
        resources = [made for one in found.records if (made := found.resource(*one)) is not None]
        return adapter.ResourcePage(
            [one for one in resources if wanted in (None, one.external_type)], found.cursor
        )

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        path, entry = contents.checked_path(resource.external_id), None
        if resource.external_type == "folder":
            found = await self._list(access, f"{path}/", None, 1)
            if found.records or not path:
                entry = _folder(path)
        else:
            answer = await self._request(access, path, method="HEAD")
            entry = _file(path, _headers(answer))
        if entry is None:
            raise no_such_resource()
        return entry

    @override
    async def watch(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        mark: str | None,
    ) -> adapter.Watched:
        """By a digest of all keys below with their ETags, as far as a mount would list them."""
        path, digest, cursor = contents.checked_path(resource.external_id), hashlib.sha256(), None
        below = f"{path}/" if path else ""
        for _ in range(WATCHED_PAGES):
            found = await self._list(access, below, cursor, WATCHED_KEYS, deep=True)
            for _, record in found.records:
                key, tag = (contents.first_text(record, name) for name in ("Key", "ETag"))
                digest.update(f"{key}\0{tag}\0".encode())
            cursor = found.cursor
            if cursor is None:
                return adapter.Watched(digest.hexdigest(), changed=digest.hexdigest() != mark)
        # Too many keys to compare: the listing itself then finds what has changed.
        return adapter.Watched(None)

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        mime_type = contents.media_type(resource.name, resource.mime_type)
        if resource.external_type == "folder" or not contents.is_text(mime_type):
            return contents.link_to(resource)
        web, url = self._signed(access, _key(access, contents.checked_path(resource.external_id)))
        return contents.content_of(resource, mime_type, await web.text(url))

    @override
    async def download(
        self,
        access: adapter.ProviderAccess,
        resource: external_resources.ProviderResource,
        path: Path,
        conditions: Mapping[str, str],
    ) -> adapter.Downloaded:
        web, url = self._signed(access, _key(access, contents.checked_path(resource.external_id)))
        return await contents.fetch_file(web, resource, url, path, conditions)

    async def _list(
        self,
        access: adapter.ProviderAccess,
        below: str,
        cursor: str | None,
        limit: int,
        *,
        deep: bool = False,
    ) -> "_Listed":
        """ListObjectsV2: the keys and common prefixes directly below a prefix, or all keys."""
        prefix = _config(access).prefix
        asked = {"list-type": "2", "max-keys": str(limit), "prefix": prefix + below}
        if not deep:
            asked["delimiter"] = "/"
        if cursor is not None:
            asked["continuation-token"] = cursor
        web, url = self._signed(access, "", asked)
        answer = await web.send(url)
        found = _Listed(prefix, prefix + below)
        records = contents.XmlRecords(frozenset({"Contents", "CommonPrefixes"}), found.take)
        # Megabytes of XML would stop the event loop.
        await asyncio.to_thread(records.feed, answer.body, last=True)
        return found

    async def _request(
        self, access: adapter.ProviderAccess, path: str, method: str = "GET"
    ) -> OutboundResponse:
        web, url = self._signed(access, _key(access, path), method=method)
        return await web.send(url, method=method)

    def _signed(
        self,
        access: adapter.ProviderAccess,
        key: str,
        query: Mapping[str, str] | None = None,
        method: str = "GET",
    ) -> tuple[Web, str]:
        """The URL of a request, and its headers with the signature."""
        config = _config(access)
        url = f"{_bucket_url(config)}/{contents.quoted(key)}"
        if query:
            url += "?" + urlencode(sorted(query.items()), quote_via=quote, safe="~")
        credentials = Credentials(
            access.credentials["accessKeyId"], access.credentials["secretAccessKey"]
        )
        request = AWSRequest(method=method, url=url)
        S3SigV4Auth(credentials, "s3", config.region).add_auth(request)
        return _Signed(self._outbound, url, dict(request.headers.items())), url


class _Signed(Web):
    """Refusals of S3 have a code in their body."""

    @override
    def refusal(self, answer: OutboundResponse) -> adapter.ProviderProblem:
        codes: list[str] = []

        def take(name: str, record: contents.Record) -> None:
            if name == "Code":
                codes.append(record[0][1])

        try:
            contents.XmlRecords(frozenset(), take).feed(answer.body, last=True)
        except adapter.ProviderProblem:
            # The body of a refusal may be anything; its status then decides.
            codes.clear()
        kind = next((_CODES[code] for code in codes if code in _CODES), None)
        # S3 redirects to the region of a bucket, for which another signature is needed.
        if answer.status == 301:
            kind = adapter.ProblemKind.INVALID
        if kind is None:
            return refusal_of(answer)
        return adapter.ProviderProblem(kind, _SAYS[kind], retry_after=answer.retry_after)


class _Listed:
    """One answer of a listing."""

    def __init__(self, prefix: str, below: str) -> None:
        self._prefix = prefix
        self._below = below
        self.records: list[tuple[str, contents.Record]] = []
        self.cursor: str | None = None

    def take(self, name: str, record: contents.Record) -> None:
        if name == "NextContinuationToken":
            self.cursor = record[0][1] or None
        elif name in {"Contents", "CommonPrefixes"}:
            self.records.append((name, record))

    def resource(
        self, name: str, record: contents.Record
    ) -> external_resources.ProviderResource | None:
        """The resource of a record; None for the folder itself, and for keys that are no paths."""
        key = contents.first_text(record, "Prefix" if name == "CommonPrefixes" else "Key") or ""
        if not key.startswith(self._below) or key == self._below:
            return None
        try:
            path = contents.checked_path(key[len(self._prefix) :])
        except adapter.ProviderProblem:
            return None
        if name == "CommonPrefixes":
            return _folder(path)
        if key.endswith("/"):
            return None
        return _file(path, {name: text for name, text in record if text})


def _folder(path: str) -> external_resources.ProviderResource | None:
    kind = external_resources.ResourceSurfaceKind.FOLDER
    return adapter.listed(
        externalType="folder",
        externalId=path,
        name=contents.name_of(path),
        surfaceKind=kind.value,
        capabilities=[
            *contents.capabilities_of(kind),
            external_resources.Capability.WATCH.value,
        ],
        parentExternalId=contents.parent_of(path),
    )


def _file(path: str, payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    mime_type = contents.media_type(path, payload.get("ContentType"))
    kind = contents.kind_of(mime_type)
    return adapter.listed(
        externalType="file",
        externalId=path,
        name=contents.name_of(path),
        surfaceKind=kind.value,
        capabilities=contents.capabilities_of(kind),
        mimeType=mime_type,
        parentExternalId=contents.parent_of(path),
        revision=payload.get("ETag"),
        providerModifiedAt=payload.get("LastModified"),
    )


def _headers(answer: OutboundResponse) -> dict[str, str]:
    names = {"ContentType": "content-type", "ETag": "etag", "LastModified": "last-modified"}
    return {
        name: answer.headers[header] for name, header in names.items() if header in answer.headers
    }


def _config(access: adapter.ProviderAccess) -> S3Connection:
    return S3Connection.model_validate(access.config)


def _key(access: adapter.ProviderAccess, path: str) -> str:
    if not path:
        raise no_such_resource()
    return _config(access).prefix + path


def _bucket_url(config: S3Connection) -> str:
    """By its path where the server is named, else by its host, as AWS wants it."""
    if config.endpoint is not None:
        return f"{config.endpoint.rstrip('/')}/{config.bucket}"
    # The wildcard certificate of AWS does not cover a host with further dots.
    if "." in config.bucket:
        return f"https://s3.{config.region}.amazonaws.com/{config.bucket}"
    return f"https://{config.bucket}.s3.{config.region}.amazonaws.com"
