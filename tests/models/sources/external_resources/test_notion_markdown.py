"""Blocks of Notion as Markdown, and properties of its rows as text."""

from typing import Any

import pytest

from models.sources.external_resources.rules.notion import notion_markdown, notion_row, title_of


def span(text: str, href: str | None = None, **marks: bool) -> dict[str, Any]:
    return {"type": "text", "plain_text": text, "href": href, "annotations": marks}


def block(kind: str, *spans: Any, children: Any = (), **content: Any) -> dict[str, Any]:
    rich = [one if isinstance(one, dict) else span(one) for one in spans]
    content = {"rich_text": rich, **content} if spans else content
    return {"type": kind, kind: content, "children": list(children)}


@pytest.mark.parametrize(
    ("blocks", "markdown"),
    [
        ([], "\n"),
        ([block("heading_2", "Two")], "## Two\n"),
        ([block("paragraph", "a"), block("paragraph", "b")], "a\n\nb\n"),
        ([block("paragraph", "# no [link](x) *b* <i>")], "\\# no \\[link\\](x) \\*b\\* \\<i\\>\n"),
        ([block("paragraph", "1. no item")], "\\1. no item\n"),
        ([block("numbered_list_item", "a"), block("numbered_list_item", "b")], "1. a\n2. b\n"),
        (
            [block("to_do", "a", checked=True), block("to_do", "b", checked=False)],
            "- [x] a\n- [ ] b\n",
        ),
        (
            [block("bulleted_list_item", "a", children=[block("bulleted_list_item", "b")])],
            "- a\n    - b\n",
        ),
        ([block("quote", "a\nb")], "> a\n> b\n"),
        ([block("code", "x = `1`", language="python")], "```python\nx = `1`\n```\n"),
        ([block("code", "```", language="plain text")], "````\n```\n````\n"),
        ([block("divider")], "---\n"),
        ([block("equation", expression="e=mc^2")], "$$\ne=mc^2\n$$\n"),
        (
            [block("paragraph", span(" bold ", bold=True), span("i", italic=True))],
            "**bold** *i*\n",
        ),
        ([block("paragraph", span("c`d", code=True), span("e", code=True))], "c\\`d`e`\n"),
        (
            [block("paragraph", span("x", "https://a.example/(b)"))],
            "[x](https://a.example/%28b%29)\n",
        ),
        ([block("paragraph", span("x", "javascript:alert(1)"))], "x\n"),
        (
            [block("image", type="external", external={"url": "https://x.example/i.png"})],
            "![image](https://x.example/i.png)\n",
        ),
        ([block("image", type="external", external={"url": "data:x"})], "image\n"),
        (
            [
                block(
                    "table",
                    children=[
                        block("table_row", cells=[[span("a|b")], [span("c")]]),
                        block("table_row", cells=[[span("1\n2")], []]),
                    ],
                )
            ],
            "| a\\|b | c |\n| --- | --- |\n| 1 2 |  |\n",
        ),
        (
            [block("column_list", children=[block("column", children=[block("paragraph", "x")])])],
            "x\n",
        ),
        ([block("unsupported"), block("paragraph", "x")], "x\n"),
        (
            [{"type": None}, {"type": "code", "code": 5}, block("paragraph", "x")],
            "```\n\n```\n\nx\n",
        ),
    ],
)
def test_blocks_are_markdown(blocks: Any, markdown: str) -> None:
    made = notion_markdown(blocks)
    assert made.lstrip() == markdown.lstrip()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"type": "number", "number": 1.5}, "1.5"),
        ({"type": "number", "number": 1234567}, "1234567"),
        ({"type": "select", "select": {"id": "x", "name": "Red"}}, "Red"),
        ({"type": "multi_select", "multi_select": [{"name": "a"}, {"name": "b"}]}, "a, b"),
        ({"type": "rich_text", "rich_text": [span("a, "), span("b")]}, "a, b"),
        (
            {"type": "date", "date": {"start": "2026-01-01", "end": "2026-01-02"}},
            "2026-01-01/2026-01-02",
        ),
        ({"type": "people", "people": [{"id": "u", "name": "Ann"}]}, "Ann"),
        ({"type": "checkbox", "checkbox": False}, "false"),
        ({"type": "formula", "formula": {"type": "number", "number": 3}}, "3"),
        ({"type": "number", "number": 1234567.89}, "1234567.89"),
        ({"type": "number", "number": 1147386954405658705}, "1147386954405658705"),
        ({"type": "relation", "relation": [{"id": "r1"}, {"id": "r2"}]}, "r1, r2"),
        ({"type": "unique_id", "unique_id": {"number": 7, "prefix": "T"}}, "T-7"),
        ({"type": "files", "files": [{"name": "x.pdf", "type": "external"}]}, "x.pdf"),
        (
            {"type": "rollup", "rollup": {"type": "array", "array": [{"type": "url", "url": "u"}]}},
            "u",
        ),
    ],
)
def test_properties_are_text(value: Any, text: str) -> None:
    assert notion_row({"Cell": value}) == {"Cell": text}


def test_a_line_without_a_property_is_left_out() -> None:
    assert notion_row({"a": {"type": "number", "number": None}, "b": 5, "c": {}}) == {}
    assert notion_row([]) == {}
    assert title_of({"properties": {"N": {"type": "title", "title": [span("x")]}}}) == "x"
    assert title_of({"properties": None}) == ""


def test_a_line_break_in_an_item_stays_in_it() -> None:
    blocks = [block("bulleted_list_item", "a\nb"), block("to_do", "c\nd", checked=True)]
    assert notion_markdown(blocks) == "- a\n    b\n\n- [x] c\n    d\n"
