"""Options of the layout of a record page (interface, recordLayout)."""

from enum import StrEnum


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
