"""The draft as JSON in the editor: typed by keys, completed, mended at its line, and undone."""

import json
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.canvas import Hand, draft, face, is_there, one, opened, press, saved
from tests.support.engine import Json, graph, node
from tests.support.person import Person, axis, tab_to, violations

pytestmark = [pytest.mark.takes(seconds=60), pytest.mark.long]

CONTROL = 2
ACE = "document.querySelector('.json-text').env.editor"
TEXT = f"{ACE}.getValue()"
LINE = f"{ACE}.session.getLine({ACE}.getCursorPosition().row)"
"""The line of the cursor."""
POPUP = "[...document.querySelectorAll('.ace_autocomplete')].find(one => one.checkVisibility())"


def small() -> Json:
    return graph(
        node("read", "transform", label="Read", output={"total": 42}),
        node("check", "condition", label="Large?", expression="nodes.read.total > 10.0"),
        edges=[("read", "check")],
    )


async def as_json(page: Page) -> None:
    """Turn to the JSON by keys."""
    await page.evaluate("document.querySelector('#editor-tabs a').focus()")
    await tab_to(page, "#editor-tabs a[href$='tab=json']")
    await page.press("Enter")
    await page.until(f"{one('.json-text')}.contains(document.activeElement)")


async def on_canvas(page: Page) -> None:
    """Leave the text by keys, and turn to the canvas."""
    await page.press("Escape")
    await page.press("Tab")
    assert not await page.evaluate(f"{one('.json-text')}.contains(document.activeElement)")
    await page.evaluate("document.querySelector('#editor-tabs a').focus()")
    await page.press("Enter")
    await page.until(f"{one('.json-view')} === null")


async def behind(page: Page, text: str) -> None:
    """Put the cursor behind a text that the editor has."""
    offset = f"{TEXT}.indexOf({json.dumps(text)}) + {len(text)}"
    await page.evaluate(
        f"{ACE}.moveCursorToPosition({ACE}.session.doc.indexToPosition({offset}));"
        f"{ACE}.clearSelection()"
    )


async def test_json_is_typed_completed_mended_and_undone(
    page: Page, person: Person, screens: Path
) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    hand = Hand(page)
    await as_json(page)
    assert await page.evaluate("location.search") == "?tab=json"
    first = await page.evaluate(TEXT)
    assert list(json.loads(first)) == ["triggerConfig", "graph"]
    assert first == json.dumps(json.loads(first), indent=2, ensure_ascii=False)

    await complete(page, hand, screens)
    await saved(page)
    nodes = (await draft(person, automation_id))["graph"]["nodes"]
    assert [one.get("notes") for one in nodes] == [None, "Why it is large"]
    await mend(page, hand, screens)
    await saved(page)
    await undo_on_both(page, hand, screens)
    await saved(page)
    now = await draft(person, automation_id)
    text = json.loads(await page.evaluate(TEXT))
    assert text["graph"]["nodes"] == now["graph"]["nodes"]
    assert text["graph"]["edges"] == now["graph"]["edges"]
    assert text["triggerConfig"] == now["triggerConfig"]


async def complete(page: Page, hand: Hand, screens: Path) -> None:
    """Write a key of a node with the list of keys, and its value."""
    await behind(page, '"label": "Large?"')
    await hand.type(",")
    await page.until(f"{one('.json-problems')}.innerText.includes('comma')")
    await hand.key("Enter")
    await hand.type('"')
    await page.until(f"{POPUP} !== undefined")
    await hand.type("note")
    await page.until(f"{POPUP}.querySelector('.ace_selected').textContent.startsWith('notes')")
    await page.screenshot(screens / "json-completion-light.png")
    await hand.key("Enter")
    await page.until(f'{TEXT}.includes(\'"notes": ""\')')
    await hand.type("Why it is large")
    await page.until(f"JSON.parse({TEXT}).graph.nodes.some(n => n.notes === 'Why it is large')")


async def mend(page: Page, hand: Hand, screens: Path) -> None:
    """Break the text, look at the canvas, and mend what is said at its line."""
    await behind(page, '"Why it is large"')
    await hand.key("Backspace")
    row = await page.evaluate(f"{ACE}.getCursorPosition().row")
    await page.until(f"{one('.json-problems')}.innerText.startsWith('Line {row + 1}')")
    assert await page.evaluate(f"{ACE}.session.getAnnotations()[0].row") == row
    assert await page.text(".save-state") == "Not saved"
    await page.until(f"{one('.ace_gutter-cell.ace_error')} !== null")
    await page.screenshot(screens / "json-error-light.png")
    # It is kept while one looks at the canvas.
    broken = await page.evaluate(TEXT)
    await on_canvas(page)
    await page.until(f"{one('.canvas-bar.wrong')}.innerText.includes('Line {row + 1}')")
    assert await page.evaluate(is_there("check"))
    await press(page, "Publish")
    await page.click("dialog#publish [type=submit]")
    await page.until(f'{one("dialog#publish .fault")}.innerText === "The draft isn\'t saved yet."')
    await page.press("Escape")
    await page.until(f"{one('dialog#publish')} === null")
    await press(page, "Fix in JSON")
    await page.until(f"{one('.json-text')} !== null")
    assert await page.evaluate(TEXT) == broken
    await behind(page, "Why it is large")
    await hand.type('"')
    await page.until(f"{one('.json-problems')} === null")


async def undo_on_both(page: Page, hand: Hand, screens: Path) -> None:
    """Write a node, see it on the canvas, and undo it there and in the text."""
    await behind(page, '"nodes": [')
    await page.send("Input.insertText", text='{"id":"tell","kind":"stop","label":"Tell"},')
    await saved(page)
    await on_canvas(page)
    await page.until(is_there("tell"))
    await page.screenshot(screens / "json-canvas-light.png")
    await press(page, "Undo")
    await page.until(f"{one(face('tell'))} === null")
    await press(page, "Redo")
    await page.until(is_there("tell"))
    await page.click(face("tell"))
    await page.until(f"{one('.panel-of')} !== null")
    await as_json(page)
    assert '{"id":"tell"' in await page.evaluate(LINE)
    await hand.key("z", CONTROL)
    await page.until(f"!{TEXT}.includes('\"tell\"')")
    assert "nodes" in await page.evaluate(LINE)
    await hand.key("z", CONTROL)
    await hand.key("z", CONTROL)
    await page.until(f"!{TEXT}.includes('Why it')")
    await hand.key("y", CONTROL)
    await hand.key("y", CONTROL)
    await page.until(f"{TEXT}.includes('Why it is large')")


FOUND = "document.querySelector('.find-bar [role=status]').innerText"
SELECTED = f"{ACE}.getSelectedText()"
SHIFT = 8


async def test_a_text_is_found_in_the_json_by_keys(page: Page, person: Person) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    hand = Hand(page)
    await as_json(page)
    await hand.key("f", CONTROL)
    await page.until("document.activeElement.matches('.find-bar input')")
    # Small and capital letters are the same, and nothing is a pattern.
    await hand.type("READ")
    await page.until(f"{FOUND} === '1 of 4'")
    first = await page.evaluate(f"{ACE}.getCursorPosition()")
    assert (await page.evaluate(SELECTED)).lower() == "read"
    marked = "document.querySelectorAll('.json-text .found-place').length"
    await page.until(f"{marked} >= 3")
    await hand.key("Enter")
    await page.until(f"{FOUND} === '2 of 4'")
    assert (await page.evaluate(f"{ACE}.getCursorPosition()"))["row"] > first["row"]
    for expected in ("1 of 4", "4 of 4"):
        await hand.key("Enter", SHIFT)
        await page.until(f"{FOUND} === '{expected}'")
    await page.click(".find-bar [aria-label='Next result']")
    await page.until(f"{FOUND} === '1 of 4'")
    assert await violations(page) == []
    await hand.key("Escape")
    await page.until(f"{one('.find-bar')} === null && {one('.json-text')}.matches('.ace_focus')")
    await page.until(f"{marked} === 0")
    # What is selected is looked for; what is typed meanwhile counts, too.
    await hand.key("f", CONTROL)
    await page.until(f"{FOUND} === '1 of 4'")
    await page.evaluate(f"{ACE}.session.insert({{ row: 0, column: 0 }}, ' read ')")
    await page.until(f"{FOUND}.endsWith('of 5')")
    await hand.key("f", CONTROL)
    await hand.type("a.*b[")
    await page.until(f"{FOUND} === 'No results'")
    await hand.key("Escape")
    await page.until(f"{one('.find-bar')} === null")
    await press(page, "Undo")
    await saved(page)


async def test_a_folded_place_is_unfolded_where_a_text_is_found(page: Page, person: Person) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id, "?tab=json")
    await page.until(f"{TEXT}.includes('Large?')")
    await page.evaluate(f"{ACE}.session.foldAll()")
    await press(page, "Find")
    await page.until("document.activeElement.matches('.find-bar input')")
    await Hand(page).type("Large?")
    await page.until(f"{FOUND} === '1 of 1'")
    line = f"{ACE}.getCursorPosition().row"
    assert not await page.evaluate(f"{ACE}.session.isRowFolded({line})")
    # Without a problem nothing is said below the text.
    assert await page.text(".json-foot [role=status]") == ""


async def test_a_change_of_another_person_is_kept_beside_a_text_with_a_fault(
    page: Page, person: Person
) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id, "?tab=json")
    await page.until(f"{TEXT}.includes('Large?')")
    await behind(page, '"label": "Large?"')
    hand = Hand(page)
    await page.evaluate(f"{ACE}.focus()")
    await hand.keys("Backspace", "Backspace")
    await page.until(f"{one('.json-problems')} !== null")
    content = small()
    content["nodes"].append(node("tell", "transform", label="Tell", output={}))
    path = f"{person.space.path}/automations/{automation_id}"
    await person.call("PATCH", path, {"graph": content})
    await page.until("document.body.innerText.includes('changed this draft')")
    assert "tell" not in await page.evaluate(TEXT)
    await hand.type('!"')
    await page.until(f"{TEXT}.includes('\"Large!\"') && {TEXT}.includes('\"tell\"')")
    # The cursor is where it was.
    assert await page.evaluate(f"{LINE}.slice(0, {ACE}.getCursorPosition().column)") == (
        '        "label": "Large!"'
    )
    await saved(page)
    nodes = (await draft(person, automation_id))["graph"]["nodes"]
    assert [one["label"] for one in nodes] == ["Read", "Large!", "Tell"]


async def test_a_text_with_a_fault_is_undone_folded_or_discarded(
    page: Page, person: Person
) -> None:
    content = small()
    content["nodes"][1]["config"]["expression"] = "1 >"
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id, "?tab=json")
    hand = Hand(page)
    first = await page.evaluate(TEXT)
    await behind(page, '"label": "Large?"')
    await page.evaluate(f"{ACE}.focus()")
    await hand.type("x")
    await page.until(f"{one('.save-state')}.innerText === 'Not saved'")
    await press(page, "Undo")
    await page.until(f"{TEXT} === {json.dumps(first)}")
    await saved(page)
    await press(page, "Redo")
    await page.until(f"{TEXT}.includes('\"Large?\"x')")
    # A problem in the list leads to its line.
    await press(page, "1 problem")
    await page.click(".problems .menu button")
    await page.until(f"{LINE}.includes('1 >')")
    await behind(page, '"nodes": [')
    await page.send(
        "Input.dispatchKeyEvent", type="rawKeyDown", key="F2", windowsVirtualKeyCode=113
    )
    await page.until(f"{ACE}.session.getAllFolds().length === 1")
    await on_canvas(page)
    await press(page, "Discard JSON changes")
    await page.until(f"{one('.canvas-bar.wrong')} === null")
    await as_json(page)
    assert await page.evaluate(TEXT) == first
    assert (await draft(person, automation_id))["graph"]["nodes"][1]["label"] == "Large?"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_the_json_is_read_by_everyone_and_fits(
    page: Page, person: Person, screens: Path, dark: bool
) -> None:
    theme = "dark" if dark else "light"
    content = small()
    content["nodes"][1]["config"]["expression"] = "1 >"
    automation_id = await person.automation(content, publish=False)
    await page.show(dark=dark)
    await opened(page, person, automation_id, "?tab=json")
    await page.until(f"{one('.json-problems')}.innerText.includes('does not compile')")
    found = await page.evaluate(f"{ACE}.session.getAnnotations().map(one => one.row)")
    line = await page.evaluate(f"{ACE}.session.getLine({found[0]})")
    assert '"expression": "1 >"' in line
    assert await violations(page) == []
    await page.screenshot(screens / f"json-{theme}.png")
    await behind(page, '"outcome": "')
    await Hand(page).key(" ", CONTROL)
    await page.until(f"{POPUP} !== undefined")
    await page.screenshot(screens / f"json-values-{theme}.png")
    await page.press("Escape")
    await page.show(dark=dark, width=390, height=780)
    await page.open(f"{person.home}/automations/{automation_id}/edit?tab=json")
    await page.until(f"{one('.json-problems')} !== null")
    await page.screenshot(screens / f"json-390-{theme}.png")
    assert await axis(page) <= 0
    await page.show()
