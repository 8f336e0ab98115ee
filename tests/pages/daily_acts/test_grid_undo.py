"""Undo in a table: every act of one's own, and what others changed since stays theirs."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.grid import CONTROL, Table, table_of
from tests.support.patience import eventually
from tests.support.person import Json
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=20), pytest.mark.long]

RANDOM_ACTS = (Path(__file__).parent / "random_acts.js").read_text(encoding="utf-8")
FIELDS: list[Json] = [{"label": "Price", "kind": "number"}, {"label": "Note", "kind": "text"}]
ROWS: list[Json] = [{"title": f"Item {at}", "price": at, "note": "n"} for at in range(4)]


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    return await table_of(page, server, space, FIELDS, ROWS)


async def test_random_acts_are_undone_to_what_history_says(
    page: Page, server: Server, space: Space
) -> None:
    table = await table_of(page, server, space, [], [])
    await table.open()
    seeds = list(range(1, 61))
    assert await page.evaluate(f"({RANDOM_ACTS})({seeds}, 40)") == []


async def test_later_changes_of_someone_else_are_kept(table: Table) -> None:
    await table.open()
    await table.choose(0, "price")
    await table.clip(text="10\n11\n12")
    await table.holds(2, "price", 12)
    await table.person.call("PATCH", f"/v1/records/{table.ids[1]}", {"data": {"price": 99}})
    await table.person.call("PATCH", f"/v1/records/{table.ids[2]}", {"data": {"note": "theirs"}})
    await table.key("z", CONTROL)
    await table.says("1 change that someone else made since was kept.")
    assert [(await table.stored(row))["data"]["price"] for row in range(3)] == [0, 99, 2]
    await table.shows(1, "price", "99")
    await table.shows(2, "note", "theirs")
    table.page.problems.clear()  # the browser notes each answer of 409


async def test_two_people_conflict_in_a_cell_and_not_in_a_record(table: Table) -> None:
    await table.open()
    await table.person.call("PATCH", f"/v1/records/{table.ids[0]}", {"data": {"note": "theirs"}})
    await table.choose(0, "price")
    await table.keys("5", "Enter")
    await table.holds(0, "price", 5)
    await table.shows(0, "note", "theirs")
    await table.choose(0, "price")
    await table.key("6")
    theirs = {"data": {"price": 77, "note": "also theirs"}}
    await table.person.call("PATCH", f"/v1/records/{table.ids[0]}", theirs)
    # Their change is there before this one is saved, under the editor.
    await table.shows(0, "note", "also theirs")
    await table.key("Enter")
    await table.page.until("document.querySelector('.cell.refused') !== null")
    await table.choose(0, "price")
    assert "Someone else changed this to “77”" in await table.page.text(".cell-fault")
    assert (await table.stored(0))["data"]["price"] == 77
    await table.keys("F2", "Enter")
    await table.holds(0, "price", 6)
    table.page.problems.clear()  # the browser notes each answer of 409


async def test_a_paste_of_500_rows_is_one_batch_and_one_undo(
    page: Page, server: Server, space: Space
) -> None:
    rows: list[Json] = [{"title": f"Item {at}", "price": at} for at in range(500)]
    table = await table_of(page, server, space, FIELDS, rows)
    await table.open()
    await table.choose(0, "price")

    async def at_the_end() -> bool:
        await table.key("End", CONTROL)
        return bool(await page.evaluate("document.querySelector('#cell-499-0') !== null"))

    await eventually(at_the_end, what="the last of the records")
    await table.key("Home", CONTROL)
    await table.page.until("document.querySelector('#cell-0-0') !== null")
    await table.choose(0, "price")
    await table.clip(text="\n".join(str(1000 + at) for at in range(500)))
    await table.says("Pasted 500 records")
    assert sum(one.endswith("/records/batch") for one in page.requests) == 1
    await table.holds(499, "price", 1499)
    await table.key("z", CONTROL)
    await table.says("Undone")
    await table.holds(499, "price", 499)
