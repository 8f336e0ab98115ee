"""Notes on the canvas: written, moved, resized, copied and removed by mouse and by keys."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Page
from tests.support.canvas import (
    CLIPBOARD,
    Hand,
    draft,
    drag,
    face,
    middle,
    one,
    opened,
    press,
    saved,
    with_control,
)
from tests.support.engine import Json, graph, node
from tests.support.person import Person, axis, quoted, violations

pytestmark = [pytest.mark.takes(seconds=60)]

HOSTILE = "</textarea></script><img src=x onerror=alert(1)>{{ trigger.x }}\n**no Markdown**"
FOCUS = "document.activeElement"
SHOWN = "document.querySelectorAll('.canvas-note').length"


def small() -> Json:
    return graph(
        node("read", "transform", label="Read", output={"total": 42}),
        node("tell", "transform", label="Tell", output={"told": True}),
        edges=[("read", "tell")],
    )


def noted(*colors: str) -> Json:
    notes = [
        {"id": f"n{at}", "text": f"{color}: why it is so, and who asked for it.",
         "position": {"x": 260 * at, "y": -200}, "color": color}
        for at, color in enumerate(colors)
    ]  # fmt: skip
    return {**small(), "notes": notes}


async def notes_of(person: Person, automation_id: str) -> list[Any]:
    found: list[Any] = (await draft(person, automation_id))["graph"].get("notes", [])
    return found


def note(note_id: str) -> str:
    return f'.canvas-note[data-note="{note_id}"]'


async def changed(page: Page) -> None:
    """Until a change was seen, and is saved."""
    await page.until("document.querySelector('.save-state').innerText !== 'Draft saved'")
    await saved(page)


async def menu(page: Page, selector: str, item: str) -> None:
    """Open the menu of an element by the right button of the mouse, and choose an item of it."""
    x, y = await middle(page, selector)
    for kind in ("mousePressed", "mouseReleased"):
        await page.send(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="right", clickCount=1
        )
    await page.until("document.querySelector('.canvas-menu') !== null")
    items = "[...document.querySelectorAll('.canvas-menu [role=menuitem]')]"
    await page.evaluate(f"{items}.find(one => one.firstChild.innerText === {quoted(item)}).click()")
    await page.until("document.querySelector('.canvas-menu') === null")


@pytest.mark.long
async def test_notes_are_written_by_palette_key_and_menu(page: Page, person: Person) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    before = (await draft(person, automation_id))["graph"]
    await press(page, "Add node")
    await page.click("[data-kind=note]")
    await page.until(f"{FOCUS}.matches('.canvas-note textarea')")
    await page.send("Input.insertText", text=HOSTILE)
    await page.press("Escape")
    await page.until(f"{FOCUS}.dataset.face === ':trigger/note/note'")
    await page.press("s")
    await page.until(f"{FOCUS}.matches('.canvas-note textarea')")
    await page.send("Input.insertText", text="By key")
    await page.press("Escape")
    await menu(page, face("tell"), "Add note")
    await page.until(f"{FOCUS}.matches('.canvas-note textarea')")
    await page.send("Input.insertText", text="By menu")
    await page.press("Escape")
    await saved(page)
    found = await notes_of(person, automation_id)
    assert [each["text"] for each in found] == [HOSTILE, "By key", "By menu"]
    # A text is a text, and the rest of the graph is as it was.
    assert await page.text(f"{note('note')} .note-text") == HOSTILE
    assert await page.evaluate("document.querySelector('img') === null")
    after = (await draft(person, automation_id))["graph"]
    assert {**after, "notes": None} == {**before, "notes": None}
    boxes = (
        "[...document.querySelectorAll('.canvas-note, .step')].map(e => e.getBoundingClientRect())"
    )
    touching = (
        f"{boxes}.some((a, i, all) => all.some((b, j) => i < j && a.left < b.right - 1"
        " && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1))"
    )
    assert not await page.evaluate(touching)


@pytest.mark.long
async def test_a_note_is_moved_resized_colored_and_deleted_by_mouse(
    page: Page, person: Person
) -> None:
    automation_id = await person.automation(noted("yellow"), publish=False)
    await opened(page, person, automation_id)
    (first,) = await notes_of(person, automation_id)
    x, y = await middle(page, note("n0"))
    await drag(page, [x, y], [x + 80, y - 40])
    await changed(page)
    (moved,) = await notes_of(person, automation_id)
    assert (moved["position"]["x"] > 40, moved["position"]["y"] < -220) == (True, True)
    # Nodes have no positions of their own yet: a note that moves gives them none.
    nodes = (await draft(person, automation_id))["graph"]["nodes"]
    assert all("position" not in each for each in nodes)
    x, y = await middle(page, f"{note('n0')} .grip")
    await drag(page, [x, y], [x + 60, y + 50])
    await changed(page)
    (resized,) = await notes_of(person, automation_id)
    assert (resized["width"] > first["width"] + 30, resized["height"] > first["height"] + 30) == (
        True,
        True,
    )
    assert resized["position"] == moved["position"]
    await page.click(f"{note('n0')} .note-face")
    await page.click(".tools .swatch[data-color=green]")
    await changed(page)
    assert (await notes_of(person, automation_id))[0]["color"] == "green"
    await menu(page, f"{note('n0')} .note-face", "Duplicate")
    await page.until(f"{SHOWN} === 2")
    await menu(page, f"{note('n0')} .note-face", "Delete")
    await page.until(f"{SHOWN} === 1")
    for _ in range(5):
        await press(page, "Undo")
    await page.until("document.querySelector('.save-state').innerText === 'Draft saved'")
    await saved(page)
    assert await notes_of(person, automation_id) == [first]


@pytest.mark.long
async def test_a_note_is_written_moved_copied_and_deleted_by_keys_alone(
    page: Page, person: Person
) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    hand = Hand(page)
    await page.evaluate(f"{one(face('read'))}.focus()")
    await hand.key("s")
    await page.until(f"{FOCUS}.tagName === 'TEXTAREA'")
    await hand.type("Ask Ada first.")
    await hand.key("Enter", 2)
    await page.until(f"{FOCUS}.dataset.face === ':trigger/note/note'")
    await changed(page)
    (first,) = await notes_of(person, automation_id)
    await hand.key("ArrowDown", 8)
    await hand.key("ArrowRight", 2)
    await changed(page)
    (found,) = await notes_of(person, automation_id)
    assert found["position"] == {**first["position"], "y": first["position"]["y"] + 16}
    assert (found["width"], found["height"]) == (first["width"] + 16, first["height"])
    await hand.key("Enter")
    await page.until(f"{FOCUS}.tagName === 'TEXTAREA'")
    await hand.type(" Then Bo.")
    await hand.key("Escape")
    await page.until(f"{FOCUS}.dataset.face === ':trigger/note/note'")
    text = await page.evaluate(f"{CLIPBOARD}('copy')")
    await page.evaluate(f"{CLIPBOARD}('paste', {quoted(text)})")
    await page.until(f"{SHOWN} === 2")
    await hand.key("d", 2)
    await page.until(f"{SHOWN} === 3")
    await page.evaluate(f"{one(face(':trigger/note/note_2'))}.focus()")
    await hand.key("F10", 8)
    await page.until("document.querySelector('.canvas-menu') !== null")
    await hand.keys("ArrowUp", "Enter")
    await page.until(f"{SHOWN} === 2")
    await with_control(page, "z")
    await page.until(f"{SHOWN} === 3")
    await saved(page)
    texts = [each["text"] for each in await notes_of(person, automation_id)]
    assert texts == ["Ask Ada first. Then Bo."] * 3
    # From a note the arrow keys lead to what is nearest, so nothing is out of reach.
    await page.evaluate(f"{one(face(':trigger/note/note'))}.focus()")
    await hand.key("ArrowDown")
    await page.until(f"{FOCUS}.dataset.face !== ':trigger/note/note'")
    assert hand.clicks == 0


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_notes_break_no_rule_of_accessibility(
    page: Page, person: Person, screens: Path, *, dark: bool
) -> None:
    content = noted("yellow", "blue", "green", "red", "gray")
    automation_id = await person.automation(content)
    await page.show(dark=dark)
    await opened(page, person, automation_id)
    await page.until("document.querySelector('.vue-flow__minimap-node') !== null")
    assert await page.evaluate("document.querySelectorAll('.vue-flow__minimap-node').length") == 8
    assert await violations(page) == []
    name = "dark" if dark else "light"
    await page.click(f"{note('n0')} .note-face")
    await page.until("document.querySelector('.tools .swatches') !== null")
    assert await violations(page) == []
    await page.screenshot(screens / f"canvas-notes-{name}.png")
    await page.press("F10")
    await page.evaluate(f"{one(face('read'))}.focus()")
    await Hand(page).key("F10", 8)
    await page.until("document.querySelector('.canvas-menu') !== null")
    assert await violations(page) == []
    await page.screenshot(screens / f"canvas-menu-{name}.png")
    await page.press("Escape")
    await page.until("document.querySelector('.canvas-menu') === null")
    await page.show(dark=dark, width=390, height=780)
    await page.open(f"{person.home}/automations/{automation_id}/edit")
    await page.until(f"{SHOWN} === 5")
    assert await axis(page) <= 0
    # A wide graph is zoomed out on a phone: buttons are large enough once it is zoomed in.
    assert [one for one in await violations(page) if one[0] != "target-size"] == []
    await page.screenshot(screens / f"canvas-notes-390-{name}.png")
    # A version that is published shows its notes, and offers nothing to change them.
    found = await draft(person, automation_id)
    await page.open(f"{person.home}/automations/{automation_id}/versions/{found['versionId']}")
    await page.until("document.querySelectorAll('.graph-notes p').length === 5")
    assert (
        await page.evaluate("document.querySelector('.graph-notes :is(textarea, button)')") is None
    )
    assert await axis(page) <= 0
    assert await violations(page) == []
    await page.screenshot(screens / f"version-notes-390-{name}.png")
    await page.show()
