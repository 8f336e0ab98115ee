"""The adapter of any server that lists its resources as `docs/providers.md` describes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from activities.providers import adapter, contents
from activities.providers.web import Web, object_of, objects, secret_of, text_of
from models.sources.connections.providers import HttpConnection
from models.sources.external_resources.rules import forms
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.forms import GOOGLE_FORM_TYPE as GOOGLE_FORM
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import authentication

_KINDS = frozenset(one.value for one in external_resources.ResourceSurfaceKind)
_ABLE = frozenset(one.value for one in external_resources.Capability) - {"search"}
_OPTIONAL = (
    "mimeType",
    "canonicalUrl",
    "parentExternalId",
    "revision",
    "providerCreatedAt",
    "providerModifiedAt",
    "metadata",
)


class HttpAdapter(adapter.Adapter):
    """`GET resources`, `GET resources/{id}` and `GET resources/{id}/content` below the base URL."""

    def __init__(self, outbound: OutboundClient) -> None:
        self._outbound = outbound

    @override
    async def check(self, access: adapter.ProviderAccess) -> None:
        await self.browse(access, adapter.Listing(limit=1))

    @override
    async def browse(
        self, access: adapter.ProviderAccess, listing: adapter.Listing
    ) -> adapter.ResourcePage:
        web = self._web(access)
        parameters = {
            "parent": listing.parent_external_id,
            "type": listing.external_type,
            "query": listing.query,
            "limit": str(listing.limit),
            "cursor": listing.cursor,
        }
        query = {name: value for name, value in parameters.items() if value is not None}
        payload = await web.json(web.url("resources"), query=query)
        if not isinstance(payload.get("resources"), list):
            raise adapter.ProviderProblem(
                adapter.ProblemKind.MALFORMED, "The response of the server has no `resources`."
            )
        found = [_resource(one) for one in objects(payload["resources"])[: listing.limit]]
        return adapter.ResourcePage([one for one in found if one], text_of(payload.get("cursor")))

    @override
    async def describe(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> external_resources.ProviderResource:
        web = self._web(access)
        found = _resource(await web.json(web.url("resources", resource.external_id)))
        if found is None or found.external_id != resource.external_id:
            raise adapter.ProviderProblem(
                adapter.ProblemKind.MALFORMED, "The server returned another resource."
            )
        return found

    @override
    async def read(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> adapter.ReadContent:
        if external_resources.Capability.READ not in resource.capabilities:
            return contents.link_to(resource)
        web = self._web(access)
        answer = await web.send(self._content(web, resource))
        declared = answer.content_type.media_type or resource.mime_type
        mime_type = contents.media_type(resource.name, declared)
        text = answer.shown_text(mime_type) if contents.is_text(mime_type) else None
        return (
            contents.link_to(resource)
            if text is None
            else contents.content_of(resource, mime_type, text)
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
        return await contents.fetch_file(
            web, resource, self._content(web, resource), path, conditions
        )

    @override
    async def form(
        self, access: adapter.ProviderAccess, resource: external_resources.ProviderResource
    ) -> forms.HostedForm:
        if resource.surface_kind is not external_resources.ResourceSurfaceKind.FORM:
            raise adapter.ProviderProblem(
                adapter.ProblemKind.UNSUPPORTED, "The resource is not a form."
            )
        web = self._web(access)
        document = object_of(await web.send(self._content(web, resource)))
        try:
            return (forms.google_form if resource.mime_type == GOOGLE_FORM else forms.json_form)(
                document
            )
        except forms.NoFormError as error:
            raise adapter.ProviderProblem(adapter.ProblemKind.UNSUPPORTED, str(error)) from None

    def _content(self, web: Web, resource: external_resources.ProviderResource) -> str:
        return web.url("resources", resource.external_id, "content")

    def _web(self, access: adapter.ProviderAccess) -> Web:
        config = HttpConnection.model_validate(access.config)
        headers = authentication(
            config.auth, secret_of(access, config.username), config.header_name
        )
        return Web(self._outbound, config.base_url, headers)


def _resource(payload: Mapping[str, Any]) -> external_resources.ProviderResource | None:
    """The resource a server describes, with only the capabilities that can be used here."""
    surface = payload.get("surfaceKind")
    kind = surface if isinstance(surface, str) and surface in _KINDS else "generic"
    able = payload.get("capabilities")
    if not isinstance(able, list):
        able = contents.capabilities_of(external_resources.ResourceSurfaceKind(kind))
    return adapter.listed(
        externalType=payload.get("externalType", kind),
        externalId=payload.get("externalId"),
        name=payload.get("name"),
        surfaceKind=kind,
        capabilities=[one for one in dict.fromkeys(map(str, able)) if one in _ABLE],
        **{name: payload.get(name) for name in _OPTIONAL},
    )
