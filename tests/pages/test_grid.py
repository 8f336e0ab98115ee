"""The grid of a database in a real browser: keys, typing into cells, and what an import drops."""

import base64
import json
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.person import Person, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=15)

FIELDS = [
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Shut"}]},
]
FOCUSED = "document.activeElement.tagName"


@pytest.fixture
async def goods(server: Server, space: Space) -> str:
    """The path of a database with a few records."""
    person = Person(server, space)
    body = {"label": "Goods", "fields": FIELDS}
    made = await person.call("POST", f"{space.path}/databases", body)
    for title in ("Tea", "Milk"):
        row = {"data": {"title": title, "price": 1}}
        await person.call("POST", f"/v1/databases/{made['id']}/records", row)
    return str(made["id"])


async def open_grid(page: Page, server: Server, space: Space, database_id: str) -> None:
    await sign_in(page, server, space)
    await page.open(f"{server.url}/workspaces/{space.id}/databases/{database_id}")
    await page.evaluate("document.querySelector('[data-grid] td').focus()")


@pytest.mark.long
async def test_cells_are_reached_and_typed_by_keys_alone(
    page: Page, server: Server, space: Space, goods: str, screens: Path
) -> None:
    await open_grid(page, server, space, goods)
    await page.press("Enter")
    await page.until(
        "document.querySelector('[data-grid] td form input[name=\"field.price\"]') !== null"
    )
    await page.until(f"{FOCUSED} === 'INPUT'")
    await page.press("Escape")
    await page.until("!document.querySelector('[data-grid] td form')")
    await page.until(f"{FOCUSED} === 'TD'")
    await page.press("Enter")
    await page.until(f"{FOCUSED} === 'INPUT'")
    await page.write("[data-grid] td form input[name='field.price']", "12.5")
    await page.press("Enter")
    await page.until("document.querySelector('[data-grid] td').innerText.trim() === '12.5'")
    await page.until(f"{FOCUSED} === 'TD'")
    await page.press("ArrowRight")
    await page.press("Enter")
    await page.until("document.activeElement.tagName === 'SELECT'")
    await page.screenshot(screens / "cell.png")
    shown = await Person(server, space).call("GET", f"/v1/databases/{goods}/records")
    assert sorted(one["data"]["price"] for one in shown["records"]) == [1, 12.5]


async def test_an_invalid_value_is_reported_and_stays(
    page: Page, server: Server, space: Space, goods: str
) -> None:
    await open_grid(page, server, space, goods)
    await page.press("Enter")
    await page.until(f"{FOCUSED} === 'INPUT'")
    await page.write("[data-grid] td form input[name='field.price']", "cheap")
    await page.press("Enter")
    await page.until("document.querySelector('.toast[data-kind=error]') !== null")
    assert "valid number" in await page.text(".toast")
    typed = "document.querySelector('[data-grid] td form input[name=\"field.price\"]').value"
    assert await page.evaluate(typed) == "cheap"
    page.problems.clear()  # the browser notes each answer of 400


@pytest.mark.long
async def test_records_are_searched_and_chosen_in_a_cell(
    page: Page, server: Server, space: Space, goods: str, screens: Path
) -> None:
    person = Person(server, space)
    shops = await person.call("POST", f"{space.path}/databases", {"label": "Shops"})
    for title in ("North", "South"):
        row = {"data": {"title": title}}
        await person.call("POST", f"/v1/databases/{shops['id']}/records", row)
    field = {"label": "Shops", "kind": "relation", "settings": {"databaseId": shops["id"]}}
    await person.call("POST", f"/v1/databases/{goods}/fields", field)
    await open_grid(page, server, space, goods)
    for _ in range(2):
        await page.press("ArrowRight")
    await page.press("Enter")
    await page.until(f"{FOCUSED} === 'INPUT'")
    typed = "[data-grid] td form input[name='field.shops']"
    options = f'document.querySelector("{typed}").list.options'
    await page.write(typed, "nor")
    await page.until(f"{options}.length === 1")
    # As a browser does when an entry of the list is chosen.
    await page.evaluate(
        f'(() => {{ const input = document.querySelector("{typed}");'
        " input.value = input.list.options[0].value;"
        " input.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    assert "North" in await page.text("[data-grid] td form .checks")
    assert await page.evaluate(f'document.querySelector("{typed}").value') == ""
    await page.screenshot(screens / "relation-cell.png")
    await page.write(typed, "South")
    await page.press("Enter")
    await page.until("document.querySelectorAll('[data-grid] td .parts a').length === 2")
    assert await page.text("[data-grid] td .parts") == "North\nSouth"


async def test_a_file_is_added_in_a_cell(
    page: Page, server: Server, space: Space, goods: str
) -> None:
    person = Person(server, space)
    field = {"label": "Papers", "kind": "file"}
    await person.call("POST", f"/v1/databases/{goods}/fields", field)
    await open_grid(page, server, space, goods)
    for _ in range(2):
        await page.press("ArrowRight")
    await page.press("Enter")
    await page.until("document.querySelector('[data-grid] td input[type=file]') !== null")
    await page.evaluate(
        "(() => { const data = new DataTransfer();"
        " data.items.add(new File(['ten pounds'], 'Offer.txt', {type: 'text/plain'}));"
        " document.querySelector('[data-grid] td input[type=file]').files = data.files; })()"
    )
    await page.click("[data-grid] td form.upload button")
    await page.until("document.querySelector('[data-grid] td form') === null")
    cell = "document.querySelector('[data-grid] tbody tr').cells[3].innerText"
    assert await page.evaluate(cell) == "Offer.txt"


@pytest.mark.long
async def test_a_dropped_file_becomes_a_database(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    await sign_in(page, server, space)
    await page.open(f"{server.url}/workspaces/{space.id}/import")
    content = base64.b64encode(b"name,price\nTea,3\nMilk,1\n").decode()
    await page.evaluate(
        "(() => { const data = new DataTransfer();"
        f" data.items.add(new File([atob({json.dumps(content)})], 'Prices.csv'));"
        " const drop = new DragEvent('drop', {dataTransfer: data, cancelable: true});"
        " document.dispatchEvent(drop); })()"
    )
    await page.until("document.querySelector('[name=label]') !== null")
    assert await page.evaluate("document.querySelector('[name=label]').value") == "Prices"
    await page.screenshot(screens / "import.png")
    await page.click("form[action$='/start'] .primary")
    await page.until("document.querySelector('[data-status=succeeded]') !== null")
    assert "2 records" in await page.text("#live")
    await page.click("#live a.primary")
    await page.until("document.querySelector('[data-grid]') !== null")
    assert "Milk" in await page.text("[data-grid]")
