"""The contents of blocks, and the ids they name."""

from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import pytest

from models.content.surfaces.rules.contents import (
    BLOCKS,
    RESOURCES,
    End,
    Reference,
    SurfaceKind,
    Table,
    may_hold,
    references,
    scope_on,
    stored,
)
from models.content.surfaces.rules.tree import TOP, Frame, frame_problems, plan_blocks
from models.content.surfaces.shapes import BlockInput
from models.core.access.rules import Scope
from models.core.base import InputId
from runtime.errors import ValidationError
from runtime.ids import new_id

EVERY_CONTENT = {rule.content for rules in BLOCKS.values() for rule in rules.values()}


def _ids(schema: Any) -> set[str]:
    """Names of the properties that hold ids, anywhere in a JSON schema."""
    found: set[str] = set()
    if isinstance(schema, dict):
        for name, one in schema.get("properties", {}).items():
            if '"uuid"' in str(one).replace("'", '"'):
                found.add(name)
        for one in schema.values():
            found |= _ids(one)
    elif isinstance(schema, list):
        for one in schema:
            found |= _ids(one)
    return found


def test_every_id_in_a_content_is_one_that_is_looked_up() -> None:
    """A content with an id under a name `references` does not know would go unchecked."""
    named = set[str]().union(*(_ids(one.model_json_schema()) for one in EVERY_CONTENT))
    assert named == set(RESOURCES)
    assert InputId is not None


def test_references_are_found_at_any_depth() -> None:
    one, two = uuid4(), uuid4()
    content = {
        "text": [{"text": "x", "mention": {"userId": str(one)}}],
        "to": [{"deep": {"recordId": str(two)}}],
        "name": str(uuid4()),
        "fileId": "none",
        "viewId": None,
    }
    assert references(content) == {Reference("user", one), Reference("record", two)}


def test_a_content_is_stored_in_one_form() -> None:
    shape = BLOCKS[SurfaceKind.PAGE]["to_do"].content
    item = uuid4()
    raw = {"text": [{"text": "a", "mention": {"itemId": str(item).upper()}, "color": None}]}
    assert stored(shape.model_validate(raw)) == {
        "text": [{"text": "a", "mention": {"itemId": str(item)}}],
        "checked": False,
    }


@pytest.mark.parametrize(
    ("link", "fine"),
    [
        ("https://example.test/path?q=1#x", True),
        ("HTTP://example.test", True),
        ("mailto:ada@example.test?subject=x", True),
        ("mailto:", False),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt://example.test/%0aalert(1)", False),
        ("java\tscript:alert(1)", False),
        ("\x01https://example.test", False),
        ("https://", False),
        ("https:///path", False),
        ("https://[", False),
        ("//example.test", False),
        ("/path", False),
        ("data:text/html;base64,x", False),
        ("vbscript:x", False),
        ("file:///etc/passwd", False),
        ("https://example.test/\u202e", False),
        ("", False),
    ],
    ids=lambda value: ascii(value) if isinstance(value, str) else str(value),
)
def test_links(link: str, fine: bool) -> None:
    block = BlockInput.model_validate(
        {"kind": "paragraph", "content": {"text": [{"text": "x", "link": link}]}}
    )
    if fine:
        plan_blocks(SurfaceKind.PAGE, [block], TOP, new_id, most=1)
    else:
        with pytest.raises(ValidationError) as refused:
            plan_blocks(SurfaceKind.PAGE, [block], TOP, new_id, most=1)
        assert refused.value.details[0].path == "blocks.0.content.text.0.link"


def test_planning_stops_where_there_are_too_many() -> None:
    made = 0

    def count() -> Any:
        nonlocal made
        made += 1
        return new_id()

    blocks = [BlockInput(kind="toggle", children=[BlockInput(kind="divider")] * 100)] * 100
    with pytest.raises(ValidationError):
        plan_blocks(SurfaceKind.PAGE, blocks, TOP, count, most=500)
    assert made <= 500


def test_columns() -> None:
    page = SurfaceKind.PAGE
    assert may_hold(page, "column_list", "column")
    assert may_hold(page, "column", "paragraph")
    assert may_hold(page, "column", "column_list")
    assert not may_hold(page, None, "column")
    assert not may_hold(page, "column_list", "paragraph")
    assert not may_hold(page, "paragraph", "column")
    assert not may_hold(page, "divider", "paragraph")


def test_a_canvas_has_its_own_scopes() -> None:
    assert scope_on(SurfaceKind.CANVAS, Scope.BLOCKS_WRITE) is Scope.CANVAS_WRITE
    assert scope_on(SurfaceKind.CANVAS, Scope.BLOCKS_COMMENT) is Scope.BLOCKS_COMMENT
    assert scope_on(SurfaceKind.PAGE, Scope.SURFACES_READ) is Scope.SURFACES_READ


@pytest.mark.parametrize(
    ("rows", "is_one"),
    [([["a"], ["b"]], True), ([["a", "b"]], True), ([["a", "b"], ["c"]], False)],
)
def test_the_rows_of_a_table_are_of_one_width(rows: list[list[str]], is_one: bool) -> None:
    given = {"rows": [[[{"text": cell}] for cell in row] for row in rows]}
    with nullcontext() if is_one else pytest.raises(ValueError, match="same number of cells"):
        Table.model_validate(given)


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        ({"blockId": str(uuid4())}, True),
        ({"x": 1, "y": 2}, True),
        ({"x": -1_000_000, "y": 1_000_000}, True),
        ({"x": -1_000_001, "y": 0}, False),
        ({"x": 0, "y": 1_000_001}, False),
        ({}, False),
        ({"x": 1}, False),
        ({"y": 1}, False),
        ({"blockId": str(uuid4()), "x": 1, "y": 2}, False),
    ],
)
def test_a_connector_ends_at_a_block_or_at_a_point(given: dict[str, Any], is_one: bool) -> None:
    with nullcontext() if is_one else pytest.raises(ValueError, match=r"either blockId|1000000"):
        End.model_validate(given)


@pytest.mark.parametrize(
    ("surface", "frame", "wrong"),
    [
        (SurfaceKind.DASHBOARD, Frame(0, 0, 12, 1), ""),
        (SurfaceKind.DASHBOARD, Frame(11, 10_000, 1, 100), ""),
        (SurfaceKind.DASHBOARD, Frame(11, 10_001, 1, 101), "yh"),
        (SurfaceKind.DASHBOARD, Frame(-1, -1, 0, 0), "xywh"),
        (SurfaceKind.DASHBOARD, Frame(0.5, 0, 1, 1), "x"),
        (SurfaceKind.DASHBOARD, Frame(11, 0, 2, 1), "w"),
        (SurfaceKind.DASHBOARD, Frame(12, 0, 1, 1), "xw"),
        (SurfaceKind.DASHBOARD, Frame(12, 0, None, 1), "xw"),
        (SurfaceKind.DASHBOARD, Frame(13, 0, None, 1), "xww"),
        (SurfaceKind.DASHBOARD, Frame(0, 0, None, 1), "w"),
        (SurfaceKind.CANVAS, Frame(-1_000_000, 1_000_000, 0.5, 100_000), ""),
        (SurfaceKind.CANVAS, Frame(-1_000_000.5, 1_000_000.5, 0, 100_000.5), "xywh"),
        (SurfaceKind.CANVAS, Frame(0, 0, 1), "h"),
        (SurfaceKind.PAGE, Frame(), ""),
        (SurfaceKind.PAGE, Frame(x=0), "x"),
    ],
)
def test_frames(surface: SurfaceKind, frame: Frame, wrong: str) -> None:
    found = frame_problems(surface, "text", frame)
    assert [key for key, _ in found] == list(wrong)
