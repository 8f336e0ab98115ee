"""Pages of an export as blocks, whose links lead to what they led to."""

import mimetypes
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter
from pydantic import ValidationError as ShapeError

from cli.convert.bundle_file import Block, BundleFile
from cli.convert.markdown import blocks_of
from cli.convert.notion.exports import Folder, Read
from models.content.surfaces.rules.urls import Link

_ID = re.compile(r"([0-9a-f]{32})(?:_all)?(?:\.(?:md|csv))?$")
_OF_NOTION = re.compile(r"(?:^|\.)notion\.(?:so|site|com)$")
_MEDIA = frozenset({"image", "video", "audio"})
_LINK: TypeAdapter[str] = TypeAdapter(Link)


@dataclass(frozen=True, slots=True)
class Place:
    """Something that pages link to: the block that shows it, and how running text mentions it."""

    kind: str
    content: dict[str, str]
    mention: dict[str, str]


@dataclass(slots=True)
class Places:
    """The targets that links can have: pages and tables by their ids, and files by their paths."""

    of_ids: dict[str, Place] = field(default_factory=dict)
    files: dict[str, tuple[str, Read]] = field(default_factory=dict)
    file_ids: dict[str, str] = field(default_factory=dict)
    """Id of a stored file by its path, for the files that pages show."""

    def add_files(self, folder: Folder) -> None:
        """Know the files of a folder and of those in it."""
        for name, read in folder.files.items():
            self.files[f"{folder.path}{name}"] = (name, read)
        for inside in folder.folders.values():
            self.add_files(inside)


class PageWriter:
    """Makes blocks of pages; files that they show are stored on the way."""

    def __init__(self, bundle: BundleFile, places: Places) -> None:
        self._bundle = bundle
        self._places = places

    def blocks(self, text: str, folder: str) -> list[Block]:
        """The blocks of a page that stands in a folder."""
        return list(self._with_links(blocks_of(text), folder))

    def _with_links(self, blocks: Iterable[Block], folder: str) -> Iterator[Block]:
        for kind, content, nested in blocks:
            below = list(self._with_links(nested, folder))
            if kind == "image":
                yield from self._image(content, folder)
                yield from below
                continue
            shown = self._shown_alone(kind, content, folder)
            if shown is not None:
                yield (*shown, ())
                yield from below
                continue
            rewritten = dict(content)
            if "text" in rewritten:
                rewritten["text"] = [self._span(span) for span in rewritten["text"]]
            if "rows" in rewritten:
                rewritten["rows"] = [
                    [[self._span(span) for span in cell] for cell in row]
                    for row in rewritten["rows"]
                ]
            yield kind, rewritten, below

    def _image(self, content: Mapping[str, Any], folder: str) -> Iterator[Block]:
        address = str(content["url"])
        caption = content["caption"]
        captioned = {} if caption == PurePosixPath(unquote(address)).name else {"caption": caption}
        stored = self._stored(address, folder)
        if stored is not None:
            yield "image", {"fileId": stored, **captioned}, ()
        elif _is_web(address):
            yield "image", {"url": address, **captioned}, ()
        else:
            self._bundle.report.lose("images that are not in the export")

    def _shown_alone(
        self, kind: str, content: Mapping[str, Any], folder: str
    ) -> tuple[str, dict[str, Any]] | None:
        """The block that stands for a paragraph which is one link and nothing else."""
        spans = content.get("text", [])
        if kind != "paragraph" or len(spans) != 1 or "link" not in spans[0]:
            return None
        address, words = spans[0]["link"], spans[0]["text"]
        place = self._place(address)
        if place is not None:
            return place.kind, dict(place.content)
        stored = self._stored(address, folder)
        if stored is not None:
            guessed = (mimetypes.guess_type(unquote(address))[0] or "").partition("/")[0]
            name = PurePosixPath(unquote(address)).name[:200]
            return guessed if guessed in _MEDIA else "file", {"fileId": stored, "name": name}
        if _is_web(address) and words == address:
            return "bookmark", {"url": address}
        return None

    def _span(self, span: dict[str, Any]) -> dict[str, Any]:
        if "link" not in span:
            return span
        plain = {key: value for key, value in span.items() if key != "link"}
        place = self._place(span["link"])
        if place is not None:
            return {**plain, "mention": place.mention}
        if _is_web(span["link"]):
            return span
        self._bundle.report.lose("links to what is not in the export, which are text")
        return plain

    def _place(self, address: str) -> Place | None:
        """The target of a link, if it is a page or a table of the export."""
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        if parts.scheme and not _OF_NOTION.search(parts.hostname or ""):
            return None
        match = _ID.search(unquote(parts.path))
        return None if match is None else self._places.of_ids.get(match[1])

    def _stored(self, address: str, folder: str) -> str | None:
        """The id of the file at an address beside a page; it is stored when it is first shown."""
        if address.startswith(("http:", "https:", "mailto:")):
            return None
        steps: list[str] = []
        for part in [*folder.split("/"), *unquote(address).split("/")]:
            if part == "..":
                steps = steps[:-1]
            elif part not in {"", "."}:
                steps.append(part)
        path = unicodedata.normalize("NFC", "/".join(steps))
        if path not in self._places.files:
            # A name may have its own percent signs.
            path = unicodedata.normalize("NFC", f"{folder}{address}")
        file = self._places.files.get(path)
        if file is None:
            return None
        if path not in self._places.file_ids:
            name, read = file
            self._places.file_ids[path] = self._bundle.stored_file(name, read())
        return self._places.file_ids[path]


def _is_web(address: str) -> bool:
    try:
        _LINK.validate_python(address)
    except ShapeError:
        return False
    return len(address) <= 2_048
