"""Bounds of secrets: names and sizes."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from models.core.base import Id

MAX_BYTES = 8 * 1024
_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"


def _bounded(value: str) -> str:
    if len(value.encode("utf-8", "replace")) > MAX_BYTES:
        raise ValueError(f"A secret has at most {MAX_BYTES // 1024} KiB.")
    return value


SecretName = Annotated[str, Field(pattern=_NAME)]
SecretValue = Annotated[str, Field(min_length=1, max_length=MAX_BYTES), AfterValidator(_bounded)]


def is_secret_name(text: str) -> bool:
    """True when this is a valid name of a secret."""
    return re.fullmatch(_NAME, text) is not None


def secret_place(workspace_id: Id, name: str) -> str:
    """The place that the sealed value of a secret is bound to."""
    return f"workspace_secret|{workspace_id}|{name}|sealed_value"
