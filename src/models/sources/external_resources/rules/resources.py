"""Resources of a provider, and their names and identifiers made fit to be shown and kept. Pure."""

import unicodedata
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from models.content.items.rules import metadata_problem
from models.core.base import Input, JsonObject
from models.core.problems import refused_for

MAX_NAME = 200
UNTITLED = "Untitled"

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
"""They are part of words and of emoji."""


def shown_name(name: str) -> str:
    """A name without what is not seen, at most 200 characters; never empty.

    What a provider gives may hold anything: path separators, control characters, and characters
    that turn the direction of the text around them (Unicode UAX 9), by which `gpj.exe` reads as
    `exe.jpg`.
    """
    kept = "".join(" " if char in "\t\r\n" else char for char in name if _is_shown(char))
    return " ".join(kept.split())[:MAX_NAME].strip() or UNTITLED


def identifier_problem(text: str) -> str | None:
    """The reason why a text cannot identify a resource, or None.

    The text goes into requests to the provider of the resource.
    """
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        return "has characters that are not text"
    return None


def _is_shown(char: str) -> bool:
    if char in "\t\r\n" or char in _JOINERS:
        return True
    return char not in _TURNING and unicodedata.category(char) not in _HIDDEN


class ResourceSurfaceKind(StrEnum):
    GENERIC = "generic"
    FOLDER = "folder"
    DOCUMENT = "document"
    SPREADSHEET = "spreadsheet"
    DATABASE = "database"
    FORM = "form"
    FILE = "file"
    CALENDAR = "calendar"
    BOARD = "board"
    REPOSITORY = "repository"


class Capability(StrEnum):
    BROWSE = "browse"
    SEARCH = "search"
    READ = "read"
    MOUNT = "mount"
    IMPORT = "import"
    IMPORT_FORM = "import_form"
    WATCH = "watch"


class ReadFormat(StrEnum):
    """The form in which a resource's content is read; a link has none, and says where it is."""

    JSON = "json"
    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    CSV = "csv"
    LINK = "link"


class MountStatus(StrEnum):
    ACTIVE = "active"
    STALE = "stale"
    """The provider does not show the resource any more; nothing of it was deleted here."""
    ERROR = "error"
    """The provider could not be asked."""


def _web_address(text: str) -> str:
    """Other schemes could run code where the link is shown."""
    try:
        parts = urlsplit(text)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid or not text.isprintable() or any(char.isspace() for char in text):
        raise ValueError("must be an http or https URL")
    return text


WebAddress = Annotated[str, Field(max_length=2_048), AfterValidator(_web_address)]
ExternalId = Annotated[str, Field(min_length=1, max_length=1_000), refused_for(identifier_problem)]
"""The name that a provider gives a resource, or a type of them."""
_Text = ExternalId


class ProviderResource(Input):
    """One resource as a provider lists it."""

    external_type: _Text
    external_id: _Text
    name: Annotated[str, Field(min_length=1, max_length=200)]
    surface_kind: Annotated[ResourceSurfaceKind, Field(strict=False)]
    capabilities: Annotated[
        list[Annotated[Capability, Field(strict=False)]], Field(max_length=len(Capability))
    ]
    mime_type: _Text | None = None
    canonical_url: WebAddress | None = None
    parent_external_id: _Text | None = None
    revision: _Text | None = None
    provider_created_at: _Text | None = None
    provider_modified_at: _Text | None = None
    metadata: Annotated[JsonObject, refused_for(metadata_problem)] | None = None

    def to_json(self) -> JsonObject:
        """The resource as it is stored and answered: absent keys left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
