"""What an item is (interface, Item)."""

from enum import StrEnum


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
    """`open` inherits from the parent; `restricted` needs a grant (decisions C4)."""

    OPEN = "open"
    RESTRICTED = "restricted"
