"""Fields beside the table: settings, options, conversions and deletions, by mouse and by keys."""

from pathlib import Path

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.grid import Table, table_of
from tests.support.patience import eventually
from tests.support.person import Json, axis, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

HOSTILE = "<img src=x onerror=alert(1)>"
FIELDS: list[Json] = [
    {"label": "Price", "kind": "number"},
    {"label": "Note", "kind": "text"},
    {
        "label": "State",
        "kind": "status",
        "options": [{"name": "Open", "color": "blue"}, {"name": HOSTILE, "color": "green"}],
    },
]
ROWS: list[Json] = [
    {"title": f"Item {at}", "price": at, "note": "x" if at % 2 else str(at), "state": "open"}
    for at in range(4)
]
PANEL = "document.querySelector('.field-panel')"


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    table = await table_of(page, server, space, FIELDS, ROWS)
    await table.open()
    return table


async def menu(table: Table, head: int, entry: str) -> None:
    """Choose an entry of the menu of a column."""
    await table.page.click(f"[data-head='{head}']")
    await table.page.until("document.querySelector('.sheet-menu') !== null")
    await _press(table.page, ".sheet-menu button", entry)


async def _press(page: Page, selector: str, text: str) -> None:
    buttons = f"[...document.querySelectorAll({selector!r})]"
    one = f"{buttons}.find(one => one.innerText.trim().startsWith({text!r}))"
    await page.until(f"{one} !== undefined")
    await page.evaluate(f"{one}.setAttribute('data-pressed', '')")
    await page.click("[data-pressed]")
    await page.evaluate("document.querySelector('[data-pressed]')?.removeAttribute('data-pressed')")


async def press(page: Page, text: str) -> None:
    """Press a button of the panel."""
    await _press(page, ".field-panel :is(.buttons, .actions) :is(button, a)", text)


async def field(table: Table, key: str) -> Json | None:
    path = f"{table.person.space.path}/databases/{table.database['id']}"
    found = await table.person.call("GET", path)
    return next((one for one in found["fields"] if one["key"] == key), None)


async def options(table: Table) -> list[tuple[str, str]]:
    state = await field(table, "state")
    assert state is not None
    return [(one["name"], one["color"]) for one in state["options"]]


async def test_options_are_changed_beside_the_table_and_undone(table: Table, screens: Path) -> None:
    page = table.page
    await menu(table, 3, "Settings")
    await page.until(f"{PANEL}.querySelector('#field') !== null")
    await page.screenshot(screens / "field.png")
    assert await violations(page) == []
    await press(page, "Add option")
    await page.until("document.activeElement.name === 'options.2.name'")
    await table.type("Late")
    await page.evaluate("document.querySelector('[name=\"options.2.color\"]').value = 'red'")
    await page.click("[aria-label='Move option 3 up']")
    await page.until("document.activeElement.ariaLabel === 'Move Late up'")
    await table.key("Enter")
    await page.until("document.querySelector('[name=\"options.0.name\"]').value === 'Late'")
    await press(page, "Save")
    await page.until(f"{PANEL} === null")
    before = [("Open", "blue"), (HOSTILE, "green")]
    assert await options(table) == [("Late", "red"), *before]
    await table.says("Saved State")
    await _press(page, ".table-bar button", "Undo")

    async def is_undone() -> bool:
        return await options(table) == before

    await eventually(is_undone, what="the options as they were")
    await table.shows(0, "state", "Open")
    assert await page.evaluate("document.querySelector('#table img') === null")


async def test_a_field_that_others_changed_is_refused_in_the_panel(table: Table) -> None:
    page = table.page
    await menu(table, 1, "Settings")
    await page.until(f"{PANEL}.querySelector('#field') !== null")
    path = f"{table.path}/fields/{table.database['fields'][1]['id']}"
    await table.person.call("PATCH", path, {"label": "Theirs"})
    await page.evaluate("document.querySelector('.field-panel [name=label]').value = 'Mine'")
    await press(page, "Save")
    await page.until(f"{PANEL}.querySelector('.fault') !== null")
    price = await field(table, "price")
    assert price is not None
    assert price["label"] == "Theirs"
    assert (
        await page.evaluate("document.querySelector('.field-panel [name=label]').value") == "Mine"
    )
    page.problems.clear()  # the browser notes each answer of 409
    # A refused form is not saved; the panel closes by a key.
    await page.evaluate("document.querySelector('[aria-label=\"Close field\"]').focus()")
    await table.key("Escape")
    await page.until(f"{PANEL} === null && document.activeElement.classList.contains('sheet')")


async def test_a_conversion_shows_what_does_not_fit_first(table: Table, screens: Path) -> None:
    page = table.page
    await menu(table, 2, "Change type")
    await page.until(f"{PANEL}.querySelector('select') !== null")
    await page.evaluate(
        f"(one => {{ one.value = 'number'; one.dispatchEvent(new Event('change',"
        f" {{ bubbles: true }})); }})({PANEL}.querySelector('select'))"
    )
    await page.until(f"{PANEL}.innerText.includes('2 of 4 values do not fit')")
    await page.screenshot(screens / "conversion.png")
    assert await violations(page) == []
    await press(page, "Convert to Number")
    await page.until(f"{PANEL}.innerText.includes('2 values converted, 2 deleted')")
    await table.shows(2, "note", "2")
    await table.shows(1, "note", "")
    note = await field(table, "note")
    assert note is not None
    assert note["kind"] == "number"


async def test_a_field_is_deleted_after_its_uses_are_shown(table: Table) -> None:
    page = table.page
    expression = {"label": "Twice", "kind": "formula"}
    settings = {"expression": "record.price * 2", "resultKind": "number"}
    await table.person.call("POST", f"{table.path}/fields", {**expression, "settings": settings})
    await menu(table, 1, "Settings")
    await press(page, "Delete")
    await page.until(f"{PANEL}.querySelector('dialog[open]').innerText.includes('Twice')")
    await _press(page, ".field-panel dialog[open] button", "Back")
    await page.until(f"{PANEL}.querySelector('dialog[open]') === null")
    await page.click("[aria-label='Close field']")
    await menu(table, 2, "Settings")
    await press(page, "Delete")
    await page.until(f"{PANEL}.querySelector('dialog[open]') !== null")
    await _press(page, ".field-panel dialog[open] button", "Delete")
    await page.until(f"{PANEL} === null")
    await page.until("document.querySelector('.cell[data-key=note]') === null")
    assert await field(table, "note") is None


async def test_the_panel_fits_a_narrow_dark_screen(table: Table, screens: Path) -> None:
    page = table.page
    await page.show(dark=True, width=390, height=800)
    await page.evaluate("document.querySelector('.sheet').scrollLeft = 600")
    await menu(table, 3, "Settings")
    await page.until(f"{PANEL}.querySelector('#field') !== null")
    await page.screenshot(screens / "field-narrow.png")
    assert await axis(page) == 0
    await page.show()


async def test_a_viewer_has_no_settings_of_fields(page: Page, server: Server, space: Space) -> None:
    table = await table_of(page, server, space, FIELDS, ROWS)
    viewer, _ = await space.member(Role.VIEWER)
    await table.open(user_id=viewer)
    await page.click("[data-head='1']")
    await page.until("document.querySelector('.sheet-menu') !== null")
    assert "Settings" not in await page.text(".sheet-menu")


async def test_a_table_without_a_view_shows_all_its_fields(
    page: Page, server: Server, space: Space
) -> None:
    fields = [{"label": f"Field {at}", "kind": "number"} for at in range(16)]
    table = await table_of(page, server, space, fields, [{"title": "Tea"}])
    await table.open()
    heads = "document.querySelectorAll('#table [data-head-cell]').length"
    assert await page.evaluate(heads) == 17
    assert await page.evaluate("document.querySelector('.hidden-fields')") is None
