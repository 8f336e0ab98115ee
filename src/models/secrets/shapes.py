"""Secrets on the wire: what they are called, never what they hold."""

from models.base import Input, Moment, Shape
from models.secrets.rules import SecretValue


class SecretBody(Shape):
    """A secret as everybody sees it."""

    name: str
    created_at: Moment
    updated_at: Moment


class SecretList(Shape):
    secrets: list[SecretBody]
    cursor: str | None


class PutSecret(Input):
    """Body of put secret."""

    value: SecretValue


class DeletedSecret(Shape):
    name: str
