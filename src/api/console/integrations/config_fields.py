"""The fields of a form for the config of a connection, made from the schema of its provider."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from models.core.base import JsonObject
from models.sources.connections.providers import PROVIDERS, ProviderName
from models.sources.connections.shapes import ConnectionDetail

PREFIX = "config."
SECRET = "secret."  # noqa: S105  # how the names of fields begin whose text is not shown again
_WORD = re.compile(r"[A-Z]?[a-z]+")
_CAPITALS = frozenset({"url", "id"})
_LINES = 3


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One key of a config as a person fills it in: a choice, some lines, a number or a text."""

    key: str
    label: str
    default: str
    options: Sequence[tuple[str, str]] = ()
    rows: int = 0
    type: str = "text"
    attributes: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the field, which is also where a fault of it is told."""
        return PREFIX + self.key


@cache
def config_fields(provider: ProviderName) -> Sequence[ConfigField]:
    """The fields for the config of a connection to a provider."""
    schema = PROVIDERS[provider].config.model_json_schema(by_alias=True)
    example = config_example(provider)
    needed = schema.get("required", [])
    return [
        _field(key, _present(part), key in needed, example.get(key))
        for key, part in schema.get("properties", {}).items()
    ]


def filled_config_fields(connection: ConnectionDetail) -> Sequence[ConfigField]:
    """The fields for the config of a connection, as it is stored."""
    return [
        replace(one, default=_text(connection.config[one.key]))
        if one.key in connection.config
        else one
        for one in config_fields(connection.provider)
    ]


@cache
def config_example(provider: ProviderName) -> JsonObject:
    """A config of a connection to a provider, as its documentation shows it."""
    schema = PROVIDERS[provider].config.model_json_schema(by_alias=True)
    example: JsonObject = next(iter(schema.get("examples", [])), {})
    return example


def config_of(provider: ProviderName, texts: Mapping[str, str]) -> JsonObject:
    """The config that the fields of a form stand for; an unknown field stays, to be refused."""
    known = {one.name: one for one in config_fields(provider)}
    return {
        name.removeprefix(PREFIX): _value(known.get(name), text)
        for name, text in texts.items()
        if name.startswith(PREFIX)
    }


def credentials_of(texts: Mapping[str, str]) -> dict[str, str]:
    """The credentials that were typed into a form, by their names."""
    return {
        name.removeprefix(SECRET): text for name, text in texts.items() if name.startswith(SECRET)
    }


def words(key: str) -> str:
    """A key as people read it: `baseUrl` → `Base URL`."""
    parts = [part.lower() for part in _WORD.findall(key)]
    shown = [part.upper() if part in _CAPITALS else part for part in parts]
    return " ".join([shown[0][:1].upper() + shown[0][1:], *shown[1:]]) if shown else key


def _present(part: JsonObject) -> JsonObject:
    """The schema of a value that is there, of one that may be absent."""
    choices = [one for one in part.get("anyOf", []) if one.get("type") != "null"]
    return {**part, **choices[0]} if choices else part


def _field(key: str, part: JsonObject, needed: bool, example: object) -> ConfigField:
    default = part.get("default")
    text = "" if default is None else str(default)
    options = [(one, one) for one in part.get("enum", [])]
    if options or part.get("type") == "array":
        return ConfigField(key, words(key), text, options, rows=0 if options else _LINES)
    attributes: dict[str, object] = {"autocomplete": "off", "spellcheck": "false"}
    attributes |= {"required": True} if needed else {}
    attributes |= {} if example is None else {"placeholder": example}
    if part.get("type") == "integer":
        attributes |= {"min": part.get("minimum"), "max": part.get("maximum")}
        return ConfigField(key, words(key), text, type="number", attributes=attributes)
    return ConfigField(key, words(key), text, attributes=attributes)


def _text(value: object) -> str:
    """A value of a config as its field shows it."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _value(kind: ConfigField | None, text: str) -> object:
    if kind is not None and kind.rows:
        return [line for line in text.split("\n") if line]
    if kind is not None and kind.type == "number" and re.fullmatch(r"-?[0-9]{1,9}", text):
        return int(text)
    return text
