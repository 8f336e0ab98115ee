"""The kinds of items that imports make."""

from enum import StrEnum

from models.content.items.rules import ItemKind


class ImportedKind(StrEnum):
    FOLDER = "folder"
    PAGE = "page"
    FILE = "file"
    DATABASE = "database"

    @property
    def item_kind(self) -> ItemKind:
        return ItemKind(self.value)
