"""The format of bundles: names, limits, the manifest, and faults (docs/bundles.md). Pure."""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import to_json

from models.core.base import Input, InputId
from models.core.values import InvalidValueError, moment
from runtime.clock import truncate, wire_timestamp
from runtime.errors import ConflictError


class Fault(StrEnum):
    """The reason why a bundle is refused; each is a blocking error of an import."""

    NOT_AN_ARCHIVE = "not_an_archive"
    UNSAFE_NAME = "unsafe_name"
    DUPLICATE_NAME = "duplicate_name"
    NOT_A_FILE = "not_a_file"
    ENCRYPTED = "encrypted"
    TOO_LARGE = "too_large"
    BOMB = "bomb"
    CHECKSUM = "checksum"
    CHANGED = "changed"
    COUNTS = "counts"
    MANIFEST = "manifest"
    MISSING_FILE = "missing_file"
    UNLISTED_FILE = "unlisted_file"
    LINE = "line"
    ROWS = "rows"


class BundleError(ConflictError):
    """A bundle that cannot be imported; `fault` names the rule it breaks."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


FORMAT = "workspace-bundle"
FORMAT_VERSION = 1
SOURCE_VERSION = "workspace-platform/1"
"""The software that wrote the rows, or whose form they have."""

MANIFEST = "manifest.json"
MAX_UNPACKED = 256 * 1024**3
MAX_RATIO = 200
"""The factor by which its files may be larger than the archive, beyond `FREE_BYTES`."""
FREE_BYTES = 64 * 1024**2
MAX_FILES = 500_000
MAX_DIRECTORY = 128 * 1024**2
"""Bytes of the list of files at the end of a zip archive."""
MAX_MANIFEST = 64 * 1024**2
MAX_LINE = 8 * 1024**2
MAX_WORKSPACES = 1_000
CHUNK_ROWS = 5_000
CHUNK_BYTES = 16 * 1024**2
"""The most that is applied in one transaction: as many rows, or fewer that are as large."""
LONGEST_NAME = 300

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
_NAME = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT}){{0,5}}")
_BLOB = re.compile(r"workspaces/[0-9a-f-]{36}/blobs/[0-9a-f]{64}")


def _on_the_wire(text: str) -> str:
    """A moment as answers write it; converters may have written anything else, which stays."""
    try:
        return wire_timestamp(truncate(moment(text)))
    except InvalidValueError:
        return text


class ManifestFile(Input):
    """One file of a bundle; `rows` counts the lines of a list and is 0 for anything else."""

    model_config = ConfigDict(extra="ignore")

    path: Annotated[str, Field(max_length=LONGEST_NAME)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]
    rows: Annotated[int, Field(ge=0)] = 0


class ManifestWorkspace(Input):
    """One workspace of a bundle; `counts` has the number of rows of each kind."""

    model_config = ConfigDict(extra="ignore")

    id: InputId
    name: Annotated[str, Field(min_length=1, max_length=200)]
    counts: dict[str, Annotated[int, Field(ge=0)]]


class Manifest(Input):
    """`manifest.json`: what a bundle is and which files it has, itself left out."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["workspace-bundle"]
    format_version: Literal[1]
    source_version: Annotated[str, Field(max_length=200)]
    converter_version: Annotated[str, Field(max_length=200)] | None = None
    snapshot_at: Annotated[str, Field(max_length=64), AfterValidator(_on_the_wire)]
    workspaces: Annotated[list[ManifestWorkspace], Field(max_length=MAX_WORKSPACES)]
    files: Annotated[list[ManifestFile], Field(max_length=MAX_FILES)]


def check_name(name: str, names: set[str]) -> None:
    """Take a name of an archive. Raises `BundleError` for one that no bundle has.

    Nothing is ever written where a name says; it is refused all the same, because it is meant as an
    attack.
    """
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or ".." in name.split("/"):
        raise BundleError(Fault.UNSAFE_NAME, f"Invalid file name in the bundle: {name[:100]!r}.")
    if name in names:
        raise BundleError(Fault.DUPLICATE_NAME, f"The bundle has two files named {name}.")
    names.add(name)


def is_list(path: str) -> bool:
    """True when a file is a list of rows, one JSON object a line."""
    return path.endswith(".ndjson")


def is_blob(path: str) -> bool:
    """True when a file is the bytes of a stored file, named by their SHA-256."""
    return _BLOB.fullmatch(path) is not None


def home(workspace_id: object) -> str:
    """The prefix of the paths of a workspace's files."""
    return f"workspaces/{workspace_id}/"


class Written(Protocol):
    """A file of a bundle that is written."""

    @property
    def sha256(self) -> str: ...
    @property
    def bytes(self) -> int: ...


def manifest_text(
    workspace: ManifestWorkspace,
    snapshot_at: datetime,
    files: Mapping[str, Written],
    rows: Mapping[str, int],
    converter: str | None = None,
) -> bytes:
    """The manifest of one workspace, whose files are written; `rows` counts the rows of lists."""
    manifest = {
        "format": FORMAT,
        "formatVersion": FORMAT_VERSION,
        "sourceVersion": SOURCE_VERSION,
        "snapshotAt": wire_timestamp(snapshot_at),
        "workspaces": [workspace.model_dump(mode="json", by_alias=True)],
        "files": [
            {"path": path, "sha256": one.sha256, "bytes": one.bytes, "rows": rows.get(path, 0)}
            for path, one in files.items()
        ],
    }
    if converter is not None:
        manifest["converterVersion"] = converter
    return to_json(manifest)
