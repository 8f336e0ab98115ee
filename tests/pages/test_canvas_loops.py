"""Nodes leave the frame of a loop by dragging, and its frame grows with nodes that stay near it."""

import pytest

from tests.support.browser import Page
from tests.support.canvas import draft, drag, edges, face, middle, opened, press, saved
from tests.support.engine import Json, graph, node
from tests.support.person import Person

pytestmark = [pytest.mark.takes(seconds=40)]

SAID = "document.querySelector('.canvas-bar.said')?.innerText"
ROWS = {"type": "expression", "value": "nodes.list.rows"}
BODY = [("each", "check", "item"), ("check", "save", "always"), ("save", "mail", "always")]
AROUND = [("list", "each", "always"), ("each", "end", "done")]


def looped(*names: str) -> list[Json]:
    return [node(name, "transform", label=name.title(), output={"a": 1}) for name in names]


def content() -> Json:
    return graph(
        node("list", "transform", label="List", output={"rows": [1, 2]}),
        node("each", "for_each", label="Each order", items=ROWS),
        *looped("check", "save", "mail", "end"),
        edges=[*AROUND, *BODY],
    )


async def beside(page: Page, node_id: str, *, down: float) -> None:
    """Drag a node down by a part of the height of its own button, which zooms with it."""
    x, y = await middle(page, face(node_id))
    height = await page.evaluate(
        f"document.querySelector('{face(node_id)}').getBoundingClientRect().height"
    )
    await drag(page, [x, y], [x, y + down * height])


async def edges_of(person: Person, automation_id: str) -> set[tuple[str, ...]]:
    return {tuple(each) for each in await edges(person, automation_id)}


async def test_a_node_that_is_dragged_out_of_a_loop_leaves_it(page: Page, person: Person) -> None:
    automation_id = await person.automation(content(), publish=False)
    await opened(page, person, automation_id)
    await page.until("document.querySelector('.loop') !== null")
    # A node that stays near the frame stays in the loop, which grows.
    await beside(page, "save", down=2)
    await page.until("document.querySelector('.save-state').innerText !== 'Draft saved'")
    await saved(page)
    assert await edges_of(person, automation_id) == {*BODY, *AROUND}
    await press(page, "Undo")
    await saved(page)
    await beside(page, "save", down=6)
    said = await page.until(SAID)
    assert said == (
        "Save left the loop Each order, and 2 connections were removed. Undo restores them."
    )
    await saved(page)
    assert await edges_of(person, automation_id) == {BODY[0], ("check", "mail", "always"), *AROUND}
    await press(page, "Undo")
    await saved(page)
    assert await edges_of(person, automation_id) == {*BODY, *AROUND}


async def test_it_says_so_before_it_is_dropped(page: Page, person: Person) -> None:
    await opened(page, person, await person.automation(content(), publish=False))
    await page.until("document.querySelector('.loop') !== null")
    x, y = await middle(page, face("mail"))
    held = {"button": "left", "buttons": 1}
    await page.send("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, clickCount=1, **held)
    for down in (10, 250):
        await page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y + down, **held)
    title = "document.querySelector('.loop-title').innerText"
    await page.until(f"{title} === 'Drop to leave the loop Each order'")
    await page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y + 10, **held)
    await page.until(f"{title} === 'Each order'")
    await page.send(
        "Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y + 10, clickCount=1, button="left"
    )


async def test_a_loop_leaves_the_loop_around_it_with_its_body(page: Page, person: Person) -> None:
    inner = node("inner", "for_each", label="Each line", items={"type": "item", "value": "lines"})
    nested = graph(
        node("list", "transform", label="List", output={"rows": [1, 2]}),
        node("each", "for_each", label="Each order", items=ROWS),
        *looped("check", "end"),
        inner,
        *looped("line"),
        edges=[
            *AROUND, BODY[0], ("check", "inner", "always"), ("inner", "line", "item"),
        ],
    )  # fmt: skip
    automation_id = await person.automation(nested, publish=False)
    await opened(page, person, automation_id)
    await page.until("document.querySelectorAll('.loop').length === 2")
    await beside(page, "inner", down=10)
    assert "Each line left the loop Each order" in await page.until(SAID)
    await saved(page)
    assert await edges_of(person, automation_id) == {
        *AROUND, BODY[0], ("inner", "line", "item"),
    }  # fmt: skip
    places = {
        each["id"]: each["position"]
        for each in (await draft(person, automation_id))["graph"]["nodes"]
    }
    assert places["line"]["y"] > places["end"]["y"] + 200
