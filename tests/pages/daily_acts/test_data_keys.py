"""Acts with data by the keyboard alone: no test here presses a mouse."""

import json

import pytest

from tests.pages.daily_acts.view_acts import FIELDS as TASK_FIELDS
from tests.pages.daily_acts.view_acts import one, ready, stored, tasks, view
from tests.support.browser import Page
from tests.support.grid import CONTROL, SHIFT, Table, table_of
from tests.support.patience import eventually
from tests.support.person import Json, Person, sign_in, tab_to
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

FIELDS: list[Json] = [
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Shut"}]},
    {"label": "Owner", "kind": "person"},
]
ROWS: list[Json] = [{"title": title, "price": at} for at, title in enumerate(("Tea", "Milk"))]
FOCUS = "document.activeElement"
ALT = 1


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    table = await table_of(page, server, space, FIELDS, ROWS)
    await table.open()
    await tab_to(page, ".sheet")
    return table


@pytest.fixture
async def person(page: Page, server: Server, space: Space) -> Person:
    await sign_in(page, server, space)
    return Person(server, space)


async def until_focus(page: Page, selector: str) -> None:
    await page.until(f"{FOCUS}.matches({json.dumps(selector)})")


async def press(table: Table, words: str, within: str = "main, .sheet-menu, dialog[open]") -> None:
    """Tab to the button or link of these words, and press Enter."""
    named = ", ".join(f":is({within}) {tag}" for tag in ("button", "a", "summary"))
    found = f"[...document.querySelectorAll({json.dumps(named)})].find(one =>"
    found += f" one.innerText.trim() === {json.dumps(words)} && one.checkVisibility())"
    await table.page.until(f"{found} !== undefined")
    await table.page.evaluate(f"{found}.setAttribute('data-by-keys', '')")
    await tab_to(table.page, "[data-by-keys]")
    await table.page.evaluate(f"{FOCUS}.removeAttribute('data-by-keys')")
    await table.key("Enter")


async def head(table: Table, at: int) -> None:
    """Go up from the first row to the heads, and along them."""
    await table.page.evaluate("document.querySelector('.sheet').focus()")
    await table.key("Home", CONTROL)
    await table.key("ArrowUp")
    await until_focus(table.page, "[data-head]")
    while (place := int(await table.page.evaluate(f"{FOCUS}.dataset.head"))) != at:
        await table.key("ArrowRight" if place < at else "ArrowLeft")
    await until_focus(table.page, f"[data-head='{at}']")


async def entry(table: Table, words: str) -> None:
    """Open the menu of the head, and go down to an entry."""
    await table.key("Enter")
    await table.page.until("document.querySelector('.sheet-menu') !== null")
    for _ in range(14):
        if await table.page.evaluate(f"{FOCUS}.innerText") == words:
            break
        await table.key("ArrowDown")
    await table.key("Enter")


async def heads(table: Table) -> list[str]:
    found: list[str] = await table.page.evaluate(
        "[...document.querySelectorAll('[data-head]')].map(one => one.innerText)"
    )
    return found[:-1]


async def test_columns_are_made_and_arranged_by_keys_alone(table: Table) -> None:
    page = table.page
    view_id = await view(table.person, table.database["id"])
    await table.open(f"?view={view_id}")
    await head(table, 4)
    await table.key("Enter")
    await until_focus(page, "[name=new-field-name]")
    await table.type("Weight")
    await table.key("Tab")
    await table.key("n")
    await page.until(f"{FOCUS}.value === 'number'")
    await press(table, "Add", ".sheet-menu")
    await page.until("document.querySelectorAll('[data-head]').length === 6")
    await head(table, 4)
    await table.key("F2")
    await page.until(f"{FOCUS}.matches('.column-head > input')")
    await table.type("Mass")
    await table.key("Enter")
    await page.until(one("[data-head='4']") + ".innerText === 'Mass'")
    await head(table, 4)
    await table.key("ArrowLeft", ALT)
    await page.until(one("[data-head='3']") + ".innerText === 'Mass'")
    width = one("[data-head-cell='3']") + ".offsetWidth"
    before = await page.evaluate(width)
    await head(table, 3)
    await table.key("ArrowRight", SHIFT)
    await page.until(f"{width} === {before + 20}")
    await head(table, 1)
    await entry(table, "Hide")
    await page.until(one("[data-head='1']") + ".innerText === 'State'")
    assert await heads(table) == ["Title", "State", "Mass", "Owner"]


async def test_fields_get_options_and_another_type_by_keys_alone(table: Table) -> None:
    page = table.page
    await head(table, 2)
    await entry(table, "Settings, options, delete")
    await page.until("document.querySelector('.field-panel #field') !== null")
    await press(table, "Add option")
    await until_focus(page, "[name='options.2.name']")
    await table.type("Late")
    await table.key("Enter")
    await page.until("document.querySelector('.field-panel') === null")
    await head(table, 1)
    await entry(table, "Change type")
    await page.until("document.querySelector('.field-panel select') !== null")
    await tab_to(page, ".field-panel select")
    await table.key("t")
    await page.until(f"{FOCUS}.value === 'text'")
    await page.until("document.querySelector('.field-panel').innerText.includes('Convert to Text')")
    await press(table, "Convert to Text", ".field-panel")
    path = f"{table.person.space.path}/databases/{table.database['id']}"

    async def is_there() -> bool:
        fields = {one["label"]: one for one in (await table.person.call("GET", path))["fields"]}
        options = [one["name"] for one in fields["State"]["options"]]
        return fields["Price"]["kind"] == "text" and options == ["Open", "Shut", "Late"]

    await eventually(is_there, "the fields as they were made")


async def test_rows_are_added_edited_and_deleted_by_keys_alone(table: Table) -> None:
    page = table.page
    await table.key("Home", CONTROL)
    await table.key("Enter", SHIFT)
    active = one(".sheet") + ".getAttribute('aria-activedescendant')"
    await page.until(f"{active} === 'cell-1-0'")
    await table.keys("N", "e", "w", "Enter")
    await table.shows(1, "title", "New")
    await table.saved()
    await table.key("Home", CONTROL)
    await table.key(" ", SHIFT)
    await table.key("ArrowDown")
    await table.key(" ", SHIFT)
    await page.until("document.querySelector('.picked-bar').innerText.includes('2 selected')")
    await table.key("ArrowRight")
    # Escape leads out of the cells, however many there are.
    await table.key("Escape")
    await press(table, "Edit…", ".picked-bar")
    await tab_to(page, "[name=bulk-value]")
    await table.type("7")
    await table.key("Enter")
    await table.shows(0, "price", "7")
    await table.shows(1, "price", "7")
    await tab_to(page, ".sheet")
    await table.key("Escape")
    await press(table, "Delete", ".picked-bar")
    await page.until("document.querySelector('.count-of').innerText === '1 record'")
    await tab_to(page, ".sheet")
    await table.key("z", CONTROL)
    await page.until("document.querySelector('.count-of').innerText === '3 records'")


async def test_a_record_is_filled_and_discussed_by_keys_alone(table: Table) -> None:
    page = table.page
    # Cells that another program has copied.
    await table.key("Home", CONTROL)
    await table.clip(text="Coffee\t5")
    await table.shows(0, "title", "Coffee")
    await table.shows(0, "price", "5")
    await table.key("z", CONTROL)
    await table.shows(0, "price", "0")
    # A person, and the record beside with what has happened to it.
    await table.key("Home", CONTROL)
    await table.keys("ArrowRight", "ArrowRight", "ArrowRight", "Enter")
    await page.until("document.querySelector('.picker-list li') !== null")
    await table.keys("Enter", "Escape")
    await table.holds(0, "owner", [str(table.person.space.user_id)])
    await table.key(" ")
    await page.until("document.querySelector('.beside [aria-label=History]') !== null")
    assert "Owner" in await page.text(".beside [aria-label=History]")
    await tab_to(page, ".beside form.say textarea")
    await table.type("Look at this, @")
    await page.until("document.querySelector('.mention-hits li') !== null")
    await table.key("Enter")
    await page.until("document.querySelector('.mention-hits').hidden")
    await table.key("Enter", CONTROL)
    await page.until("document.querySelector('.beside .thread .mention') !== null")


async def until_kept(person: Person, database_id: str, view_id: str, key: str) -> None:
    async def is_kept() -> bool:
        return key in (await stored(person, database_id, view_id))["manifest"]

    await eventually(is_kept, f"{key} in the view")


async def test_a_view_is_arranged_by_keys_alone(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    keys = Table(page, person, {"id": database_id})
    await page.open(f"{person.home}/databases/{database_id}?view={view_id}")
    await ready(page)
    await tab_to(page, "[data-panel=filter-panel]")
    await keys.key("Enter")
    await press(keys, "Add group")
    await tab_to(page, "#filter-panel .filter-group .filter-group .filter-field")
    await keys.key("P")
    await page.until(f"{FOCUS}.value === 'price'")
    await keys.keys("Tab", "Tab")
    await keys.type("9")
    await page.until(one(".match-count") + ".innerText === '1 record matches'")
    await tab_to(page, "#filter-panel [data-save]")
    await keys.key("Enter")
    await until_kept(person, database_id, view_id, "filter")
    await keys.key("Escape")
    await tab_to(page, "[data-panel=sort-panel]")
    await keys.key("Enter")
    await press(keys, "Add sort")
    await tab_to(page, "#sort-panel [data-save]")
    await keys.key("Enter")
    await until_kept(person, database_id, view_id, "sorts")
    await keys.key("Escape")
    await tab_to(page, "[data-panel=group-panel]")
    await keys.key("Enter")
    await tab_to(page, "#group-panel select")
    await keys.key("S")
    await page.until(f"{FOCUS}.value === 'state'")
    await tab_to(page, "#group-panel [data-save]")
    await keys.key("Enter")
    await until_kept(person, database_id, view_id, "groupBy")
    await page.until("document.querySelector('.group-head') !== null")
    manifest = (await stored(person, database_id, view_id))["manifest"]
    assert manifest["filter"] == {"and": [{"or": [{"field": "price", "op": "eq", "value": 9}]}]}
    assert (len(manifest["sorts"]), manifest["groupBy"]) == (1, [{"field": "state"}])


async def test_a_board_is_made_by_keys_alone(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    keys = Table(page, person, {"id": database_id})
    await page.open(f"{person.home}/databases/{database_id}")
    await ready(page)
    await tab_to(page, "[data-new-view]")
    await keys.key("Enter")
    await until_focus(page, "dialog[open] input")
    await keys.type("Week")
    await keys.key("Tab")
    await keys.key("b")
    await page.until(f"{FOCUS}.value === 'board'")
    await press(keys, "Create", "dialog[open]")
    await page.until("document.querySelectorAll('[data-card]').length > 0")


async def test_tables_come_and_go_by_keys_alone(page: Page, person: Person) -> None:
    keys = Table(page, person, {"id": ""})
    await page.open(f"{person.home}/databases/new")
    await tab_to(page, "[name=label]")
    await keys.type("Work")
    await tab_to(page, "input[name=template]")
    await keys.key("ArrowDown")
    assert await page.evaluate(f"{FOCUS}.value !== '' && {FOCUS}.checked")
    await press(keys, "Create")
    await page.until("document.querySelector('h1').innerText === 'Work'")
    await page.open(f"{person.home}/import")
    await tab_to(page, "#text")
    await keys.type("name,price\nTea,3\nMilk,1\n")
    await tab_to(page, "form:has(#text) button[type=submit]")
    await keys.key("Enter")
    await page.until("document.querySelector(\"form[action$='/start']\") !== null")
    await tab_to(page, "form[action$='/start'] .primary")
    await keys.key("Enter")
    await page.until("document.querySelector(\"form[action$='/undo'] button\") !== null")
    await tab_to(page, "form[action$='/undo'] button")
    await keys.key("Enter")
    await page.until("document.querySelector(\"form[action$='/undo']\") === null")
    database_id = await tasks(person)
    await page.open(f"{person.home}/databases/{database_id}")
    await tab_to(page, ".more-actions summary")
    await keys.key("Enter")
    await press(keys, "Export")
    await page.until(f"{one('#export[open]')} !== null")
    # What an entry opens gives the focus back to its menu, which is closed.
    await keys.key("Escape")
    await until_focus(page, ".more-actions:not([open]) summary")
    await keys.key("Enter")
    await press(keys, "Export")
    await tab_to(page, "#export button[type=submit]")
    await keys.key("Enter")
    await page.until("document.querySelector('a[download]') !== null")
    await tab_to(page, "a[download]")
    body = {"label": "Ask", "databaseId": database_id, "public": True, "title": "Tell us"}
    fields = [{"key": "title", "required": True}]
    form = await person.call("POST", f"{person.space.path}/forms", {**body, "fields": fields})
    await page.open(f"{person.server.url}/forms/{form['itemId']}")
    await tab_to(page, "[name='field.title']")
    await keys.type("Coffee")
    await keys.key("Enter")
    await page.until("document.querySelector('form') === null")


async def test_a_file_is_chosen_by_keys_alone(page: Page, person: Person) -> None:
    database_id = await tasks(person, [*TASK_FIELDS, {"label": "Papers", "kind": "file"}])
    listed = await person.call("GET", f"/v1/databases/{database_id}/records")
    await page.open(f"{person.server.url}/records/{listed['records'][0]['id']}")
    await tab_to(page, "form.upload input[type=file]")
