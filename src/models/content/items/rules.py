"""Kinds of items, the bounds of the tree, titles of copies (interface.md#item)."""

import json
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from models.core.access.rules import Scope
from models.core.values import children

TRASH_DAYS = 30
"""Days within which what was deleted can be restored (interface.md#trash)."""

MAX_TREE_DEPTH = 50
MAX_METADATA_BYTES = 64 * 1024
MAX_METADATA_DEPTH = 16
MAX_TITLE = 200


class ItemKind(StrEnum):
    FOLDER = "folder"
    PAGE = "page"
    NOTE = "note"
    DASHBOARD = "dashboard"
    CANVAS = "canvas"
    VIEW = "view"
    FORM = "form"
    DATABASE = "database"
    FILE = "file"
    DATA_SOURCE = "data_source"
    ACTION = "action"
    AUTOMATION = "automation"
    EXTERNAL_RESOURCE = "external_resource"


class AccessMode(StrEnum):
    """`open` inherits from the parent; `restricted` needs a grant."""

    OPEN = "open"
    RESTRICTED = "restricted"


WRITE_SCOPES: Mapping[ItemKind, Scope] = MappingProxyType(
    {
        ItemKind.FOLDER: Scope.RESOURCES_WRITE,
        ItemKind.PAGE: Scope.SURFACES_WRITE,
        ItemKind.NOTE: Scope.SURFACES_WRITE,
        ItemKind.DASHBOARD: Scope.SURFACES_WRITE,
        ItemKind.CANVAS: Scope.CANVAS_WRITE,
        ItemKind.VIEW: Scope.VIEWS_WRITE,
        ItemKind.FORM: Scope.VIEWS_WRITE,
        ItemKind.DATABASE: Scope.DATABASES_WRITE,
        ItemKind.FILE: Scope.FILES_WRITE,
        ItemKind.DATA_SOURCE: Scope.DATA_SOURCES_WRITE,
        ItemKind.ACTION: Scope.ACTIONS_WRITE,
        ItemKind.AUTOMATION: Scope.AUTOMATIONS_WRITE,
        ItemKind.EXTERNAL_RESOURCE: Scope.INTEGRATIONS_WRITE,
    }
)
"""The scope that writing an item of a kind needs beside resources:write.

A form is a way of looking at its database, as a view is; edit access to that database is asked
for by itself, and no field is made with it.

See interface.md#scopes-of-item-kinds.
"""


def metadata_problem(value: Mapping[str, Any]) -> str | None:
    """The reason why an object cannot be an item's metadata, or None."""
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_METADATA_BYTES:
        return f"is larger than {MAX_METADATA_BYTES // 1024} KiB"
    level: list[Any] = [value]
    for _ in range(MAX_METADATA_DEPTH):
        level = [child for one in level for child in children(one)]
    return f"is nested deeper than {MAX_METADATA_DEPTH} levels" if level else None


_COPY = re.compile(r" copy(?: [0-9]{1,6})?$")


def copy_stem(title: str) -> str:
    """The beginning of the titles of an item's copies: `Plan copy` for `Plan` and `Plan copy 3`."""
    return f"{_COPY.sub('', title)[: MAX_TITLE - 12]} copy"


def copy_title(title: str, titles: Collection[str]) -> str:
    """`<title> copy`, or `<title> copy 2`, `<title> copy 3`, … if a sibling is called that."""
    stem = copy_stem(title)
    candidate, number = stem, 1
    while candidate in titles:
        number += 1
        candidate = f"{stem} {number}"
    return candidate
