"""An operator's settings of a provider: the client that the platform is to it, and its URLs."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, SecretStr
from pydantic.alias_generators import to_camel
from pydantic_settings import NoDecode

from runtime.callable_urls import url_problem


def _callable(text: str) -> str:
    problem = url_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


_Url = Annotated[str, AfterValidator(_callable)]


class ProviderSettings(BaseModel):
    """One provider, by camelCase keys in JSON.

    Without a client nobody can sign in to it by OAuth. The URLs stand for the provider's own.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    client_id: str | None = None
    client_secret: SecretStr | None = None
    """None for a public client, which proves itself by PKCE alone."""
    scopes: tuple[str, ...] | None = None
    """Permissions that users are asked for, instead of all that the adapter can use."""
    api_url: _Url | None = None
    authorization_url: _Url | None = None
    token_url: _Url | None = None
    revocation_url: _Url | None = None


def _parsed(value: object) -> dict[str, Any]:
    try:
        settings = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise ValueError(  # noqa: TRY004  # the one that Pydantic hears
            'must be a JSON object, such as {"github": {"clientId": "…", "clientSecret": "…"}}'
        )
    return settings


Providers = Annotated[dict[str, ProviderSettings], NoDecode, BeforeValidator(_parsed)]
"""The settings of providers, by their names; a variable holds JSON."""
