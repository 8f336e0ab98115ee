"""Credentials of a config: they go in, and do not come out."""

from urllib.parse import urlsplit

from models.core.base import JsonObject
from models.core.credentials import GIVE_AGAIN, left_hidden, restored
from runtime.errors import ValidationError


def restored_config(config: JsonObject, before: JsonObject | None) -> JsonObject:
    """The config with what was shown hidden, from the one that is stored.

    Raises ValidationError for what is not stored, or was given for another origin: who changes the
    URL must not have it sent there.
    """
    known = before if before is not None and _origin(config) == _origin(before) else {}
    whole: JsonObject = restored(config, known)
    for place in left_hidden(whole):
        raise ValidationError.at(".".join(map(str, ("config", *place))), GIVE_AGAIN)
    return whole


def _origin(config: JsonObject) -> tuple[str, str]:
    parts = urlsplit(str(config.get("url")))
    return parts.scheme, parts.netloc
