"""API keys on the wire (interface, API key)."""

from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from models.core.access.rules import Scope
from models.core.base import Id, Input, Label, Moment, Nullable, Shape


class ApiKeyBody(Shape):
    """A key as listings show it."""

    id: Id
    workspace_id: Id
    name: str
    prefix: str
    scopes: list[Scope]
    bound_user_id: Nullable[Id]
    created_by_user_id: Nullable[Id]
    last_used_at: Nullable[Moment]
    expires_at: Nullable[Moment]
    revoked_at: Nullable[Moment]
    created_at: Moment
    updated_at: Moment


class IssuedApiKey(Shape):
    """The answer to a creation: the only place the secret is ever shown."""

    api_key: ApiKeyBody
    token: str


class RevokedApiKey(Shape):
    id: Id


def _written_out(value: object) -> object:
    """Numbers and numeric strings are no dates, though a lenient reader takes them for some."""
    if isinstance(value, str) and "T" not in value.upper():
        raise ValueError("Write the moment as 2030-01-31T12:00:00.000Z.")
    return value


Expiry = Annotated[AwareDatetime, BeforeValidator(_written_out), Field(strict=False)]


def _once_each(scopes: list[Scope]) -> list[Scope]:
    if len(set(scopes)) < len(scopes):
        raise ValueError("Give every scope once.")
    return scopes


GivenScopes = Annotated[
    list[Annotated[Scope, Field(strict=False)]],
    Field(min_length=1, max_length=len(Scope), json_schema_extra={"uniqueItems": True}),
    AfterValidator(_once_each),
]


class CreateApiKey(Input):
    """Name, scopes and expiry of a new key."""

    name: Label
    scopes: GivenScopes
    expires_at: Expiry | None = None
