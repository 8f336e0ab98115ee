"""Connections on the wire: whom they reach, never what they sign in with."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, JsonObject, Label, Moment, Shape, example
from models.core.pagination import Listed
from models.sources.connections.providers import MAX_CREDENTIAL, ProviderName
from models.sources.external_resources.rules.resources import Capability

_Credential = Annotated[str, Field(min_length=1, max_length=MAX_CREDENTIAL)]
Credentials = Annotated[dict[str, _Credential], Field(max_length=10, default_factory=dict)]


class ProviderDetail(Shape):
    """A provider that can be connected to; `credentials` are the names of what it needs.

    `enabled` says whether its `feature` is on in the workspace.
    """

    provider: ProviderName
    label: str
    description: str
    credentials: list[str]
    capabilities: list[Capability]
    feature: str
    enabled: bool


class ProviderList(Listed):
    providers: list[ProviderDetail]


class SwitchProvider(Input):
    """Body of switch provider."""

    model_config = example({"enabled": False})

    enabled: bool


class CreateConnection(Input):
    """Body of create connection; `credentials` are stored encrypted and never returned.

    Without `shared` only who makes it sees and names it.
    """

    provider: Annotated[ProviderName, Field(strict=False)]
    label: Label
    config: Annotated[JsonObject, Field(default_factory=dict)]
    credentials: Credentials
    shared: bool = False


class UpdateConnection(Input):
    """Body of update connection; `config` and `credentials` are replaced as a whole.

    A new config needs the credentials again, so that they are not sent to another server.
    """

    label: Annotated[Label, Field(default="")]
    config: Annotated[JsonObject, Field(default_factory=dict)]
    credentials: Credentials
    shared: bool = False


class ConnectionDetail(Shape):
    id: Id
    workspace_id: Id
    provider: ProviderName
    label: str
    config: JsonObject
    shared: bool
    created_by_user_id: Id
    created_at: Moment
    updated_at: Moment


class ConnectionList(Listed):
    connections: list[ConnectionDetail]
