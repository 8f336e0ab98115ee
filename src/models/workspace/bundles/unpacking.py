"""Taking a bundle apart: what stands in it, checked, as objects of our own.

Rows are stored in chunks, each of them what one transaction applies, and blobs one by one. Keys
follow from the run and from numbers, never from a name in the archive.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, TypeVar

from pydantic import ValidationError as ShapeError
from pydantic_core import from_json, to_json

from models.content.files.commands import imported_object_key
from models.core.base import Id
from models.core.bundles import BundleKind, Findings, ImportTarget, Row, imported_id
from models.core.problems import sentence
from models.workspace.bundles import rules
from models.workspace.bundles.archives import PIECE, Entry, archive_entries
from models.workspace.bundles.lines import read_rows
from models.workspace.bundles.registry import KIND_OF, KINDS
from runtime.object_store import ObjectStore

Piece = TypeVar("Piece")

UNPACKED = "unpacked-bundles"
"""The prefix of the keys of what was taken out of bundles."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a bundle as it is stored: `chunks` objects from `key`/0 on."""

    key: str
    bytes: int
    sha256: str
    rows: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Contents:
    """A bundle that was taken apart, and that is what its manifest says."""

    manifest: rules.Manifest
    parts: dict[str, Part]
    """Part by its path in the bundle."""

    def to_json(self) -> bytes:
        return to_json(
            {
                "manifest": self.manifest.model_dump(mode="json", by_alias=True),
                "parts": {path: asdict(part) for path, part in self.parts.items()},
            }
        )


async def unpack(store: ObjectStore, file: IO[bytes], size: int, run_id: Id) -> Contents:
    """Take a bundle apart and store what is in it. Repeating it writes the same objects.

    `file` is the whole bundle on a disk, or anything that can be read from any place. Raises
    `BundleError` for a bundle that is not what its manifest says, or no bundle.
    """
    parts: dict[str, Part] = {}
    manifest: rules.Manifest | None = None
    following = archive_entries(file, size)
    while (entry := await asyncio.to_thread(_next, following)) is not None:
        if entry.name == rules.MANIFEST:
            manifest = _manifest(await asyncio.to_thread(_whole, entry))
        else:
            parts[entry.name] = await _store(store, entry, f"{UNPACKED}/{run_id}/{len(parts)}")
    if manifest is None:
        raise rules.BundleError(rules.Fault.MANIFEST, f"The bundle has no {rules.MANIFEST}.")
    _compare(manifest, parts)
    contents = Contents(manifest, parts)
    await store.put(_contents_key(run_id), _once(contents.to_json()))
    return contents


async def load_contents(store: ObjectStore, run_id: Id) -> Contents:
    """Load the contents that `unpack` gave."""
    contents = from_json(b"".join([piece async for piece in store.get(_contents_key(run_id))]))
    parts = {path: Part(**part) for path, part in contents["parts"].items()}
    return Contents(rules.Manifest.model_validate_json(to_json(contents["manifest"])), parts)


async def read_lines(store: ObjectStore, part: Part, chunk: int) -> list[bytes]:
    key = f"{part.key}/{chunk}"
    text = b"".join([piece async for piece in store.get(key)])
    return [line for line in text.split(b"\n") if line]


async def store_blobs(
    store: ObjectStore,
    contents: Contents,
    source_id: Id,
    target: ImportTarget,
    kinds: Sequence[BundleKind],
    lines: Sequence[bytes],
) -> None:
    """Copy the bytes of the files among these rows to where their rows will say they are.

    Called before the rows are applied; repeating it writes the same objects. Raises `BundleError`
    for bytes that the bundle lacks.
    """
    for kind in kinds:
        if kind.blobs:
            for row in read_rows(lines, [kind], Findings())[kind.name]:
                sha256 = row["sha256"].removeprefix("\\x")
                part = contents.parts.get(f"{rules.home(source_id)}blobs/{sha256}")
                if part is None or part.bytes != row["byte_size"]:
                    raise rules.BundleError(
                        rules.Fault.MISSING_FILE, f"The bundle lacks the content {sha256}."
                    )
                file_id = imported_id(target.entry_id, Id(row["id"]))
                made = imported_object_key(target.workspace_id, file_id)
                await store.put(made, store.get(f"{part.key}/0"))


async def remove_unpacked(store: ObjectStore, run_id: Id, contents: Contents) -> None:
    """Remove what a bundle was taken apart into."""
    for part in contents.parts.values():
        for chunk in range(part.chunks):
            await store.delete(f"{part.key}/{chunk}")
    await store.delete(_contents_key(run_id))


def _contents_key(run_id: Id) -> str:
    return f"{UNPACKED}/{run_id}/contents"


def _manifest(text: bytes) -> rules.Manifest:
    # Counted before it is read: empty lists take a hundred times their bytes in memory.
    if (
        text.count(b"[") + text.count(b"{") > 2 * rules.MAX_FILES
        or text.count(b",") > 16 * rules.MAX_FILES
    ):
        raise rules.BundleError(rules.Fault.TOO_LARGE, f"{rules.MANIFEST} is too large.")
    try:
        return rules.Manifest.model_validate_json(text)
    except ShapeError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(one) for one in first["loc"])
        message = f"{rules.MANIFEST}: {place or 'content'}: {sentence(first).rstrip('.')}."
        raise rules.BundleError(rules.Fault.MANIFEST, message) from None


def _whole(entry: Entry) -> bytes:
    text = b""
    for piece in entry.pieces:
        text += piece
        if len(text) > rules.MAX_MANIFEST:
            raise rules.BundleError(rules.Fault.TOO_LARGE, f"{rules.MANIFEST} is too large.")
    return text


def _compare(manifest: rules.Manifest, parts: dict[str, Part]) -> None:
    """Raises `BundleError` for a file that is missing, unlisted or does not match the manifest."""
    listed = {listed_file.path: listed_file for listed_file in manifest.files}
    if len(listed) < len(manifest.files):
        raise rules.BundleError(rules.Fault.DUPLICATE_NAME, f"{rules.MANIFEST} lists a file twice.")
    if extra := parts.keys() - listed.keys():
        raise rules.BundleError(
            rules.Fault.UNLISTED_FILE, f"{rules.MANIFEST} does not list {min(extra)}."
        )
    homes = tuple(rules.home(listed_file.id) for listed_file in manifest.workspaces)
    for path, entry in listed.items():
        if path.startswith("workspaces/") and not path.startswith(homes):
            raise rules.BundleError(
                rules.Fault.UNLISTED_FILE,
                f"{path} belongs to a workspace that {rules.MANIFEST} does not list.",
            )
        part = parts.get(path)
        if part is None:
            raise rules.BundleError(rules.Fault.MISSING_FILE, f"The bundle lacks {path}.")
        if (part.sha256, part.bytes) != (entry.sha256, entry.bytes):
            raise rules.BundleError(
                rules.Fault.CHECKSUM, f"{path} does not match {rules.MANIFEST}."
            )
        if part.rows != entry.rows:
            raise rules.BundleError(
                rules.Fault.COUNTS,
                f"{path} has {part.rows} rows, but {rules.MANIFEST} says {entry.rows}.",
            )
        if rules.is_blob(path) and not path.endswith(part.sha256):
            raise rules.BundleError(
                rules.Fault.CHECKSUM, f"The name of {path} does not match its content."
            )


async def _store(store: ObjectStore, entry: Entry, key: str) -> Part:
    """Store an entry, in chunks when it is a list."""
    counter = _Counted(entry.pieces)
    if not rules.is_list(entry.name):
        await store.put(f"{key}/0", _aside(iter(counter)))
        return counter.part(key, rows=0, chunks=1)
    rows = chunks = 0
    following = _chunks(counter)
    while (chunk := await asyncio.to_thread(_next, following)) is not None:
        await store.put(f"{key}/{chunks}", _once(b"".join(chunk)))
        rows, chunks = rows + len(chunk), chunks + 1
    return counter.part(key, rows=rows, chunks=chunks)


class _Counted:
    """Pieces, counted and digested as they pass."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._digest = hashlib.sha256()
        self._bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._digest.update(piece)
            self._bytes += len(piece)
            yield piece

    def part(self, key: str, rows: int, chunks: int) -> Part:
        return Part(key, self._bytes, self._digest.hexdigest(), rows, chunks)


def _chunks(pieces: Iterator[bytes] | _Counted) -> Iterator[list[bytes]]:
    """Lines in chunks; each line with its end. Raises `BundleError` for one that is too long."""
    chunk: list[bytes] = []
    size = 0
    for line in _lines(pieces):
        chunk.append(line)
        size += len(line)
        if len(chunk) >= rules.CHUNK_ROWS or size >= rules.CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _lines(pieces: Iterator[bytes] | _Counted) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if max(map(len, (rest, *whole))) > rules.MAX_LINE:
            raise rules.BundleError(
                rules.Fault.LINE, f"A line of the bundle is longer than {rules.MAX_LINE} bytes."
            )
        for line in whole:
            if line.strip():
                yield line + b"\n"
    if rest.strip():
        yield rest + b"\n"


def _next(following: Iterator[Piece]) -> Piece | None:
    return next(following, None)


async def _aside(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces whose unpacking does not hold up anything else."""
    while (piece := await asyncio.to_thread(_next, pieces)) is not None:
        yield piece


async def _once(text: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


async def load_context_rows(
    store: ObjectStore, contents: Contents, workspace_id: Id
) -> Mapping[str, Sequence[Row]]:
    """The rows of the kinds that others are checked with, of one workspace of a bundle."""
    by_kind: dict[str, list[Row]] = {}
    for name in {kind.beside for kind in KINDS if kind.beside is not None}:
        kind = KIND_OF[name]
        rows: list[Row] = []
        part = contents.parts.get(rules.home(workspace_id) + kind.file)
        for chunk in range(0 if part is None else part.chunks):
            assert part is not None
            lines = await read_lines(store, part, chunk)
            rows += read_rows(lines, [kind], Findings())[name]
        by_kind[name] = rows
    return by_kind
