"""Marks that stand for secrets in a node's parameters until the moment they are sent."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from models.automation.automations.rules.graph.kinds import NodeKind, shorten
from models.core.base import JsonObject

SENDERS = frozenset({NodeKind.HTTP_REQUEST, NodeKind.SEND_EMAIL, NodeKind.SEND_WEBHOOK})
"""Kinds whose parameters are for somebody outside. An action's input is kept with its run, so the
secrets an action sends are named by its own config."""

SECRETS_LEAVE = "Only nodes and steps that call or write to somebody outside may use secrets."


class SecretMark(str):
    """The text a run shows in place of a secret.

    The effect that sends it puts the value there. Data cannot forge a mark: its text alone is none.
    """

    __slots__ = ()

    @classmethod
    def of(cls, name: str) -> "SecretMark":
        """The mark of the secret of that name."""
        return cls(f"[secret {name}]")

    @property
    def name(self) -> str:
        return self.removeprefix("[secret ").removesuffix("]")


def no_secret(name: str) -> str:
    """The error message for a name that no secret of the workspace has."""
    return f'There is no secret "{shorten(name)}".'


def marked_names(value: object) -> Iterator[str]:
    """The names of the secrets whose marks stand in a JSON value."""
    if isinstance(value, SecretMark):
        yield value.name
    elif isinstance(value, dict):
        for item in value.values():
            yield from marked_names(item)
    elif isinstance(value, list):
        for item in value:
            yield from marked_names(item)


def revealed(parameters: JsonObject, secrets: Mapping[str, str]) -> JsonObject:
    """The parameters with the secrets in place of their marks."""
    return {key: _revealed(item, secrets) for key, item in parameters.items()}


def _revealed(value: JsonValue, secrets: Mapping[str, str]) -> JsonValue:
    if isinstance(value, SecretMark):
        return secrets[value.name]
    if isinstance(value, dict):
        return {key: _revealed(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_revealed(item, secrets) for item in value]
    return value
