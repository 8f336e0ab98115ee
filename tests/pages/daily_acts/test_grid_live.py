"""Changes of others come into a table that is open, and what one looks at stays."""

import pytest

from tests.support.browser import Page
from tests.support.grid import Table, table_of
from tests.support.person import Json
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

FIELDS: list[Json] = [{"label": "Price", "kind": "number"}]
ROWS: list[Json] = [{"title": f"Item {at}", "price": at} for at in range(5)]


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    return await table_of(page, server, space, FIELDS, ROWS)


async def test_changes_of_others_are_seen_and_the_selection_stays(table: Table) -> None:
    await table.open()
    page, person = table.page, table.person
    await table.choose(3, "price")
    await person.call("PATCH", f"/v1/records/{table.ids[1]}", {"data": {"price": 50}})
    await table.shows(1, "price", "50")
    await person.call("DELETE", f"/v1/records/{table.ids[0]}")
    await table.shows(0, "title", "Item 1")
    active = "document.querySelector('.sheet').getAttribute('aria-activedescendant')"
    assert await page.evaluate(active) == "cell-2-1"
    await table.shows(2, "title", "Item 3")
    await person.call("POST", f"{table.path}/records", {"data": {"title": "New"}})
    await page.until("document.querySelector('.table-foot .button')?.innerText === 'Show 1 new'")
    await page.click(".table-foot .button")
    await table.shows(0, "title", "New")
    await page.until(f"{active} === 'cell-3-1'")
    await table.keys("7", "Enter")
    await table.holds(3, "price", 7)


async def test_an_open_editor_keeps_its_text(table: Table) -> None:
    await table.open()
    page, person = table.page, table.person
    await table.choose(2, "price")
    await table.keys("4", "2")
    await page.until("document.querySelector('.editor-text')?.value === '42'")
    await person.call("PATCH", f"/v1/records/{table.ids[2]}", {"data": {"title": "Theirs"}})
    await person.call("DELETE", f"/v1/records/{table.ids[0]}")
    await table.shows(0, "title", "Item 1")
    await table.shows(1, "title", "Theirs")
    assert await page.evaluate("document.querySelector('.editor-text').value") == "42"
    await table.key("Enter")
    await table.holds(2, "price", 42)


async def test_many_changes_are_read_together(table: Table) -> None:
    await table.open()
    page, person = table.page, table.person
    await page.until("document.documentElement.dataset.feed === 'live'")
    before = len(page.requests)
    operations: list[Json] = [
        {"op": "update", "recordId": one, "data": {"price": 100 + at}}
        for at, one in enumerate(table.ids)
    ]
    await person.call("POST", f"{table.path}/records/batch", {"operations": operations})
    await table.shows(4, "price", "104")
    await table.shows(0, "price", "100")
    reads = [one for one in page.requests[before:] if "/current?" in one]
    assert len(reads) == 1
    assert not [one for one in page.requests[before:] if "/v1/records/" in one]


async def test_a_field_that_others_delete_ends_its_editor_alone(table: Table) -> None:
    await table.open()
    page, person = table.page, table.person
    await page.until("document.documentElement.dataset.feed === 'live'")
    other = await person.call("POST", f"{table.path}/fields", {"label": "Note", "kind": "text"})
    await page.until("document.querySelector('.hidden-fields') !== null")
    await person.call("DELETE", f"{table.path}/fields/{other['id']}")
    await page.until("document.querySelector('.hidden-fields') === null")
    await table.choose(1, "price")
    await table.keys("8")
    price = next(one for one in table.database["fields"] if one["key"] == "price")
    await person.call("DELETE", f"{table.path}/fields/{price['id']}")
    await page.until("document.querySelectorAll('[data-head-cell]').length === 1")
    assert await page.evaluate("document.querySelector('.editor-text') === null")
    await table.choose(1, "title")
    await table.keys("Enter", "End", "!", "Enter")
    await table.shows(1, "title", "Item 1!")


TWICE = """import('/pages/grid/records.js').then(async ({ Records }) => {
  const gates = [];
  const call = (method, path, body) => (body.limit === 1
    ? Promise.resolve({ aggregates: { table_rows: 1 } })
    : new Promise((done) => { gates.push(done); }));
  const record = { id: 'a', title: 'A', data: {}, relations: {} };
  const page = () => ({ records: [record], cursor: null });
  const names = { titles: new Map() };
  const records = new Records({ call, databaseId: 'd', query: {}, names });
  const first = records.reload();
  gates[0](page());
  await first;
  const [one, other] = [records.reload(), records.reload()];
  gates[1](page());
  await one;
  const between = records.list.length;
  gates[2](page());
  await other;
  return [between, records.list.length];
})"""


async def test_rows_stay_while_a_reload_takes_over_from_another(table: Table) -> None:
    await table.open()
    assert await table.page.evaluate(TWICE) == [1, 1]
