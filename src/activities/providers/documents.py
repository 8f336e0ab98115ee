"""Documents of providers as the blocks of a page: Markdown (CommonMark with tables), and HTML.

There are documents that no parser of either ends with in good time, so both are read in processes
of their own, which are bounded. Everything here blocks; it is for threads.
"""

from collections.abc import Callable, Iterable, Iterator

from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from markdownify import MarkdownConverter
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from models.content.surfaces.rules.contents import Link, WebUrl
from models.core.base import JsonObject
from runtime.processes.bounded_processes import BoundedProcesses, OverLimitError

MAX_BLOCKS = 4_000
"""Blocks of an imported page; the rest of a document is left out."""
_DEEPEST = 12
_LONGEST_TEXT = 10_000
_MOST_SPANS = 400
_MOST_ROWS, _MOST_CELLS = 500, 50
_LONGEST_CODE = 50_000
_UNSEEN = ("script", "style", "template", "head", "noscript", "iframe", "object", "svg")

_MARKS = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_LINK: TypeAdapter[str] = TypeAdapter(Link)
_URL: TypeAdapter[str] = TypeAdapter(WebUrl)


SECONDS = 10.0
"""Processor time of one document; 1 MiB of prose takes some two."""


class UnreadableDocumentError(ValueError):
    """A document that cannot be read as one."""

    retryable = False


def html_document(content: bytes) -> list[JsonObject]:
    """The blocks of an HTML document. Raises UnreadableDocumentError."""
    return _read_elsewhere(answer_html, content)


def markdown_document(content: bytes) -> list[JsonObject]:
    """The blocks of a Markdown document. Raises UnreadableDocumentError."""
    return _read_elsewhere(answer_markdown, content)


def text_document(content: bytes) -> list[JsonObject]:
    """The blocks of a plain text."""
    return text_blocks(content.decode("utf-8", "replace"))


def _read_elsewhere(answer: Callable[[bytes], bytes], content: bytes) -> list[JsonObject]:
    try:
        found = from_json(_processes.call(answer, content))
    except OverLimitError:
        raise UnreadableDocumentError("The document takes too long to read.") from None
    if "problem" in found:
        raise UnreadableDocumentError(found["problem"])
    blocks: list[JsonObject] = found["blocks"]
    return blocks


def answer_html(content: bytes) -> bytes:
    """The blocks of an HTML document, or why there are none, as JSON; runs in the process."""
    return _answer(html_blocks, content)


def answer_markdown(content: bytes) -> bytes:
    """The blocks of a Markdown document, or why there are none, as JSON; runs in the process."""
    return _answer(markdown_blocks, content)


def _answer(read: Callable[[str], list[JsonObject]], content: bytes) -> bytes:
    try:
        return to_json({"blocks": read(content.decode("utf-8", "replace"))})
    except UnreadableDocumentError as error:
        return to_json({"problem": str(error)})


_processes = BoundedProcesses([__name__], seconds=SECONDS)


def html_blocks(html: str) -> list[JsonObject]:
    """The blocks of an HTML document. Raises UnreadableDocumentError."""
    try:
        soup = BeautifulSoup(html, "html.parser")
        for unseen in soup(_UNSEEN):
            unseen.decompose()
        for link in soup("a"):
            if not _is(_LINK, str(link.get("href", ""))):
                link.unwrap()
        converter = MarkdownConverter(heading_style="ATX", bullets="-")
        return markdown_blocks(str(converter.convert_soup(soup)))
    except RecursionError:
        raise UnreadableDocumentError("The document is nested too deeply.") from None


def markdown_blocks(text: str) -> list[JsonObject]:
    """The blocks of a Markdown document; HTML in it is text. Raises UnreadableDocumentError."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 40})
    tokens = parser.enable(["table", "strikethrough"]).parse(text.replace("\x00", ""))
    try:
        return _cut(_blocks(SyntaxTreeNode(tokens).children, 1), [MAX_BLOCKS])
    except RecursionError:
        raise UnreadableDocumentError("The document is nested too deeply.") from None


def text_blocks(text: str) -> list[JsonObject]:
    """The blocks of a plain text: one for each paragraph."""
    parts = (part.strip("\r\n") for part in text.replace("\x00", "").split("\n\n"))
    kept = ({"kind": "paragraph", "content": _words([(p, (), None)])} for p in parts if p.strip())
    return _cut(kept, [MAX_BLOCKS])


def _cut(blocks: Iterable[JsonObject], left: list[int]) -> list[JsonObject]:
    """Blocks in their order until there are too many; `left` counts down."""
    result: list[JsonObject] = []
    for block in blocks:
        if left[0] <= 0:
            break
        left[0] -= 1
        if "children" in block:
            block["children"] = _cut(block["children"], left)
        result.append(block)
    return result


def _blocks(nodes: Iterable[SyntaxTreeNode], depth: int) -> Iterator[JsonObject]:
    for node in nodes:
        match node.type:
            case "paragraph":
                yield from _paragraph(node)
            case "heading":
                level = min(int(node.tag[1]), 3)
                yield {"kind": f"heading_{level}", "content": _words(_spans(node))}
            case "bullet_list" | "ordered_list":
                yield from _items(node, depth)
            case "blockquote":
                yield _nesting("quote", node.children, depth)
            case "fence" | "code_block":
                yield _code(node)
            case "hr":
                yield {"kind": "divider", "content": {}}
            case "table":
                yield _table(node)
            case _:
                yield {"kind": "paragraph", "content": _words([(node.content, (), None)])}


def _paragraph(node: SyntaxTreeNode) -> Iterator[JsonObject]:
    spans = _spans(node)
    if any(text.strip() for text, _, _ in spans):
        yield {"kind": "paragraph", "content": _words(spans)}
    for inline in node.children:
        for child in inline.walk():
            if child.type == "image" and _is(_URL, str(child.attrs.get("src", ""))):
                content = {"url": child.attrs["src"]}
                if child.content:
                    content["alt"] = child.content[:2_000]
                yield {"kind": "image", "content": content}


def _items(node: SyntaxTreeNode, depth: int) -> Iterator[JsonObject]:
    kind = "bulleted_list_item" if node.type == "bullet_list" else "numbered_list_item"
    for item in node.children:
        block = _nesting(kind, item.children, depth)
        spans = block["content"]["text"]
        first = spans[0]["text"] if spans else ""
        if first[:4].lower() in {"[ ] ", "[x] "}:
            spans[0]["text"] = first[4:]
            block = {**block, "kind": "to_do"}
            block["content"] = {**block["content"], "checked": first[1] in "xX"}
        yield block


def _nesting(kind: str, nodes: list[SyntaxTreeNode], depth: int) -> JsonObject:
    """A block whose first paragraph is its text, and whose children are the rest."""
    first = nodes[0] if nodes and nodes[0].type == "paragraph" else None
    rest = nodes[1:] if first is not None else nodes
    made: JsonObject = {"kind": kind, "content": _words([] if first is None else _spans(first))}
    if rest and depth < _DEEPEST:
        made["children"] = list(_blocks(rest, depth + 1))
    return made


def _code(node: SyntaxTreeNode) -> JsonObject:
    content: JsonObject = {"code": node.content[:_LONGEST_CODE].rstrip("\n")}
    language = node.info.split()[0][:50] if node.type == "fence" and node.info.split() else None
    if language is not None:
        content["language"] = language
    return {"kind": "code", "content": content}


def _table(node: SyntaxTreeNode) -> JsonObject:
    lines = [line for part in node.children for line in part.children][:_MOST_ROWS]
    rows = [
        [_words(_spans(cell))["text"] for cell in line.children[:_MOST_CELLS]] for line in lines
    ]
    width = max((len(row) for row in rows), default=1)
    even = [row + [[] for _ in range(width - len(row))] for row in rows]
    return {"kind": "table", "content": {"rows": even or [[[]]], "headerRow": True}}


_Span = tuple[str, tuple[str, ...], str | None]
"""A text, its marks, and where it links."""


def _spans(node: SyntaxTreeNode) -> list[_Span]:
    return [span for inline in node.children for span in _inline(inline, (), None)]


def _inline(node: SyntaxTreeNode, marks: tuple[str, ...], link: str | None) -> Iterator[_Span]:
    match node.type:
        case "text" | "text_special" | "html_inline":
            yield node.content, marks, link
        case "code_inline":
            yield node.content, (*marks, "code"), link
        case "softbreak":
            yield " ", marks, link
        case "hardbreak":
            yield "\n", marks, link
        case "image":
            return
        case _:
            if node.type in _MARKS:
                marks = tuple(dict.fromkeys((*marks, _MARKS[node.type])))
            if node.type == "link":
                target = str(node.attrs.get("href", ""))
                link = target if _is(_LINK, target) else None
            for child in node.children:
                yield from _inline(child, marks, link)


def _words(spans: Iterable[_Span]) -> JsonObject:
    """The content of a text block; neighbours that look alike are one span."""
    merged: list[JsonObject] = []
    for text, marks, link in spans:
        span: JsonObject = {"text": text[:_LONGEST_TEXT]}
        if marks:
            span["marks"] = list(marks)
        if link is not None:
            span["link"] = link
        last = merged[-1] if merged else None
        alike = last is not None and {**last, "text": ""} == {**span, "text": ""}
        if alike and last is not None and len(last["text"]) + len(text) <= _LONGEST_TEXT:
            last["text"] += text
        elif text:
            merged.append(span)
    return {"text": merged[:_MOST_SPANS]}


def _is(kind: TypeAdapter[str], text: str) -> bool:
    try:
        kind.validate_python(text)
    except ValidationError:
        return False
    return True
