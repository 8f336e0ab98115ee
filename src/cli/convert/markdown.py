"""Markdown as the blocks of a page: what products write when they export."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from cli.convert.bundle_file import Block

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
"""Levels of blocks; what is nested deeper stands on the last of them."""
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
    """A line as pieces with marks and links; what is too much is cut off."""
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
