"""Pages of an export of Notion: their Markdown as blocks, whose links lead to what they led to."""

import mimetypes
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter
from pydantic import ValidationError as ShapeError

from cli.convert.bundle_file import Block, BundleFile
from cli.convert.notion.sheets import Folder, Read
from models.content.surfaces.rules.contents import Link

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
            self._bundle.report.lose("images missing from the export")

    def _shown_alone(
        self, kind: str, content: Mapping[str, Any], folder: str
    ) -> tuple[str, dict[str, Any]] | None:
        """The block that replaces a paragraph which is only one link."""
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
        self._bundle.report.lose("links to pages missing from the export become text")
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


_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_TO_DO = re.compile(r"[-*+]\s+\[([ xX])\]\s*(.*)")
_BULLET = re.compile(r"[-*+](?:\s+(.*)|$)")
_NUMBER = re.compile(r"[0-9]+[.)]\s+(.*)")
_DIVIDER = re.compile(r"(-{3,}|\*{3,}|_{3,})")
_ADDRESS = r"(?:[^()\s]|\([^()\s]*\))+"
_IMAGE = re.compile(rf"!\[([^\]]*)\]\(({_ADDRESS})\)")
_FENCE, _EQUATION = "```", "$$"
_ASIDE, _DETAILS = ("<aside>", "</aside>"), ("<details>", "</details>")
_SUMMARY = re.compile(r"\s*<summary>(.*?)</summary>\s*", re.DOTALL)
_ICON = re.compile(r"(?P<icon>[^\w\s\[\]()*`'\"<>.,;:!?/\\&#%@+=$-]{1,8})(?:\s+|$)")
_PICTURE = re.compile(r"<img [^>]*>\s*")
_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[:\- |]+")
_INLINE = re.compile(
    r"(?<!\\)(?:"
    r"(?P<code>`(?P<c>[^`]+)`)|(?P<bold>\*\*(?P<b>.+?)\*\*|__(?P<b2>.+?)__)"
    r"|(?P<strike>~~(?P<s>.+?)~~)|(?P<italic>\*(?P<i>[^*]+)\*|\b_(?P<i2>[^_]+)_\b)"
    rf"|(?P<link>!?\[(?P<t>[^\]]*)\]\((?P<u>{_ADDRESS})\)))"
)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!|~<>$-])")
_LONGEST = 10_000
_MOST_SPANS = 500
_DEEPEST = 12
"""Levels of blocks; deeper blocks are moved to the last of them."""
_LISTS = frozenset({"to_do", "bulleted_list_item", "numbered_list_item", "paragraph", "quote"})

Span = dict[str, object]


def blocks_of(text: str) -> list[Block]:
    """The blocks of a text; an image is a block of kind `image` with its address as `url`.

    Spans keep the addresses of links as they are written.
    """
    return list(_blocks(text.expandtabs(4).splitlines(), _DEEPEST))


def _blocks(lines: Sequence[str], levels: int) -> Iterator[Block]:
    place = 0
    while place < len(lines):
        line = lines[place].strip()
        if not line:
            place += 1
        elif line.startswith(_FENCE):
            place, block = _code(lines, place)
            yield block
        elif line.startswith(_EQUATION):
            place, block = _equation(lines, place)
            yield block
        elif line.startswith((_ASIDE[0], _DETAILS[0])):
            place, block = _enclosed(lines, place, levels)
            yield block
        elif line.startswith("|") and place + 1 < len(lines) and _is_rule(lines[place + 1]):
            place, block = _table(lines, place)
            yield block
        else:
            place, blocks = _text(lines, place, levels)
            yield from blocks


def _text(lines: Sequence[str], place: int, levels: int) -> tuple[int, list[Block]]:
    """A line, the lines that continue it, and the block indented below it."""
    kind, content, _ = _line(lines[place].strip())
    words = [lines[place].strip()]
    place += 1
    if kind in {"paragraph", "quote"}:
        while place < len(lines) and _goes_on(kind, lines[place]):
            words.append(lines[place].strip())
            place += 1
        kind, content, _ = _line("\n".join(words))
    end = place
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith("  ")):
        end += 1
    nested = textwrap.dedent("\n".join(lines[place:end])).splitlines()
    below = list(_blocks(nested, levels - 1 if levels else 0))
    if levels and kind in _LISTS:
        return end, [(kind, content, below)]
    return end, [(kind, content, ()), *below]


def _goes_on(kind: str, line: str) -> bool:
    """True when a line is of the same paragraph or quote as the line above."""
    plain = line.strip()
    if not plain or line.startswith("  "):
        return False
    if kind == "quote":
        return plain.startswith(">")
    special = plain.startswith((_FENCE, _EQUATION, "|", "<", ">", "["))
    return not special and _line(plain)[0] == "paragraph"


def _line(line: str) -> Block:
    if match := _HEADING.fullmatch(line):
        return (f"heading_{min(len(match[1]), 3)}", {"text": spans_of(match[2])}, ())
    if match := _TO_DO.fullmatch(line):
        return ("to_do", {"text": spans_of(match[2]), "checked": match[1] != " "}, ())
    if _DIVIDER.fullmatch(line):
        return ("divider", {}, ())
    if match := _BULLET.fullmatch(line):
        return ("bulleted_list_item", {"text": spans_of(match[1] or "")}, ())
    if match := _NUMBER.fullmatch(line):
        return ("numbered_list_item", {"text": spans_of(match[1])}, ())
    if line.startswith(">"):
        words = "\n".join(row.removeprefix(">").strip() for row in line.split("\n"))
        return ("quote", {"text": spans_of(words)}, ())
    if match := _IMAGE.fullmatch(line):
        return ("image", {"url": match[2], "caption": match[1][:2000]}, ())
    return ("paragraph", {"text": spans_of(line)}, ())


def spans_of(text: str, marks: tuple[str, ...] = ()) -> list[Span]:
    """A line as pieces with marks and links, cut at the limits."""
    spans: list[Span] = []
    last = 0
    for match in _INLINE.finditer(text):
        spans += _plain(text[last : match.start()], marks)
        spans += _marked(match, marks)
        last = match.end()
    spans += _plain(text[last:], marks)
    return spans[:_MOST_SPANS]


def _plain(text: str, marks: tuple[str, ...]) -> list[Span]:
    words = _ESCAPED.sub(r"\1", text)[:_LONGEST]
    return [{"text": words, **({"marks": list(marks)} if marks else {})}] if words else []


def _marked(match: re.Match[str], marks: tuple[str, ...]) -> list[Span]:
    if match["link"]:
        inside = spans_of(match["t"], marks) or _plain(match["u"], marks)
        return [{**span, "link": match["u"]} for span in inside]
    if match["code"]:
        return [{"text": match["c"][:_LONGEST], "marks": [*marks, "code"]}]
    for mark, names in (
        ("bold", ("b", "b2")),
        ("strikethrough", ("s",)),
        ("italic", ("i", "i2")),
    ):
        words = next((match[name] for name in names if match[name]), None)
        if words is not None:
            return spans_of(words, marks if mark in marks else (*marks, mark))
    return _plain(match[0], marks)


def _code(lines: Sequence[str], start: int) -> tuple[int, Block]:
    """A fenced text, and the line behind it."""
    end = start + 1
    while end < len(lines) and not lines[end].strip().startswith(_FENCE):
        end += 1
    language = lines[start].strip()[len(_FENCE) :].strip()[:50]
    content: dict[str, object] = {"code": "\n".join(lines[start + 1 : end])[:60_000]}
    return end + 1, ("code", content | ({"language": language} if language else {}), ())


def _equation(lines: Sequence[str], start: int) -> tuple[int, Block]:
    """A formula between two signs, on one line or on several, and the line behind it."""
    first = lines[start].strip().removeprefix(_EQUATION)
    end = start
    words = [first.removesuffix(_EQUATION)]
    if not (first.endswith(_EQUATION) and first != ""):
        end = start + 1
        while end < len(lines) and not lines[end].strip().endswith(_EQUATION):
            words.append(lines[end])
            end += 1
        if end < len(lines):
            words.append(lines[end].strip().removesuffix(_EQUATION))
    return end + 1, ("equation", {"expression": "\n".join(words).strip()[:10_000]}, ())


def _enclosed(lines: Sequence[str], start: int, levels: int) -> tuple[int, Block]:
    """A callout or a toggle, and the line behind it."""
    begin, finish = _ASIDE if lines[start].strip().startswith(_ASIDE[0]) else _DETAILS
    end, depth = start, 0
    while end < len(lines):
        depth += lines[end].count(begin) - lines[end].count(finish)
        if depth <= 0:
            break
        end += 1
    inside = "\n".join(lines[start : end + 1]).strip().removeprefix(begin).removesuffix(finish)
    if begin == _DETAILS[0]:
        summary = _SUMMARY.match(inside)
        rest = inside if summary is None else inside[summary.end() :]
        words = spans_of("" if summary is None else summary[1].strip())
        return end + 1, ("toggle", {"text": words}, _below(rest, levels))
    words_of = _PICTURE.sub("", inside).strip()
    icon = _ICON.match(words_of)
    blocks = _below(words_of if icon is None else words_of[icon.end() :], levels)
    content: dict[str, object] = {"text": []}
    if icon is not None:
        content["icon"] = icon["icon"]
    if blocks and blocks[0][0] == "paragraph":
        content["text"] = blocks[0][1]["text"]
        blocks = [*blocks[0][2], *blocks[1:]]
    return end + 1, ("callout", content, blocks)


def _below(text: str, levels: int) -> list[Block]:
    return list(_blocks(textwrap.dedent(text).splitlines(), max(levels - 1, 0)))


def _is_rule(line: str) -> bool:
    return "-" in line and _RULE.fullmatch(line.strip()) is not None


def _table(lines: Sequence[str], start: int) -> tuple[int, Block]:
    """A table of lines between bars, and the line behind it."""
    end = start
    rows = []
    while end < len(lines) and lines[end].strip().startswith("|"):
        if end != start + 1:
            cells = lines[end].strip().removeprefix("|").removesuffix("|")
            rows.append([part.strip() for part in _CELL.split(cells)])
        end += 1
    width = min(max(map(len, rows)), 50)
    cells_of = [[spans_of(part) for part in [*row, *[""] * width][:width]] for row in rows[:500]]
    return end, ("table", {"rows": cells_of, "headerRow": True}, ())
