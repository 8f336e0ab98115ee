"""How a record page is laid out (interface, recordLayout; defaults of decisions C5)."""

from enum import StrEnum
from typing import Any


class PageWidth(StrEnum):
    NARROW = "narrow"
    STANDARD = "standard"
    WIDE = "wide"
    FULL = "full"


class PropertyDensity(StrEnum):
    COMPACT = "compact"
    COMFORTABLE = "comfortable"
    SPACIOUS = "spacious"


class ContentPosition(StrEnum):
    BELOW = "below"
    ABOVE = "above"
    SIDE = "side"
    HIDDEN = "hidden"


class RelationViewPosition(StrEnum):
    SECTION = "section"
    TAB = "tab"
    SIDE = "side"
    HIDDEN = "hidden"


def default_layout() -> dict[str, Any]:
    """The layout of a database nobody has arranged yet."""
    return {
        "version": 1,
        "pageWidth": PageWidth.STANDARD.value,
        "propertyColumns": 1,
        "propertyDensity": PropertyDensity.COMFORTABLE.value,
        "propertyOrder": [],
        "hiddenFieldKeys": [],
        "sections": [],
        "contentPosition": ContentPosition.BELOW.value,
        "showComments": True,
        "showActivity": True,
        "pinnedFieldKeys": [],
        "autoAddNewFields": True,
        "collapsedSectionIds": [],
        "relationViews": {},
        "showReferences": True,
    }
