"""Secrets on the wire: what they are called, never what they hold."""

from models.automation.secrets.rules import SecretValue
from models.core.base import Input, Moment, Nullable, Shape


class SecretBody(Shape):
    """A secret as everybody sees it."""

    name: str
    created_at: Moment
    updated_at: Moment


class SecretList(Shape):
    secrets: list[SecretBody]
    cursor: Nullable[str]


class PutSecret(Input):
    """Body of put secret."""

    value: SecretValue


class DeletedSecret(Shape):
    name: str
