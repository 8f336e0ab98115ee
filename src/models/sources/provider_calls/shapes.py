"""Questions to providers, and their answers, on the wire (interface; decisions C13)."""

from typing import Annotated, Any

from pydantic import Field

from models.core.base import (
    EXAMPLE_ID,
    Input,
    InputId,
    JsonObject,
    Moment,
    Nullable,
    Shape,
    example,
)
from models.core.documented import documented_as
from models.sources.external_resources.rules.resources import (
    ExternalId,
    ProviderResource,
    ReadFormat,
)

EXAMPLE_RESOURCE: JsonObject = {
    "externalType": "document",
    "externalId": "welcome",
    "name": "Welcome.md",
    "surfaceKind": "document",
    "capabilities": ["read", "mount", "import"],
}


class BrowseConnection(Input):
    """Body of browse: the resources below one, else those at the top; `query` finds by name."""

    model_config = example({"connectionId": EXAMPLE_ID, "limit": 50})

    connection_id: InputId
    parent_external_id: ExternalId | None = None
    external_type: ExternalId | None = None
    query: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    limit: Annotated[int, Field(ge=1)] = 30
    cursor: Annotated[str, Field(max_length=8_192)] | None = None


class BrowsedResources(Shape):
    """One page of a listing."""

    resources: list[Annotated[JsonObject, documented_as("ProviderResource")]]
    cursor: Nullable[str]


class NamedResource(Input):
    """A resource of a connection, as browse gave it."""

    model_config = example({"connectionId": EXAMPLE_ID, "resource": EXAMPLE_RESOURCE})

    connection_id: InputId
    resource: ProviderResource


class ResourceContent(Shape):
    """The content of a resource; a `link` has none, and says where it is."""

    format: ReadFormat
    content: Nullable[Any]
    revision: str | None = None
    read_only: bool
    fallback_url: str | None = None


class ConnectionTest(Shape):
    """The result of testing a connection; `message` says why it does not work."""

    ok: bool
    message: str | None = None
    checked_at: Moment
