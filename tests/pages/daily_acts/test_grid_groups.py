"""A table whose rows stand under the heads of their groups, in a real browser."""

import json
from pathlib import Path
from typing import Any

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.grid import CONTROL, SHIFT, Table, table_of
from tests.support.person import Json, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

OPTIONS = [
    {"name": "Open", "color": "blue"},
    {"name": "Doing", "color": "yellow"},
    {"name": "Done", "color": "green"},
]
FIELDS: list[Json] = [
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "select", "options": OPTIONS},
    {"label": "Due", "kind": "date"},
    {"label": "Sold", "kind": "checkbox"},
]
ROWS: list[Json] = [
    {"title": "Tea", "price": 3, "state": "open", "due": "2026-11-03"},
    {"title": "Milk", "price": 2, "state": "doing", "due": "2026-11-30", "sold": True},
    {"title": "Rice", "price": 9, "state": "open", "due": "2026-12-01"},
    {"title": "Salt", "price": 1},
]
SUMS: list[Json] = [{"op": "sum", "field": "price"}]
LINES = (
    "[...document.querySelectorAll('.sheet-body .row')]"
    ".sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top))"
    ".map(one => (one.querySelector('.group-name') ?? one.querySelector('[data-col=\"0\"]'))"
    ".innerText.replace(/\\s+/g, ' ').replace(' +', '').trim())"
)
ACTIVE = "document.querySelector('.sheet').getAttribute('aria-activedescendant')"
FOCUS = "document.activeElement.dataset.group"
RANDOM_GROUPS = (Path(__file__).parent / "random_groups.js").read_text(encoding="utf-8")
BY_STATE = ["▾ State: Open 2 records", "Tea", "Rice", "▾ State: Doing 1 record", "Milk"]
WITHOUT = ["▾ State: Empty 1 record", "Salt"]


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    return await table_of(page, server, space, FIELDS, ROWS)


async def grouped(table: Table, levels: list[Json], user_id: Any = None, **more: Any) -> str:
    """Open a view with these groups."""
    manifest = {"groupBy": levels, "aggregates": SUMS, **more}
    body = {"label": "Groups", "kind": "table", "manifest": manifest}
    view = await table.person.call("POST", f"{table.path}/views", body)
    await table.open(f"?view={view['id']}", user_id)
    return str(view["id"])


async def lines(table: Table, *wanted: str) -> None:
    """Wait until the sheet shows these heads and titles from top to bottom."""
    await table.page.until(f"{LINES}.join('|') === {json.dumps('|'.join(wanted))}")


def head(path: str) -> str:
    """The selector of the button of a head."""
    return f"[data-group='{path}']"


OPEN = head('/"open"')


async def test_rows_stand_under_the_heads_of_their_groups(table: Table, screens: Path) -> None:
    await grouped(table, [{"field": "state"}])
    page = table.page
    await lines(table, *BY_STATE, *WITHOUT)
    sums = "[...document.querySelectorAll('.group-head')].map(one => one.children[1].innerText)"
    assert await page.evaluate(sums) == ["Sum 12", "Sum 2", "Sum 1"]
    assert await page.evaluate("document.querySelector('.sheet').ariaRowCount") == "8"
    assert await page.evaluate("document.querySelector('.view-groups')") is None
    await page.screenshot(screens / "groups.png")
    assert await violations(page) == []
    await page.show(dark=True)
    await page.screenshot(screens / "groups-dark.png")
    assert await violations(page) == []
    await page.show(width=390)
    await page.screenshot(screens / "groups-390.png")


async def test_each_row_and_head_has_one_line(table: Table) -> None:
    await table.open()
    seeds = list(range(1, 201))
    assert await table.page.evaluate(f"({RANDOM_GROUPS})({seeds}, 60)") == []


async def test_an_edit_moves_the_row_and_the_selection_follows(table: Table) -> None:
    await grouped(table, [{"field": "state"}])
    page = table.page
    await lines(table, *BY_STATE, *WITHOUT)
    await table.choose(0, "state")
    await table.key("Enter")
    await page.until("document.querySelectorAll('.picker-list li').length === 3")
    await table.type("Done")
    await page.until("document.querySelectorAll('.picker-list li').length === 1")
    await table.keys("Enter", "Tab")
    done = ["▾ State: Done 1 record", "Tea"]
    rest = ["▾ State: Open 1 record", "Rice", *BY_STATE[3:]]
    await lines(table, *rest, *done, *WITHOUT)
    await table.holds(0, "state", "done")
    # Tab went to the next cell of the same record.
    await page.until(f"{ACTIVE} === 'cell-2-3'")
    assert await page.evaluate("document.activeElement.className") == "sheet"
    sums = "[...document.querySelectorAll('.group-head')].map(one => one.children[1].innerText)"
    await page.until(f"{sums}.join() === 'Sum 9,Sum 2,Sum 3,Sum 1'")
    await table.key("z", CONTROL)
    # A row that comes into a group is its last one until the table is read anew.
    await lines(table, BY_STATE[0], "Rice", "Tea", *BY_STATE[3:], *WITHOUT)
    await page.until(f"{ACTIVE} === 'cell-1-3'")
    await table.holds(0, "state", "open")
    await table.key("y", CONTROL)
    await lines(table, *rest, *done, *WITHOUT)


async def test_groups_fold_by_mouse_and_keys_and_stay_folded(table: Table) -> None:
    view_id = await grouped(table, [{"field": "state"}])
    page = table.page
    await lines(table, *BY_STATE, *WITHOUT)
    await page.click(OPEN)
    folded = ["▸ State: Open 2 records", *BY_STATE[3:], *WITHOUT]
    await lines(table, *folded)
    assert await page.evaluate(f"document.querySelector({OPEN!r}).ariaExpanded") == "false"
    await table.open(f"?view={view_id}")
    await lines(table, *folded)
    await table.choose(0, "price")
    await table.key("ArrowUp")
    await page.until(f"{FOCUS} === '/\"doing\"'")
    await table.key("ArrowUp")
    await page.until(f"{FOCUS} === '/\"open\"'")
    await table.key("ArrowRight")
    await lines(table, *BY_STATE, *WITHOUT)
    await table.key("ArrowDown")
    await page.until(f"{ACTIVE} === 'cell-0-1'")
    await table.keys("ArrowDown", "ArrowDown")
    await page.until(f"{FOCUS} === '/\"doing\"'")
    await table.key("ArrowLeft")
    await lines(table, *BY_STATE[:3], "▸ State: Doing 1 record", *WITHOUT)
    await page.click(".fold-all")
    await lines(
        table, "▸ State: Open 2 records", "▸ State: Doing 1 record", "▸ State: Empty 1 record"
    )
    # Without a row, the arrows reach the heads.
    await page.evaluate("document.querySelector('.sheet').focus()")
    await table.key("ArrowDown")
    await page.until(f"{FOCUS} === '/\"open\"'")
    assert await violations(page) == []
    await table.key("ArrowUp")
    await page.until("document.activeElement.dataset.head === '1'")


async def test_a_new_row_has_the_values_of_its_group(table: Table, screens: Path) -> None:
    await grouped(table, [{"field": "due", "granularity": "month"}, {"field": "state"}])
    page = table.page
    await lines(
        table,
        "▾ Due: Nov 2026 2 records",
        *("▾ State: Open 1 record", "Tea", "▾ State: Doing 1 record", "Milk"),
        *("▾ Due: Dec 2026 1 record", "▾ State: Open 1 record", "Rice"),
        *("▾ Due: Empty 1 record", "▾ State: Empty 1 record", "Salt"),
    )
    await page.screenshot(screens / "groups-nested.png")
    await page.click(head('/"2026-12-01"/"open"') + " + .add-to")
    await page.until(f"{ACTIVE} === 'cell-3-0'")
    await table.keys("N", "e", "w", "Enter")
    await table.shows(3, "title", "New")
    await table.shows(3, "due", "12/01/2026")
    await table.shows(3, "state", "Open")
    # Below a row of a group, too.
    await table.choose(1, "title")
    await table.key("Enter", SHIFT)
    await page.until(f"{ACTIVE} === 'cell-2-0'")
    await table.shows(2, "state", "Doing")
    await table.shows(2, "due", "11/01/2026")
    await table.saved()
    stored = (await table.person.call("GET", f"{table.path}/records"))["records"]
    assert [one["data"]["state"] for one in stored[:2]] == ["doing", "open"]
    await table.key("z", CONTROL)
    await table.key("z", CONTROL)
    await table.key("z", CONTROL)
    await page.until("document.querySelector('.count-of').innerText === '4 records'")


async def test_a_range_goes_across_heads(table: Table) -> None:
    await grouped(table, [{"field": "state"}])
    await lines(table, *BY_STATE, *WITHOUT)
    await table.choose(0, "price")
    for _ in range(3):
        await table.key("ArrowDown", SHIFT)
    assert (await table.copied())["text"].split() == ["3", "9", "2", "1"]
    await table.clip(text="10\n20\n30\n40")
    for row, (title, value) in enumerate([("Tea", 10), ("Rice", 20), ("Milk", 30), ("Salt", 40)]):
        await table.shows(row, "title", title)
        await table.shows(row, "price", str(value))
    await table.holds(3, "price", 40)
    await table.key("z", CONTROL)
    await table.shows(3, "price", "1")
    # Cells of a group that is folded are no part of a range.
    await table.page.click(head('/"doing"'))
    await table.choose(1, "price")
    await table.clip(text="50\n60\n70")
    await table.page.until("document.querySelector('.count-of').innerText === '5 records'")
    await table.holds(3, "price", 60)
    await table.holds(1, "price", 2)


async def test_changes_of_others_move_rows(table: Table) -> None:
    await grouped(table, [{"field": "state"}])
    page, person = table.page, table.person
    await lines(table, *BY_STATE, *WITHOUT)
    await table.choose(2, "title")
    await person.call("PATCH", f"/v1/records/{table.ids[0]}", {"data": {"state": "doing"}})
    moved = ["▾ State: Open 1 record", "Rice", "▾ State: Doing 2 records", "Milk", "Tea"]
    await lines(table, *moved, *WITHOUT)
    assert await page.evaluate(ACTIVE) == "cell-1-0"
    new = {"title": "New", "state": "done", "price": 4}
    await person.call("POST", f"{table.path}/records", {"data": new})
    await lines(table, *moved, "▾ State: Done 1 record", "New", *WITHOUT)
    await person.call("POST", f"{table.path}/records", {"data": {"state": "open", "title": "B"}})
    await page.until("document.querySelector('.table-foot .button')?.innerText === 'Show 1 new'")
    await page.click(".table-foot .button")
    await lines(
        table,
        "▾ State: Open 2 records",
        "B",
        *moved[1:3],
        "Tea",
        "Milk",
        "▾ State: Done 1 record",
        "New",
        *WITHOUT,
    )


async def test_a_viewer_folds_and_adds_nothing(page: Page, server: Server, space: Space) -> None:
    table = await table_of(page, server, space, FIELDS, ROWS)
    user_id, _ = await space.member(Role.VIEWER)
    await grouped(table, [{"field": "state"}], user_id)
    await lines(table, *BY_STATE, *WITHOUT)
    assert await page.evaluate("document.querySelector('.add-to')") is None
    await page.click(OPEN)
    await lines(table, "▸ State: Open 2 records", *BY_STATE[3:], *WITHOUT)
    await table.key("Enter", SHIFT)
    assert not any(one.endswith("/batch") for one in page.requests)


async def test_far_groups_are_read_without_those_before(
    page: Page, server: Server, space: Space
) -> None:
    states = ["open"] * 700 + ["doing"] * 30 + ["done"] * 20
    rows: list[Json] = [{"title": f"Item {at}", "state": one} for at, one in enumerate(states)]
    table = await table_of(page, server, space, FIELDS, rows)
    await grouped(table, [{"field": "state"}])
    await page.until("document.querySelectorAll('.sheet-body .row').length > 10")
    high = "document.querySelector('.sheet-body').offsetHeight"
    assert await page.evaluate(high) == (3 + 750) * 34
    before = sum(one.endswith("/query") for one in page.requests)
    await page.evaluate("document.querySelector('.sheet').scrollTop = 1e9")
    await page.until(
        "[...document.querySelectorAll('.row')].some(one => one.innerText.includes('Item 749'))"
    )
    await page.until(
        "document.querySelector('.table-foot').innerText.includes('Loading') === false"
    )
    assert sum(one.endswith("/query") for one in page.requests) - before == 1
    # A range ends where rows are not read.
    await table.choose(201, "title")
    await table.key("ArrowUp", CONTROL | SHIFT)
    assert (await table.copied())["text"].split("\n") == ["Item 730", "Item 731"]
    await page.evaluate("document.querySelector('.sheet').scrollTop = 400 * 34")
    await page.until(
        "[...document.querySelectorAll('.row')].some(one => one.innerText.includes('Item 410'))"
    )


async def test_groups_by_a_hidden_field_and_by_many_values(
    page: Page, server: Server, space: Space
) -> None:
    tags = {"label": "Tags", "kind": "multi_select", "options": OPTIONS}
    rows = [{**row, "tags": ["open", "done"]} for row in ROWS]
    table = await table_of(page, server, space, [*FIELDS, tags], rows)
    hidden: list[Json] = [{"key": "title"}, {"key": "price"}, {"key": "state", "visible": False}]
    view_id = await grouped(table, [{"field": "state"}], fields=hidden)
    await lines(table, *BY_STATE, *WITHOUT)
    await page.click(".hidden-fields summary")
    await page.evaluate(
        "[...document.querySelectorAll('.hidden-fields button')]"
        ".find(one => one.innerText === 'Show State').click()"
    )
    await table.shows(2, "state", "Doing")
    # A record with two tags would stand in two rows: its groups are counted alone.
    await grouped(table, [{"field": "tags"}])
    await page.until("document.querySelector('.view-groups') !== null")
    await lines(table, "Tea", "Milk", "Rice", "Salt")
    await page.click("[data-panel=group-panel]")
    assert "several values are counted" in await page.text("#group-panel")
    # More groups than an answer has are counted, too.
    operations = [{"op": "create", "data": {"price": 1000 + at}} for at in range(201)]
    await table.person.call("POST", f"{table.path}/records/batch", {"operations": operations})
    await grouped(table, [{"field": "price"}])
    await page.until("document.querySelector('.view-groups') !== null")
    await page.until("document.querySelectorAll('.sheet-body .row').length > 10")
    assert await page.evaluate("document.querySelector('.group-head')") is None
    await table.open(f"?view={view_id}")
    await page.until("document.querySelector('.group-head') !== null")


async def test_groups_follow_their_field(table: Table) -> None:
    await grouped(table, [{"field": "state"}])
    page, person = table.page, table.person
    await lines(table, *BY_STATE, *WITHOUT)
    state = next(one for one in table.database["fields"] if one["key"] == "state")
    path = f"{table.path}/fields/{state['id']}"
    option = {"key": "open", "name": "Begun", "color": "red"}
    options = [option, *(one for one in state["options"] if one["key"] != "open")]
    await person.call("PATCH", path, {"options": options})
    await page.until(f"document.querySelector({OPEN!r}).innerText.includes('Begun')")
    await person.call("DELETE", path)
    await page.until("document.querySelector('.group-head') === null")
    await lines(table, "Tea", "Milk", "Rice", "Salt")


async def test_acts_on_rows_of_groups_are_undone(table: Table) -> None:
    await grouped(table, [{"field": "state"}])
    page = table.page
    await lines(table, *BY_STATE, *WITHOUT)
    for row in (0, 2):
        await table.choose(row, "title")
        await table.key(" ", SHIFT)
    await page.click(".picked-bar .danger")
    rest = ["▾ State: Open 1 record", "Rice", *WITHOUT]
    await lines(table, *rest)
    await table.key("z", CONTROL)
    await lines(table, *BY_STATE, *WITHOUT)
    # All rows into one group, also those of a folded one.
    await table.choose(0, "state")
    for _ in range(3):
        await table.key("ArrowDown", SHIFT)
    await table.clip(text="Done")
    await lines(table, "▾ State: Done 4 records", "Tea", "Rice", "Milk", "Salt")
    await table.saved()
    await page.click(head('/"done"'))
    await lines(table, "▸ State: Done 4 records")
    await page.evaluate("document.querySelector('.sheet').focus()")
    await table.key("z", CONTROL)
    await lines(table, "▾ State: Open 2 records", "Tea", "Rice", *BY_STATE[3:], *WITHOUT)
    # What is in a folded group is not selected, and is found once it is expanded.
    await table.choose(0, "title")
    await table.key(" ", SHIFT)
    await page.click(OPEN)
    await page.until("document.querySelector('.picked-bar') === null")
    await table.choose(0, "title")
    await table.key("f", CONTROL)
    await page.until("document.querySelector('.find-bar input') !== null")
    await table.type("Salt")
    await table.key("Enter")
    await page.until(f"{ACTIVE} === 'cell-1-0'")
    assert "in loaded records" in await page.text(".find-bar")


GROWN = """import('/pages/grid/records.js').then(async ({ Records }) => {
  const { Level } = await import('/pages/grid/groups.js');
  const field = { key: 'a', form: 'option', kind: 'select' };
  const level = new Level(field, {}, { valueOf: (record) => record.data.a, zone: 'UTC' });
  const asked = [];
  const record = (id, a) => ({ id, title: id, data: { a }, relations: {} });
  const groups = ['x', 'y'].map((value) => ({ value, count: 1, aggregates: {} }));
  const call = async (method, path, body) => {
    asked.push(body.cursor ?? 'none');
    if (body.limit === 1) return { aggregates: { table_rows: 2 }, groups };
    if (window.isDown) throw Object.assign(new Error('Down'), { status: 503 });
    return { records: [record('1', 'x'), record('2', 'y')], cursor: 'of both' };
  };
  const names = { titles: new Map() };
  const of = (levels) => new Records({
    call, databaseId: 'd', query: {}, names, grouping: { levels, groupBy: [{ field: 'a' }] },
  });
  const records = of([level]);
  for (let round = 0; round < 3; round += 1) await records.more();
  const grown = [records.list.length, records.state.isDone, [...asked]];
  window.isDown = true;
  asked.length = 0;
  const failed = [of([level]), of([])];
  for (const one of failed) await one.more();
  await new Promise((done) => setTimeout(done, 50));
  return [grown, asked.length, failed.map((one) => one.state.problem)];
})"""


async def test_groups_that_grew_and_windows_that_fail_are_asked_for_once(table: Table) -> None:
    await table.open()
    grown = [2, True, ["none", "none"]]
    assert await table.page.evaluate(GROWN) == [grown, 4, ["Down", "Down"]]


KINDS: list[Json] = [
    {"label": "Note", "kind": "text"},
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "select", "options": OPTIONS},
    {"label": "Due", "kind": "date"},
    {"label": "Begun", "kind": "datetime"},
    {"label": "Hour", "kind": "time"},
    {"label": "Sold", "kind": "checkbox"},
    {"label": "Author", "kind": "created_by"},
    {
        "label": "Twice",
        "kind": "formula",
        "settings": {"expression": "record.price * 2", "resultKind": "number"},
    },
]
LONG = "é" * 99
VALUES: list[Json] = [
    *({"note": one} for one in ("tea", "Tea", "te", f"{LONG}ab", f"{LONG}ac", f"{LONG}A", "100%")),
    *({"price": one} for one in (0, 0.1, -3, 1e-7, 123456789012345, 1e20)),
    *({"state": one} for one in ("open", "done")),
    *({"due": one} for one in ("2026-11-29", "2026-11-30", "2027-01-01", "0999-12-31")),
    *({"begun": f"{one}.000Z"} for one in ("2026-10-25T00:30:00", "2026-12-31T23:30:00")),
    *({"hour": one} for one in ("09:00", "23:59:59")),
    {"sold": True},
    {"sold": False},
]
LEVELS = [
    *({"field": one} for one in ("note", "price", "state", "hour", "sold", "author", "twice")),
    *(
        {"field": field, "granularity": one}
        for field in ("due", "begun")
        for one in ("day", "week", "month", "quarter", "year")
    ),
]
"""Each is asked of the API, whose groups are those that the page finds for the same records."""
ASKED = """async (path, levels) => {
  const { act } = await import('/pages/client.js');
  const { Level, Group, Division } = await import('/pages/grid/groups.js');
  const { valueOf } = await import('/pages/grid/values.js');
  const { fieldsByKey } = await import('/pages/views/store.js');
  const zone = 'Europe/Berlin';
  const ask = (body) => act(path, { timezone: zone, limit: 200, ...body });
  const { records } = await ask({});
  const faults = [];
  for (const groupBy of levels) {
    const field = fieldsByKey.get(groupBy.field);
    const level = new Level(field, groupBy, { valueOf, zone });
    const { groups } = await ask({ groupBy });
    const division = new Division([level]);
    for (const { value, count } of groups) {
      const own = records.filter((one) => level.of(one) === value).map((one) => one.id).sort();
      const group = new Group(value, division.root);
      const page = await ask({ filter: division.filterOf([group]) });
      const asked = page.records.filter((one) => level.of(one) === value).map((one) => one.id);
      if (own.length !== count || own.join() !== asked.sort().join()) {
        faults.push([groupBy, value, count, own.length, asked.length]);
      }
    }
  }
  return faults;
}"""


async def test_the_page_groups_records_as_the_api_does(
    page: Page, server: Server, space: Space
) -> None:
    table = await table_of(page, server, space, KINDS, [{"title": "Empty"}, *VALUES])
    await table.open()
    asked = f"({ASKED})({json.dumps(table.path + '/records/query')}, {json.dumps(LEVELS)})"
    assert await page.evaluate(asked) == []
