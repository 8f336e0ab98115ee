"""Whole blocks of a page: selected by mouse and keys, copied, moved and dragged, with undo."""

import json
from pathlib import Path

import pytest

from tests.pages.daily_acts.test_notes import (
    new_note,
    opened,
    place_caret,
    undo,
    until_stored,
    words,
)
from tests.pages.daily_acts.view_acts import middle, pull
from tests.support.browser import Page
from tests.support.person import Person, violations

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

ARROWS = {"ArrowUp": 38, "ArrowDown": 40}
ALT, CONTROL, SHIFT = 1, 2, 8


async def letters(page: Page, person: Person, text: str = "abcd") -> str:
    """A page of paragraphs of one letter each."""
    surface_id = await new_note(person, *(words(letter) for letter in text))
    await opened(page, person, surface_id)
    return surface_id


async def until_letters(person: Person, surface_id: str, text: str) -> None:
    await until_stored(person, surface_id, [["paragraph", letter] for letter in text])


async def key(page: Page, name: str, modifiers: int = 0) -> None:
    code = ARROWS.get(name) or {"Escape": 27, "Delete": 46}.get(name) or ord(name.upper())
    for kind in ("rawKeyDown", "keyUp"):
        await page.send(
            "Input.dispatchKeyEvent",
            type=kind, key=name, code=name, windowsVirtualKeyCode=code, modifiers=modifiers,
        )  # fmt: skip


def text(place: int) -> str:
    return f".note-block:nth-of-type({place + 1}) [data-text]"


async def beginning(page: Page, place: int) -> list[float]:
    """A point in the first letter of a block."""
    at: list[float] = await page.evaluate(
        f"(() => {{ const at = document.querySelector({json.dumps(text(place))})"
        ".getBoundingClientRect(); return [at.x + 3, at.y + at.height / 2]; })()"
    )
    return at


SELECTED = (
    "[...document.querySelectorAll('.note-block.selected [data-text]')]"
    ".map(one => one.innerText).join('')"
)


async def clip(page: Page, kind: str) -> None:
    """Copy or cut into a clipboard that `pasted` pastes from."""
    await page.evaluate(
        "(() => { window.clip = new DataTransfer(); document.activeElement.dispatchEvent("
        f"new ClipboardEvent({json.dumps(kind)},"
        " { clipboardData: window.clip, bubbles: true, cancelable: true })); })()"
    )


async def pasted(page: Page) -> None:
    await page.evaluate(
        "document.activeElement.dispatchEvent(new ClipboardEvent('paste',"
        " { clipboardData: window.clip, bubbles: true, cancelable: true }))"
    )


async def test_blocks_are_selected_by_mouse_copied_cut_and_pasted(
    page: Page, person: Person, screens: Path
) -> None:
    surface_id = await letters(page, person)
    await pull(page, await beginning(page, 1), await beginning(page, 2))
    await page.until(f"{SELECTED} === 'bc'")
    assert await page.evaluate("document.activeElement.id") == "note-body"
    assert await page.evaluate("getSelection().isCollapsed") is True
    await page.screenshot(screens / "note-selected.png")
    assert await violations(page) == []
    await clip(page, "copy")
    assert await page.evaluate("window.clip.getData('text/plain')") == "b\nc"
    await pasted(page)
    await until_letters(person, surface_id, "abcbcd")
    await undo(page)
    await until_letters(person, surface_id, "abcd")
    # Upwards, and with Shift from the block with the caret.
    await pull(page, await beginning(page, 2), await beginning(page, 0))
    await page.until(f"{SELECTED} === 'abc'")
    await place_caret(page, 3, 0)
    await page.until(f"{SELECTED} === ''")
    x, y = await beginning(page, 2)
    for kind in ("mousePressed", "mouseReleased"):
        await page.send(
            "Input.dispatchMouseEvent",
            type=kind, x=x, y=y, button="left", clickCount=1, modifiers=SHIFT,
        )  # fmt: skip
    await page.until(f"{SELECTED} === 'cd'")
    await clip(page, "cut")
    await until_letters(person, surface_id, "ab")
    await undo(page)
    await until_letters(person, surface_id, "abcd")
    await page.until(f"{SELECTED} === 'cd'")
    # Within one block its text is selected.
    await place_caret(page, 0, 0)
    at = await beginning(page, 0)
    await pull(page, [at[0] - 2, at[1]], [at[0] + 60, at[1]])
    assert await page.evaluate("getSelection().toString()") == "a"
    assert await page.evaluate(SELECTED) == ""


async def test_blocks_are_selected_and_changed_by_keys_alone(page: Page, person: Person) -> None:
    surface_id = await letters(page, person)
    await place_caret(page, 0, 1)
    await key(page, "ArrowDown", SHIFT)
    await page.until(f"{SELECTED} === 'a'")
    await key(page, "ArrowDown", SHIFT)
    await page.until(f"{SELECTED} === 'ab'")
    await key(page, "ArrowDown", ALT)
    await until_letters(person, surface_id, "cabd")
    assert await page.evaluate(SELECTED) == "ab"
    await key(page, "ArrowDown", ALT)
    await until_letters(person, surface_id, "cdab")
    await key(page, "ArrowUp", ALT)
    await until_letters(person, surface_id, "cabd")
    await undo(page)
    await undo(page)
    await until_letters(person, surface_id, "cabd")
    await undo(page)
    await until_letters(person, surface_id, "abcd")
    await page.until(f"{SELECTED} === 'ab'")
    await key(page, "d", CONTROL)
    await until_letters(person, surface_id, "ababcd")
    await page.until(
        "[...document.querySelectorAll('.note-block')].map(one =>"
        " one.classList.contains('selected')).join() === 'false,false,true,true,false,false'"
    )
    await key(page, "Delete")
    await until_letters(person, surface_id, "abcd")
    await undo(page)
    await until_letters(person, surface_id, "ababcd")
    await undo(page)
    await until_letters(person, surface_id, "abcd")


async def test_the_block_of_the_caret_is_duplicated_and_moved_by_keys(
    page: Page, person: Person
) -> None:
    surface_id = await letters(page, person, "ab")
    await place_caret(page, 0, 1)
    await key(page, "d", CONTROL)
    await until_letters(person, surface_id, "aab")
    await page.send("Input.insertText", text="x")
    await until_stored(person, surface_id, [["paragraph", one] for one in ("a", "ax", "b")])
    await key(page, "ArrowDown", ALT)
    await until_stored(person, surface_id, [["paragraph", one] for one in ("a", "b", "ax")])
    for expected in ("a ax b", "a a b", "a b"):
        await undo(page)
        await until_stored(person, surface_id, [["paragraph", one] for one in expected.split()])


async def test_selected_blocks_are_dragged_together(page: Page, person: Person) -> None:
    surface_id = await letters(page, person)
    await pull(page, await beginning(page, 0), await beginning(page, 1))
    await page.until(f"{SELECTED} === 'ab'")
    grip = await middle(page, ".note-block:nth-of-type(2) .grip")
    target = await beginning(page, 3)
    await pull(page, grip, [target[0], target[1] + 8])
    await until_letters(person, surface_id, "cdab")
    await page.until(f"{SELECTED} === 'ab'")
    await undo(page)
    await until_letters(person, surface_id, "abcd")
    # A block that is not selected is dragged alone, to before another one.
    await key(page, "Escape")
    grip = await middle(page, ".note-block:nth-of-type(4) .grip")
    target = await beginning(page, 0)
    await pull(page, grip, [target[0], target[1] - 8])
    await until_letters(person, surface_id, "dabc")
    await undo(page)
    await until_letters(person, surface_id, "abcd")
