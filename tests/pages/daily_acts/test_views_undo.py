"""Undo outside of the cells: moved cards and events, new records, and changes of the view."""

from typing import Any

import pytest

from tests.pages.daily_acts.view_acts import (
    FIELDS,
    TITLES,
    choose,
    control,
    drag,
    middle,
    opened,
    press,
    pull,
    records,
    stored,
    tasks,
    until_value,
    view,
)
from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Person

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

CARDS = "document.querySelectorAll('[data-card]').length"


async def board(page: Page, person: Person, **manifest: str) -> str:
    database_id = await tasks(person)
    content = {"stackFieldKey": "state", **manifest}
    view_id = await view(person, database_id, kind="board", label="Board", manifest=content)
    await opened(page, person, database_id, view_id)
    await page.until(f"{CARDS} === 4")
    return database_id


async def card(page: Page, title: str) -> str:
    """A selector of the card of this title."""
    await page.evaluate(
        "document.querySelectorAll('[data-card]').forEach(one =>"
        " one.dataset.title = one.querySelector('.card-title').innerText)"
    )
    return f'[data-title="{title}"]'


async def said(page: Page, text: str) -> None:
    await page.until(f"document.querySelector('.acts [role=status]').innerText === {text!r}")


async def change(person: Person, database_id: str, title: str, **data: Any) -> None:
    """Another person changes a record."""
    listed = await person.call("GET", f"/v1/databases/{database_id}/records")
    found = next(one for one in listed["records"] if one["title"] == title)
    await person.call("PATCH", f"/v1/records/{found['id']}", {"data": data})


async def test_a_moved_card_goes_back_and_forth(page: Page, person: Person) -> None:
    database_id = await board(page, person)
    await drag(page, await card(page, "Tea"), "section[data-column=done]")
    await until_value(person, database_id, "Tea", "state", "done")
    await control(page, "z")
    await until_value(person, database_id, "Tea", "state", "open")
    await said(page, "Undone: Move of Tea")
    tea = "[...document.querySelectorAll('section[data-column=open] .card-title')]"
    await page.until(f"{tea}.some(one => one.innerText === 'Tea')")
    await press(page, "Redo")
    await until_value(person, database_id, "Tea", "state", "done")


async def test_a_card_that_someone_else_moved_since_stays_there(page: Page, person: Person) -> None:
    database_id = await board(page, person)
    await drag(page, await card(page, "Tea"), "section[data-column=done]")
    await until_value(person, database_id, "Tea", "state", "done")
    await change(person, database_id, "Tea", state="doing", price=7)
    await control(page, "z")
    await said(page, "Undone: Move of Tea. 1 change that someone else made since was kept.")
    assert (await records(person, database_id))["Tea"]["state"] == "doing"


async def test_the_order_by_hand_comes_back_with_the_column(page: Page, person: Person) -> None:
    database_id = await board(page, person, orderFieldKey="price")
    rice = await card(page, "Rice")
    await drag(page, rice, "section[data-column=doing]")
    await until_value(person, database_id, "Rice", "state", "doing")
    # Another field of the record is no conflict.
    await change(person, database_id, "Rice", due="2027-01-01")
    await control(page, "z")
    await until_value(person, database_id, "Rice", "state", "open")
    rice_now = (await records(person, database_id))["Rice"]
    assert (rice_now["price"], rice_now["due"]) == (9, "2027-01-01")


async def test_a_card_that_was_added_is_deleted_and_comes_back(page: Page, person: Person) -> None:
    database_id = await board(page, person)
    await page.click("section[data-column=done] .add-card")
    await page.until("document.activeElement.matches('.new-card')")
    await page.send("Input.insertText", text="Pepper")
    await page.press("Enter")
    await page.until(f"{CARDS} === 5")
    await page.press("Escape")
    await press(page, "Undo")
    await page.until(f"{CARDS} === 4")
    assert "Pepper" not in await records(person, database_id)
    await press(page, "Redo")
    await until_value(person, database_id, "Pepper", "state", "done")


async def test_a_moved_and_stretched_event_goes_back(page: Page, person: Person) -> None:
    database_id = await tasks(person, [*FIELDS, {"label": "End", "kind": "date"}])
    content = {"dateFieldKey": "due", "endDateFieldKey": "end"}
    view_id = await view(person, database_id, kind="calendar", label="Plan", manifest=content)
    await opened(page, person, database_id, f"{view_id}#day=2026-11-15")

    async def event() -> str:
        await page.until(
            "(() => { document.querySelectorAll('[data-event]').forEach(one =>"
            " one.dataset.title = one.querySelector('a').innerText);"
            " return document.querySelector('[data-title=Tea]') !== null; })()"
        )
        return "[data-title=Tea]"

    await drag(page, await event(), '.cal-day[data-day="2026-11-19"]')
    await until_value(person, database_id, "Tea", "due", "2026-11-19")
    edge = await middle(page, f"{await event()} .cal-edge.end")
    await pull(page, edge, await middle(page, '.cal-day[data-day="2026-11-20"]'))
    await until_value(person, database_id, "Tea", "end", "2026-11-20")
    await control(page, "z")
    await until_value(person, database_id, "Tea", "end", None)
    await control(page, "z")
    await until_value(person, database_id, "Tea", "due", "2026-11-03")
    await page.until(
        "document.querySelector('[data-title=Tea]') === null"
        " || [...document.querySelectorAll('[data-event] a')].length === 3"
    )
    await control(page, "y")
    await until_value(person, database_id, "Tea", "due", "2026-11-19")


async def test_changes_of_a_view_are_undone_by_keys(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)

    async def manifest(key: str) -> Any:
        return (await stored(person, database_id, view_id))["manifest"].get(key)

    async def until_manifest(key: str, value: Any) -> None:
        async def holds() -> bool:
            return bool(await manifest(key) == value)

        await eventually(holds, what=f"{key} that is {value!r}")

    # The menu of a column sorts.
    await page.until("document.querySelector('[data-head=\"1\"]') !== null")
    await page.click('[data-head="1"]')
    await page.until("document.querySelector('.sheet-menu') !== null")
    await page.press("Enter")
    await until_manifest("sorts", [{"field": "price", "direction": "asc"}])
    await page.until(f"{TITLES}.join() === 'Salt,Milk,Tea,Rice'")
    # The panel groups.
    await page.click("[data-panel=group-panel]")
    await choose(page, "Group by", "state")
    await page.click("[data-save]")
    await until_manifest("groupBy", [{"field": "state"}])
    await page.until("document.querySelector('.group-head') !== null")
    await page.press("Escape")
    await control(page, "z")
    await until_manifest("groupBy", None)
    await page.until("document.querySelector('.group-head') === null")
    await control(page, "z")
    await until_manifest("sorts", None)
    await control(page, "y")
    await until_manifest("sorts", [{"field": "price", "direction": "asc"}])
    await page.until(f"{TITLES}.join() === 'Salt,Milk,Tea,Rice'")


async def test_parts_of_a_view_that_others_changed_since_stay(page: Page, person: Person) -> None:
    database_id = await board(page, person)
    view_id = (await person.call("GET", f"/v1/databases/{database_id}/views"))["views"][-1]["id"]
    await page.click("[data-panel=filter-panel]")
    await press(page, "Add condition")
    await choose(page, "Field of condition 1", "price")
    await choose(page, "Operator of condition 1", "is_not_empty")
    await page.click("[data-save]")
    await page.until("document.querySelector('.view-panels').innerText.includes('Saved')")
    theirs = {"field": "price", "op": "gt", "value": 1}
    shown = await stored(person, database_id, view_id)
    path = f"/v1/databases/{database_id}/views/{view_id}"
    await person.call("PATCH", path, {"manifest": {**shown["manifest"], "filter": theirs}})
    await page.until("document.querySelector('.view-bar .notice') !== null")
    await press(page, "Show changes")
    await page.until(f"{CARDS} === 3")
    await press(page, "Undo")
    await said(page, "Undone: View change. 1 change that someone else made since was kept.")
    assert (await stored(person, database_id, view_id))["manifest"]["filter"] == theirs
