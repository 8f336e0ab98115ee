"""Cells of every kind in a real browser: chosen, searched, dropped, and written in a window."""

import json

import pytest

from tests.support.browser import Page
from tests.support.grid import CONTROL, SHIFT, Table, table_of
from tests.support.person import Json, Person
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=25), pytest.mark.long]

FIELDS: list[Json] = [
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Shut"}]},
    {"label": "Tags", "kind": "multi_select", "options": [{"name": "Red"}, {"name": "Blue"}]},
    {"label": "Sold", "kind": "checkbox"},
    {"label": "Due", "kind": "date"},
    {"label": "Seen", "kind": "datetime", "settings": {"timezone": "Europe/Berlin"}},
    {"label": "Owner", "kind": "person"},
    {"label": "Notes", "kind": "long_text"},
    {"label": "Papers", "kind": "file"},
]
ROWS: list[Json] = [{"title": "Tea"}, {"title": "Milk"}]


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    shops = await Person(server, space).call("POST", f"{space.path}/databases", {"label": "Shops"})
    for title in ("North", "South", "West"):
        await Person(server, space).call(
            "POST", f"/v1/databases/{shops['id']}/records", {"data": {"title": title}}
        )
    shop = {"label": "Shop", "kind": "relation", "settings": {"databaseId": shops["id"]}}
    return await table_of(page, server, space, [*FIELDS, shop], ROWS)


async def listed(page: Page, count: int) -> None:
    """Wait until the list of an editor has this number of entries."""
    await page.until(f"document.querySelectorAll('.picker-list li').length === {count}")


async def test_options_and_checkboxes_take_one_click(table: Table) -> None:
    await table.open()
    page = table.page
    await page.click(f"{table.cell(0, 'sold')} .tick-box")
    await table.holds(0, "sold", True)
    await table.choose(0, "state")
    await page.click(f"{table.cell(0, 'state')} .open-list")
    await listed(page, 2)
    await page.click(".picker-list li:nth-child(2)")
    await table.holds(0, "state", "shut")
    await table.choose(1, "tags")
    await table.key("b")
    await listed(page, 1)
    await table.key("Enter")
    await listed(page, 2)
    await table.keys("Enter", "Escape")
    await table.holds(1, "tags", ["blue", "red"])
    await table.key("z", CONTROL)
    await table.holds(1, "tags", None)


async def test_people_and_records_are_searched(table: Table) -> None:
    await table.open()
    page = table.page
    await table.choose(0, "owner")
    await table.key("Enter")
    await listed(page, 1)
    await table.keys("Enter", "Escape")
    await table.holds(0, "owner", [str(table.person.space.user_id)])
    await table.choose(0, "shop")
    await table.keys("o", "u")
    await listed(page, 1)
    await table.key("Enter")
    await listed(page, 3)
    await table.key("Escape")
    await table.shows(0, "shop", "South")
    await table.saved()
    related = (await table.stored(0))["related"]["shop"]
    assert [one["title"] for one in related] == ["South"]
    # Titles are looked up in a paste.
    await table.clip(text="North, West\nSouth")
    await table.shows(1, "shop", "South")
    await table.saved()
    related = (await table.stored(0))["related"]["shop"]
    assert sorted(one["title"] for one in related) == ["North", "West"]


async def test_days_and_moments_are_typed_in_the_order_of_the_reader(table: Table) -> None:
    await table.open()
    await table.choose(0, "due")
    await table.keys(*"1/31/26", "Enter")
    await table.holds(0, "due", "2026-01-31")
    await table.shows(0, "due", "01/31/2026")
    await table.choose(0, "seen")
    await table.keys(*"7/1/2026 14:30", "Enter")
    await table.shows(0, "seen", "07/01/2026 14:30")
    await table.saved()
    # The zone of the field.
    assert (await table.stored(0))["data"]["seen"].startswith("2026-07-01T12:30:00")
    # Looking at a value changes nothing.
    before = (await table.stored(0))["updatedAt"]
    await table.choose(0, "seen")
    await table.keys("Enter", "Enter")
    await table.saved()
    assert (await table.stored(0))["updatedAt"] == before


async def test_long_texts_have_a_window(table: Table) -> None:
    await table.open()
    page = table.page
    await table.choose(0, "notes")
    await table.key("Enter")
    await page.until("document.querySelector('.long-text textarea') === document.activeElement")
    await table.type("one\ntwo")
    await table.key("Enter", CONTROL)
    await table.holds(0, "notes", "one\ntwo")
    await page.until("document.querySelector('.long-text') === null")
    await table.key("ArrowDown", SHIFT)
    copied = await table.copied()
    assert copied["text"] == '"one\ntwo"\n'


async def test_files_are_dropped_on_a_cell(table: Table) -> None:
    await table.open()
    page = table.page
    await table.choose(1, "papers")
    cell = json.dumps(table.cell(1, "papers"))
    await page.evaluate(
        "(() => { const data = new DataTransfer();"
        " data.items.add(new File(['ten pounds'], 'Offer.txt', {type: 'text/plain'}));"
        f" document.querySelector({cell}).dispatchEvent(new DragEvent('drop',"
        " {dataTransfer: data, bubbles: true, cancelable: true})); })()"
    )
    await table.shows(1, "papers", "Offer.txt")
    await table.saved()
    assert len((await table.stored(1))["data"]["papers"]) == 1
    await table.open()
    await table.shows(1, "papers", "Offer.txt")
    await table.choose(1, "papers")
    await table.key("Delete")
    await table.holds(1, "papers", [])


async def test_the_table_is_searched_and_a_record_opens_beside(table: Table) -> None:
    await table.open()
    page = table.page
    await table.choose(0, "title")
    await table.key("f", CONTROL)
    await page.until("document.activeElement.type === 'search'")
    await table.type("milk")
    await page.until("document.querySelector('.find-bar [role=status]').innerText === '1 of 1'")
    await table.key("Escape")
    active = "document.querySelector('.sheet').getAttribute('aria-activedescendant')"
    await page.until(f"{active} === 'cell-1-0'")
    await table.key(" ")
    await page.until("document.querySelector('.beside h2').innerText === 'Milk'")
    await page.until("document.querySelector('.beside-content .properties') !== null")
    await page.click("[aria-label='Previous record']")
    await page.until("document.querySelector('.beside h2').innerText === 'Tea'")
    await table.key("Escape")
    await page.until("document.querySelector('.beside') === null")
    await page.until("document.activeElement.classList.contains('sheet')")
