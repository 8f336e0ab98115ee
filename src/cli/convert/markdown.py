"""Markdown as the blocks of a page: what products write when they export."""

import re
from collections.abc import Iterator

from cli.convert.bundle_file import Block

_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_TO_DO = re.compile(r"[-*+]\s+\[([ xX])\]\s*(.*)")
_BULLET = re.compile(r"[-*+]\s+(.*)")
_NUMBER = re.compile(r"[0-9]+[.)]\s+(.*)")
_DIVIDER = re.compile(r"(-{3,}|\*{3,}|_{3,})")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
_FENCE = "```"
_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[:\- |]+")
_INLINE = re.compile(
    r"(?P<code>`(?P<c>[^`]+)`)|(?P<bold>\*\*(?P<b>.+?)\*\*|__(?P<b2>.+?)__)"
    r"|(?P<strike>~~(?P<s>.+?)~~)|(?P<italic>\*(?P<i>[^*]+)\*)"
    r"|(?P<link>\[(?P<t>[^\]]*)\]\((?P<u>[^)\s]+)\))"
)
_LONGEST = 10_000
_MOST_SPANS = 500

Span = dict[str, object]


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a text; an image is a block of kind `image` with its address as `url`."""
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        line = lines[place].strip()
        if line.startswith(_FENCE):
            place, block = _code(lines, place)
            yield block
        elif line.startswith("|") and place + 1 < len(lines) and _is_rule(lines[place + 1]):
            place, block = _table(lines, place)
            yield block
        elif line:
            yield _line(line)
        place += 1


def _line(line: str) -> Block:
    if found := _HEADING.fullmatch(line):
        return (f"heading_{min(len(found[1]), 3)}", {"text": spans_of(found[2])}, ())
    if found := _TO_DO.fullmatch(line):
        return ("to_do", {"text": spans_of(found[2]), "checked": found[1] != " "}, ())
    if _DIVIDER.fullmatch(line):
        return ("divider", {}, ())
    if found := _BULLET.fullmatch(line):
        return ("bulleted_list_item", {"text": spans_of(found[1])}, ())
    if found := _NUMBER.fullmatch(line):
        return ("numbered_list_item", {"text": spans_of(found[1])}, ())
    if line.startswith(">"):
        return ("quote", {"text": spans_of(line[1:].strip())}, ())
    if found := _IMAGE.fullmatch(line):
        return ("image", {"url": found[2], "caption": found[1][:2000]}, ())
    return ("paragraph", {"text": spans_of(line)}, ())


def spans_of(text: str) -> list[Span]:
    """A line as pieces with marks and links; what is too much is cut off."""
    spans: list[Span] = []
    last = 0
    for found in _INLINE.finditer(text):
        if found.start() > last:
            spans.append({"text": text[last : found.start()][:_LONGEST]})
        spans.append(_span(found))
        last = found.end()
    if last < len(text):
        spans.append({"text": text[last:][:_LONGEST]})
    return spans[:_MOST_SPANS]


def _span(found: re.Match[str]) -> Span:
    if found["link"]:
        words = (found["t"] or found["u"])[:_LONGEST]
        web = found["u"].startswith(("http://", "https://", "mailto:"))
        return {"text": words, "link": found["u"]} if web else {"text": words}
    for mark, names in (
        ("code", ("c",)),
        ("bold", ("b", "b2")),
        ("strikethrough", ("s",)),
        ("italic", ("i",)),
    ):
        words = next((found[name] for name in names if found[name]), None)
        if words is not None:
            return {"text": words[:_LONGEST], "marks": [mark]}
    return {"text": found[0][:_LONGEST]}


def _code(lines: list[str], start: int) -> tuple[int, Block]:
    """A fenced text, and the line it ends on."""
    end = start + 1
    while end < len(lines) and not lines[end].strip().startswith(_FENCE):
        end += 1
    language = lines[start].strip()[len(_FENCE) :].strip()[:50]
    content: dict[str, object] = {"code": "\n".join(lines[start + 1 : end])[:60_000]}
    return end, ("code", content | ({"language": language} if language else {}), ())


def _is_rule(line: str) -> bool:
    return "-" in line and _RULE.fullmatch(line.strip()) is not None


def _table(lines: list[str], start: int) -> tuple[int, Block]:
    """A table of lines between bars, and the line it ends on."""
    end = start
    rows = []
    while end < len(lines) and lines[end].strip().startswith("|"):
        if end != start + 1:
            rows.append([part.strip() for part in _CELL.split(lines[end].strip().strip("|"))])
        end += 1
    width = min(max(map(len, rows)), 50)
    cells = [[spans_of(part) for part in [*row, *[""] * width][:width]] for row in rows[:500]]
    return end - 1, ("table", {"rows": cells, "headerRow": True}, ())
