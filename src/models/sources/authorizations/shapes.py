"""Authorizations on the wire."""

from typing import Annotated

from pydantic import Field, model_validator

from models.core.base import Input, InputId, Label, Moment, Shape, example
from models.sources.connections.providers import ProviderName

_Secret = Annotated[str, Field(min_length=1, max_length=4_096)]


class StartAuthorization(Input):
    """Body of start authorization: the connection to make, or the one to authorize anew.

    `label` and `shared` are as in create connection.
    """

    model_config = example({"provider": "github", "label": "Our repositories"})

    provider: Annotated[ProviderName | None, Field(strict=False)] = None
    label: Label | None = None
    shared: bool = False
    connection_id: InputId | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "StartAuthorization":
        if self.connection_id is None:
            if self.provider is None or self.label is None:
                raise ValueError("name a provider and a label, or a connectionId")
        elif self.model_fields_set != {"connection_id"}:
            raise ValueError("connectionId stands alone: the connection stays as it is")
        return self


class StartedAuthorization(Shape):
    """Send the user to `authorizationUrl` before `expiresAt`; they come back with `state`."""

    authorization_url: str
    state: str
    redirect_uri: str
    expires_at: Moment


class FinishAuthorization(Input):
    """Body of finish authorization: what the provider sent the user back with.

    `error` stands for `code` where the user or the provider refused (RFC 6749, 4.1.2.1).
    """

    model_config = example({"state": "af0ifjsldkj", "code": "SplxlOBeZQQYbYS6WxSbIA"})

    state: _Secret
    code: _Secret | None = None
    error: _Secret | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "FinishAuthorization":
        if (self.code is None) is (self.error is None):
            raise ValueError("either code or error, as the provider gave it")
        return self
