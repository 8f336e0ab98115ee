"""Headers of a config that hold a secret: they go in, and do not come out."""

from urllib.parse import urlsplit

from models.core.base import JsonObject
from models.core.http_inputs import SECRET_HEADERS
from runtime.errors import ValidationError

HIDDEN = "[redacted]"


def shown_config(config: JsonObject) -> JsonObject:
    """The config with the values of such headers hidden."""
    headers = config.get("headers") or {}
    hidden = {name: HIDDEN for name in headers if name.lower() in SECRET_HEADERS}
    return {**config, "headers": {**headers, **hidden}} if hidden else config


def restored_config(config: JsonObject, stored: JsonObject | None) -> JsonObject:
    """The config with the values of headers that were shown hidden, from the one that is stored.

    Raises ValidationError for one that is not stored, or was given for another origin: who changes
    the URL must not have it sent there.
    """
    headers = config.get("headers") or {}
    restored = {}
    for name, value in headers.items():
        if value != HIDDEN:
            continue
        known = ((stored or {}).get("headers") or {}).get(name)
        if known is None or _origin(config) != _origin(stored or {}):
            raise ValidationError.at(
                f"config.headers.{name}", "Give the header again, or name a secret in auth."
            )
        restored[name] = known
    return {**config, "headers": {**headers, **restored}} if restored else config


def _origin(config: JsonObject) -> tuple[str, str]:
    parts = urlsplit(str(config.get("url")))
    return parts.scheme, parts.netloc
