"""The table of a database in a real browser: cells are reached, typed, chosen and refused."""

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.grid import SHIFT, Table, table_of
from tests.support.person import Json
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=20)]

FIELDS: list[Json] = [
    {"label": "Price", "kind": "number", "settings": {"max": 1000}},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Shut"}]},
    {"label": "Sold", "kind": "checkbox"},
    {"label": "Due", "kind": "date"},
    {"label": "Notes", "kind": "long_text"},
]
ROWS: list[Json] = [
    {"title": "Tea", "price": 1, "state": "open"},
    {"title": "Milk", "price": 2},
    {"title": "Rice", "price": 3},
]


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    return await table_of(page, server, space, FIELDS, ROWS)


async def test_cells_are_reached_and_typed_by_keys_alone(table: Table) -> None:
    await table.open()
    await table.page.evaluate("document.querySelector('.sheet').focus()")
    await table.key("ArrowRight")
    await table.key("1")
    await table.type("2,5".replace(",", "."))
    await table.key("Enter")
    await table.shows(0, "price", "12.5")
    await table.type("")
    await table.key("7")
    await table.key("Tab")
    await table.shows(1, "price", "7")
    await table.holds(0, "price", 12.5)
    await table.holds(1, "price", 7)
    # Escape leaves the value as it was.
    await table.keys("ArrowLeft", "F2", "9", "Escape")
    await table.shows(1, "price", "7")
    await table.keys("Delete")
    await table.holds(1, "price", None)
    await table.key("Tab", SHIFT)
    active = "document.querySelector('.sheet').getAttribute('aria-activedescendant')"
    assert await table.page.evaluate(active) == "cell-1-0"


async def test_a_question_mark_is_typed_where_texts_are(table: Table, space: Space) -> None:
    shortcuts = "document.querySelector('#shortcuts[open]')"
    await table.open()
    await table.choose(0, "title")
    await table.keys("?", "Enter")
    await table.shows(0, "title", "?")
    await table.holds(0, "title", "?")
    assert await table.page.evaluate(shortcuts) is None
    # A checkbox takes no text, and the cells of a viewer take none.
    await table.keys("ArrowRight", "ArrowRight", "ArrowRight", "?")
    await table.page.until(f"{shortcuts} !== null")
    viewer, _ = await space.member(Role.VIEWER)
    await table.open(user_id=viewer)
    await table.choose(0, "title")
    await table.key("?")
    await table.page.until(f"{shortcuts} !== null")


async def test_a_refused_value_stays_as_typed_and_blocks_nothing(table: Table) -> None:
    await table.open()
    await table.choose(0, "price")
    await table.keys("c", "h", "e", "a", "p", "Enter")
    await table.keys("4", "Enter")
    await table.holds(1, "price", 4)
    await table.shows(0, "price", "cheap")
    await table.choose(0, "price")
    assert "Enter a valid number." in await table.page.text(".cell-fault")
    # The API refuses this one.
    await table.choose(2, "price")
    await table.keys("5", "0", "0", "0", "Enter")
    await table.page.until("document.querySelectorAll('.cell.refused').length === 2")
    await table.choose(2, "price")
    assert "at most 1000" in await table.page.text(".cell-fault")
    await table.shows(2, "price", "5000")
    await table.keys("6", "Enter")
    await table.holds(2, "price", 6)
    await table.page.until("document.querySelectorAll('.cell.refused').length === 1")
    assert (await table.stored(0))["data"]["price"] == 1
    table.page.problems.clear()  # the browser notes each answer of 400
    await table.choose(0, "price")
    await table.page.click(".cell-fault .link")
    await table.page.until("document.querySelector('.cell.refused') === null")


async def test_the_foot_leads_to_what_is_not_saved(table: Table) -> None:
    await table.open()
    for row in (0, 2):
        await table.choose(row, "price")
        await table.keys("n", "o", "Enter")
    await table.page.until("document.querySelectorAll('.cell.refused').length === 2")
    active = "document.querySelector('.cell.active').id"
    await table.choose(1, "state")
    for place in ("cell-2-1", "cell-0-1", "cell-2-1"):
        await table.page.click(".table-foot .link")
        await table.page.until(f"{active} === '{place}'")
    assert "Enter a valid number." in await table.page.text(".cell-fault")
    await table.keys("4", "Enter")
    await table.holds(2, "price", 4)


async def test_a_message_goes_with_the_next_act(table: Table) -> None:
    await table.open()
    await table.choose(0, "price")
    await table.clip(text="8")
    await table.says("Pasted 1 record")
    await table.key("Delete")
    await table.holds(0, "price", None)
    assert await table.page.text(".table-foot .said") == ""
