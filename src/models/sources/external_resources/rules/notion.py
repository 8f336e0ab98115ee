"""Notion's blocks as Markdown, and the properties of its rows as texts of cells. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from models.core.base import JsonObject
from models.data.fields.rules.value_conversion import digits

_SPECIAL = re.compile(r"([\\`*_\[\]<>~|])")
_LEADING = re.compile(r"^(\s*)([#+-]|\d+[.)])(?=\s)", re.MULTILINE)
_INDENT = "    "
_ITEMS = frozenset({"bulleted_list_item", "numbered_list_item", "to_do", "toggle"})


def notion_markdown(blocks: Sequence[JsonObject]) -> str:
    """The Markdown of blocks, ending with a line break.

    A block is one of the Notion API, with its children under `children`. What Markdown (CommonMark
    with tables and task lists of GitHub) has no form for is left out, or stands as its text.
    """
    return "\n".join(_lines(blocks)).strip("\n") + "\n"


def plain_text(rich: object) -> str:
    """Rich text without its annotations."""
    return "".join(str(one.get("plain_text") or "") for one in _objects(rich))


def rich_markdown(rich: object) -> str:
    """Rich text, annotated as far as Markdown can."""
    return "".join(_span(one) for one in _objects(rich))


def _lines(blocks: Sequence[JsonObject]) -> Iterator[str]:
    number, before = 0, ""
    for block in _objects(blocks):
        kind = str(block.get("type") or "")
        number = number + 1 if kind == "numbered_list_item" else 0
        made = list(_block(kind, block, number))
        if not made:
            continue
        if before and not (kind == before and kind in _ITEMS):
            yield ""
        yield from made
        before = kind


def _block(kind: str, block: JsonObject, number: int) -> Iterator[str]:
    content = block.get(kind)
    content = content if isinstance(content, dict) else {}
    children = _objects(block.get("children"))
    if kind == "table":
        yield from _table(children)
        return
    if kind in _ITEMS:
        yield from _item(kind, content, number)
        yield from _indented(children, _INDENT)
        return
    if kind in {"quote", "callout"}:
        text = rich_markdown(content.get("rich_text"))
        inner = [*text.split("\n"), *_lines(children)] if children else text.split("\n")
        yield from (f"> {line}".rstrip() for line in inner)
        return
    if kind in _PLAIN:
        yield from _PLAIN[kind](content).split("\n")
    elif "rich_text" in content:
        yield from _leading(rich_markdown(content["rich_text"])).split("\n")
    if children:
        if kind in _PLAIN or "rich_text" in content:
            yield ""
        yield from _lines(children)


def _item(kind: str, content: JsonObject, number: int) -> Iterator[str]:
    mark = "- "
    if kind == "numbered_list_item":
        mark = f"{number}. "
    elif kind == "to_do":
        mark = "- [x] " if content.get("checked") is True else "- [ ] "
    first, *rest = rich_markdown(content.get("rich_text")).split("\n")
    yield mark + first
    yield from (_INDENT + line for line in rest)


def _indented(blocks: Sequence[JsonObject], indent: str) -> Iterator[str]:
    for line in _lines(blocks):
        yield indent + line if line else ""


def _heading(level: int) -> Callable[[JsonObject], str]:
    return lambda content: (
        "#" * level + " " + rich_markdown(content.get("rich_text")).replace("\n", " ")
    )


def _code(content: JsonObject) -> str:
    text = plain_text(content.get("rich_text"))
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    language = re.sub(r"[^\w+#-]", "", str(content.get("language") or "").split(" ")[0])
    return f"{fence}{'' if language == 'plain' else language}\n{text}\n{fence}"


def _equation(content: JsonObject) -> str:
    return f"$$\n{content.get('expression') or ''}\n$$"


def _file(content: JsonObject) -> str:
    """A file of Notion's has an address that lasts an hour; it is kept for what it shows now."""
    place = content.get(str(content.get("type")))
    url = _url(place.get("url") if isinstance(place, dict) else None)
    text = rich_markdown(content.get("caption")) or str(content.get("name") or "file")
    return f"[{text}]({url})" if url else text


def _image(content: JsonObject) -> str:
    linked = _file({"name": "image", **content})
    return f"!{linked}" if linked.startswith("[") else linked


def _bookmark(content: JsonObject) -> str:
    url = _url(content.get("url"))
    return f"[{rich_markdown(content.get('caption')) or url}]({url})" if url else ""


def _child(content: JsonObject) -> str:
    return _escaped(str(content.get("title") or "Untitled"))


def _span(one: JsonObject) -> str:
    text = str(one.get("plain_text") or "")
    marks = one.get("annotations")
    marks = marks if isinstance(marks, dict) else {}
    if one.get("type") == "equation":
        return f"${text}$"
    is_code = marks.get("code") is True and "`" not in text
    markdown = f"`{text}`" if is_code else _escaped(text)
    inner = markdown.strip()
    if inner:
        before, after = (
            markdown[: markdown.index(inner[0])],
            markdown[markdown.rindex(inner[-1]) + 1 :],
        )
        for name, mark in (("strikethrough", "~~"), ("italic", "*"), ("bold", "**")):
            if marks.get(name) is True:
                inner = f"{mark}{inner}{mark}"
        url = _url(one.get("href"))
        inner = f"[{inner}]({url})" if url else inner
        markdown = before + inner + after
    return markdown


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _url(value: object) -> str | None:
    """An address that Markdown can hold; other schemes could run code where it is shown."""
    if not isinstance(value, str) or not value.startswith(("https://", "http://", "mailto:")):
        return None
    return re.sub(r"[\s<>()]", lambda found: f"%{ord(found[0]):02X}", value)


def _objects(value: object) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


_PLAIN: Mapping[str, Callable[[JsonObject], str]] = {
    "heading_1": _heading(1),
    "heading_2": _heading(2),
    "heading_3": _heading(3),
    "code": _code,
    "divider": lambda _: "---",
    "equation": _equation,
    "image": _image,
    "file": _file,
    "pdf": _file,
    "video": _file,
    "audio": _file,
    "bookmark": _bookmark,
    "embed": _bookmark,
    "link_preview": _bookmark,
    "child_page": _child,
    "child_database": _child,
}


def _table(rows: Sequence[JsonObject]) -> Iterator[str]:
    """The first row is the head, as Markdown wants one."""
    for number, row in enumerate(rows):
        content = row.get("table_row")
        cells = content.get("cells") if isinstance(content, dict) else None
        texts = [rich_markdown(cell).replace("\n", " ") for cell in cells or []]
        yield f"| {' | '.join(texts)} |"
        if number == 0:
            yield f"|{' --- |' * len(texts)}"


def _leading(text: str) -> str:
    """A paragraph that begins as a heading or an item does is still a paragraph."""
    return _LEADING.sub(r"\1\\\2", text)


def notion_row(properties: object) -> dict[str, str]:
    """The cells of a page, by the names of its properties; empty ones are left out."""
    if not isinstance(properties, dict):
        return {}
    cells = {
        name: _text(one.get(str(one.get("type"))))
        for name, one in properties.items()
        if isinstance(one, dict)
    }
    return {name: text for name, text in cells.items() if text}


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return digits(value)
        case list():
            return _listed(value)
        case dict():
            return _object(value)
        case _:
            return ""


def _listed(values: list[Any]) -> str:
    """Rich text is one text; all else are several."""
    if values and all(isinstance(one, dict) and "plain_text" in one for one in values):
        return plain_text(values)
    return ", ".join(text for text in map(_text, values) if text)


def _object(value: Mapping[str, Any]) -> str:
    if "start" in value:
        end = value.get("end")
        return f"{value['start']}/{end}" if end else _text(value["start"])
    if isinstance(value.get("number"), int) and "prefix" in value:
        prefix = value["prefix"]
        return f"{prefix}-{value['number']}" if prefix else str(value["number"])
    for name in ("name", "title", "plain_text", "email", "url", str(value.get("type")), "id"):
        if value.get(name) not in (None, ""):
            return _text(value[name])
    return ""


def title_of(payload: JsonObject) -> str:
    """The title of a page or of a database."""
    if isinstance(payload.get("title"), list):
        return plain_text(payload["title"])
    properties = payload.get("properties")
    for one in properties.values() if isinstance(properties, dict) else ():
        if isinstance(one, dict) and one.get("type") == "title":
            return plain_text(one.get("title"))
    return ""
