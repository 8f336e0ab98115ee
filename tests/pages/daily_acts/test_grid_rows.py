"""Rows and columns of a table in a real browser: added, copied, edited together, undone."""

import json

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.grid import CONTROL, SHIFT, Table, table_of
from tests.support.patience import eventually
from tests.support.person import Json, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=25), pytest.mark.long]

FIELDS: list[Json] = [
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Shut"}]},
    {"label": "Sold", "kind": "checkbox"},
]
ROWS: list[Json] = [{"title": f"Item {at}", "price": at} for at in range(6)]


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    return await table_of(page, server, space, FIELDS, ROWS)


async def listed(table: Table) -> list[Json]:
    found: list[Json] = (await table.person.call("GET", f"{table.path}/records"))["records"]
    return found


async def count(table: Table, wanted: int) -> None:
    """Wait until the database has this number of records."""

    async def is_so() -> bool:
        return len(await listed(table)) == wanted

    await eventually(is_so, what=f"{wanted} records")


async def press(page: Page, label: str, within: str = "#table") -> None:
    """Click the button of these words."""
    found = (
        f"[...document.querySelectorAll({within + ' button'!r})]"
        f".find(one => one.innerText.trim() === {label!r})"
    )
    await page.until(f"{found} && !{found}.disabled")
    await page.evaluate(f"{found}.setAttribute('data-pressed', '')")
    await page.click("[data-pressed]")
    await page.evaluate("document.querySelector('[data-pressed]')?.removeAttribute('data-pressed')")


async def test_many_rows_are_deleted_at_once_and_come_back(table: Table) -> None:
    await table.open()
    await table.choose(1, "price")
    await table.key(" ", SHIFT)
    await table.choose(3, "price")
    await table.page.evaluate(
        "document.querySelectorAll('.pick-row')[3].dispatchEvent(new MouseEvent('click',"
        " { bubbles: true, shiftKey: true }))"
    )
    assert "3 selected" in await table.page.text(".picked-bar")
    await press(table.page, "Delete")
    await count(table, 3)
    await table.says("Deleted 3 records")
    assert sum(one.endswith("/records/batch") for one in table.page.requests) == 1
    assert await table.page.text(".count-of") == "3 records"
    await table.shows(1, "title", "Item 4")
    await table.key("z", CONTROL)
    await count(table, 6)
    for at in range(6):
        await table.shows(at, "title", f"Item {at}")
    await table.key("z", CONTROL | SHIFT)
    await count(table, 3)


async def test_rows_are_added_duplicated_and_edited_together(table: Table) -> None:
    await table.open()
    await table.choose(0, "title")
    await table.key("Enter", SHIFT)
    await table.page.until(
        "document.querySelector('.sheet').getAttribute('aria-activedescendant') === 'cell-1-0'"
    )
    await table.keys("N", "e", "w", "Enter")
    await table.shows(1, "title", "New")
    await table.saved()
    assert {one["title"] for one in await listed(table)} >= {"New"}
    for row in (0, 1):
        await table.choose(row, "title")
        await table.key(" ", SHIFT)
    await press(table.page, "Duplicate")
    await count(table, 9)
    await table.shows(2, "title", "Item 0")
    await table.choose(0, "state")
    await table.key(" ", SHIFT)
    await table.choose(3, "state")
    await table.key(" ", SHIFT)
    await press(table.page, "Edit…")
    await table.page.evaluate(
        "(() => { const one = document.querySelector('[name=bulk-value]'); one.value = 'shut';"
        " one.dispatchEvent(new Event('change')); })()"
    )
    await press(table.page, "Save", "#bulk")
    await table.shows(0, "state", "Shut")
    await table.shows(3, "state", "Shut")
    await table.holds(0, "state", "shut")
    for _ in range(4):
        await table.key("z", CONTROL)
    await count(table, 6)
    await table.holds(0, "state", None)


async def test_all_records_are_those_that_are_loaded(
    page: Page, server: Server, space: Space
) -> None:
    rows: list[Json] = [{"title": f"Item {at}"} for at in range(203)]
    table = await table_of(page, server, space, FIELDS, rows)
    await table.open()
    box = ".sheet-head input[type=checkbox]"
    await page.until(
        f"document.querySelector({box!r}).ariaLabel === 'Select 200 records loaded so far'"
    )
    await page.click(box)
    assert "200 of 203 selected" in await page.text(".picked-bar")
    await table.choose(0, "title")
    await table.key("End", CONTROL)
    await page.until(f"document.querySelector({box!r}).ariaLabel === 'Select all 203 records'")
    await page.click(box)
    await page.until("document.querySelector('.picked-bar').innerText.includes('203 selected')")


async def test_the_foot_says_what_no_longer_matches(table: Table) -> None:
    condition = {"field": "price", "op": "lt", "value": 4}
    body = {"label": "Low", "kind": "table", "manifest": {"filter": condition}}
    view = await table.person.call("POST", f"{table.path}/views", body)
    await table.open(f"?view={view['id']}")
    count_of = "document.querySelector('.count-of').innerText"
    await table.page.until(f"{count_of} === '4 records'")
    await table.choose(1, "price")
    await table.keys("9", "Enter")
    await table.page.until(f"{count_of} === '3 records, 1 no longer matches the filter'")
    await table.choose(2, "price")
    await table.keys("9", "Enter")
    await table.page.until(f"{count_of} === '2 records, 2 no longer match the filter'")
    await table.key("z", CONTROL)
    await table.key("z", CONTROL)
    await table.page.until(f"{count_of} === '4 records'")


UNCOUNTED = """
(() => {
  const ask = window.fetch;
  // The rows come, and their number does not.
  const isCount = (how) => how?.body?.includes("table_rows");
  window.fetch = (path, how) => (isCount(how) ? new Promise(() => {}) : ask(path, how));
})()
"""


async def test_the_number_of_another_filter_is_not_shown(table: Table) -> None:
    condition = {"field": "price", "op": "lt", "value": 2}
    body = {"label": "Low", "kind": "table", "manifest": {"filter": condition}}
    view = await table.person.call("POST", f"{table.path}/views", body)
    await table.open(f"?view={view['id']}")
    await table.page.until("document.querySelector('.count-of').innerText === '2 records'")
    await table.page.evaluate(UNCOUNTED)
    wider = {"filter": condition | {"value": 4}}
    path = f"{table.path}/views/{view['id']}"
    changed = await table.person.call("PATCH", path, {"manifest": wider})
    change = f"new CustomEvent('viewchange', {{ detail: {json.dumps(changed)} }})"
    await table.page.evaluate(f"document.dispatchEvent({change})")
    await table.shows(3, "title", "Item 3")
    assert await table.page.text(".count-of") == "4 records"


async def test_new_rows_pass_the_filter_of_the_view(table: Table) -> None:
    conditions = [
        {"field": "state", "op": "eq", "value": "shut"},
        {"field": "sold", "op": "eq", "value": True},
        {"field": "price", "op": "lt", "value": 100},
    ]
    body = {"label": "Shut", "kind": "table", "manifest": {"filter": {"and": conditions}}}
    view = await table.person.call("POST", f"{table.path}/views", body)
    await table.open(f"?view={view['id']}")
    await press(table.page, "Add record", ".table-bar")
    await table.shows(0, "state", "Shut")
    await table.choose(0, "title")
    await table.clip(text="Tea\t1\tOpen\nMilk\t2")
    await table.shows(1, "state", "Shut")
    made = {one["title"]: one["data"] for one in await listed(table) if "sold" in one["data"]}
    assert made["Milk"] == {"title": "Milk", "price": 2, "state": "shut", "sold": True}
    # A value that is pasted is what was copied.
    assert made["Tea"] == {"title": "Tea", "price": 1, "state": "open", "sold": True}


async def test_fields_are_added_renamed_and_arranged_in_the_view(table: Table) -> None:
    view = await table.person.call("POST", f"{table.path}/views", {"label": "Mine"})
    await table.open(f"?view={view['id']}")
    page = table.page
    await page.click("[data-head='4']")
    await page.until("document.querySelector('[name=new-field-name]') !== null")
    await page.write("[name=new-field-name]", "Weight")
    await page.evaluate(
        "(() => { const one = document.querySelector('[name=new-field-kind]');"
        " one.value = 'number'; one.dispatchEvent(new Event('change')); })()"
    )
    await press(page, "Add", ".sheet-menu")
    await page.until("document.querySelector('[data-head=\"4\"]').innerText === 'Weight'")
    await page.evaluate("document.querySelector('[data-head=\"4\"]').focus()")
    await table.key("F2")
    await page.until("document.querySelector('.column-head > input') !== null")
    await page.evaluate("document.querySelector('.column-head > input').select()")
    await table.type("Mass")
    await table.key("Enter")
    await page.until("document.querySelector('[data-head=\"4\"]').innerText === 'Mass'")
    await page.click("[data-head='1']")
    await press(page, "Hide", ".sheet-menu")
    await page.until("document.querySelector('[data-head=\"1\"]').innerText === 'State'")

    async def kept() -> bool:
        shown = await table.person.call("GET", f"{table.path}/views/{view['id']}")
        return [(one["key"], one["visible"]) for one in shown["manifest"].get("fields", [])] == [
            *((key, True) for key in ("title", "state", "sold", "weight")),
            ("price", False),
        ]

    await eventually(kept, what="the columns in the view")
    labels = {
        one["label"]
        for one in (
            await table.person.call(
                "GET", f"{table.person.space.path}/databases/{table.database['id']}"
            )
        )["fields"]
    }
    assert "Mass" in labels
    for _ in range(2):
        await press(page, "Undo", ".table-bar")
    await page.until("document.querySelector('[data-head=\"1\"]').innerText === 'Price'")
    await page.until("document.querySelector('[data-head=\"4\"]').innerText === 'Weight'")


async def test_hidden_values_are_shown_and_copied(table: Table) -> None:
    fields: list[Json] = [{"key": "title"}, {"key": "state"}, {"key": "price", "visible": False}]
    body = {"label": "Short", "kind": "table", "manifest": {"fields": fields}}
    view = await table.person.call("POST", f"{table.path}/views", body)
    await table.open(f"?view={view['id']}")
    await table.choose(3, "title")
    await table.key(" ", SHIFT)
    await press(table.page, "Duplicate")
    await count(table, 7)
    assert [one["data"]["price"] for one in await listed(table)].count(3) == 2
    await table.page.click(".hidden-fields summary")
    await press(table.page, "Show Price", ".hidden-fields")
    await table.shows(2, "price", "2")


async def test_a_viewer_sees_no_controls(page: Page, server: Server, space: Space) -> None:
    table = await table_of(page, server, space, FIELDS, ROWS)
    user_id, _ = await space.member(Role.VIEWER)
    await table.open(user_id=user_id)
    await table.choose(0, "price")
    await table.keys("5", "Enter", "Delete")
    await table.clip(text="7")
    await table.shows(0, "price", "0")
    for hidden in (
        ".pick-row",
        ".new-field",
        ".fill-handle",
        ".table-bar [aria-keyshortcuts='Control+Z']",
    ):
        assert await page.evaluate(f"document.querySelector({hidden!r})") is None
    assert await page.evaluate("document.querySelector('.sheet').ariaReadOnly") == "true"
    assert not any(one.endswith("/batch") for one in page.requests)
    assert (await table.copied())["text"] == "0"


async def test_axe_finds_nothing_in_both_themes(table: Table) -> None:
    await table.open()
    await table.choose(1, "state")
    await table.key("Enter")
    await table.page.until("document.querySelector('.picker-list li') !== null")
    for dark in (False, True):
        await table.page.show(dark=dark)
        assert await violations(table.page) == []


async def test_a_cell_is_read_and_edited_on_a_phone(table: Table) -> None:
    await table.page.show(width=390, height=800)
    await table.open()
    await table.choose(1, "price")
    await table.keys("8", "Enter")
    await table.holds(1, "price", 8)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await table.page.evaluate(wide) == 0


@pytest.mark.parametrize("width", [390, 780])
async def test_the_foot_of_the_table_is_in_the_window(table: Table, width: int) -> None:
    await table.page.show(width=width, height=800)
    await table.open()
    place = "document.querySelector('.table-foot').getBoundingClientRect().bottom"
    assert await table.page.evaluate(place) <= 800


async def test_a_focused_head_is_beside_the_frozen_columns(
    page: Page, server: Server, space: Space
) -> None:
    fields: list[Json] = [{"label": f"Price {at}", "kind": "number"} for at in range(9)]
    table = await table_of(page, server, space, fields, [{"title": "Tea"}])
    await page.show(width=900)
    await table.open()
    await table.choose(0, "title")
    await table.keys("ArrowUp", *["ArrowRight"] * 9, *["ArrowLeft"] * 8)
    assert await page.evaluate("document.activeElement.dataset.head") == "1"
    left = "document.activeElement.getBoundingClientRect().left"
    frozen = "document.querySelector('.column-head.frozen').getBoundingClientRect().right"
    assert await page.evaluate(left) >= await page.evaluate(frozen)
