"""Boards in a real browser: cards are moved by mouse, keys and finger, and added in a column."""

from pathlib import Path

import pytest

from models.core.access.rules import Role
from tests.pages.daily_acts.view_acts import (
    drag,
    middle,
    one,
    opened,
    press,
    pull,
    ready,
    records,
    stored,
    tasks,
    until_value,
    view,
)
from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]


async def board(
    page: Page, person: Person, *, stack: str = "state", **manifest: str
) -> tuple[str, str]:
    """A database and its board, which is open."""
    database_id = await tasks(person)
    content = {"stackFieldKey": stack, **manifest}
    view_id = await view(person, database_id, kind="board", label="Board", manifest=content)
    await opened(page, person, database_id, view_id)
    await page.until("document.querySelectorAll('[data-card]').length === 4")
    return database_id, view_id


async def columns(page: Page) -> dict[str, list[str]]:
    found: dict[str, list[str]] = await page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('section[data-column]')].map(one =>"
        " [one.dataset.column, [...one.querySelectorAll('.card-title')].map(a => a.innerText)]))"
    )
    return found


async def title_of(page: Page, title: str) -> str:
    """A selector of the card of this title."""
    await page.evaluate(
        "document.querySelectorAll('[data-card]').forEach(one =>"
        " one.dataset.title = one.querySelector('.card-title').innerText)"
    )
    return f'[data-title="{title}"]'


async def test_a_card_names_the_fields_of_its_values(page: Page, person: Person) -> None:
    await board(page, person)
    card = await title_of(page, "Rice")
    labels = f"[...document.querySelectorAll('{card} .card-label')].map(one => one.innerText)"
    assert await page.evaluate(labels) == ["Price", "Due"]


async def test_a_card_is_dragged_into_another_column(
    page: Page, person: Person, screens: Path
) -> None:
    database_id, _ = await board(page, person)
    await drag(
        page, await title_of(page, "Tea"), "section[data-column=done]", picture=screens / "drag.png"
    )
    await until_value(person, database_id, "Tea", "state", "done")
    assert (await columns(page))["done"] == ["Salt", "Tea"]
    assert (await page.text("section[data-column=done] .count")) == "2"
    await page.screenshot(screens / "board.png")
    assert await violations(page) == []
    await page.show(dark=True)
    await page.screenshot(screens / "board-dark.png")
    assert await violations(page) == []


async def test_a_card_is_moved_by_keys_alone(page: Page, person: Person) -> None:
    database_id, _ = await board(page, person, orderFieldKey="price")
    assert (await columns(page))["open"] == ["Tea", "Rice"]
    await page.evaluate(f"{one(await title_of(page, 'Rice') + ' .card-title')}.focus()")
    await page.press(" ")
    await page.until("document.querySelector('.tile.held') !== null")
    await page.press("ArrowUp")
    assert (await columns(page))["open"] == ["Rice", "Tea"]
    await page.press("Escape")
    await page.until("document.querySelector('.tile.held') === null")
    assert (await columns(page))["open"] == ["Tea", "Rice"]
    await page.press(" ")
    await page.press("ArrowUp")
    await page.press(" ")
    await until_value(person, database_id, "Rice", "price", 2)
    await page.press(" ")
    await page.press("ArrowRight")
    await page.press("ArrowDown")
    await page.press("Enter")
    await until_value(person, database_id, "Rice", "state", "doing")
    await until_value(person, database_id, "Rice", "price", 3)
    assert (await columns(page))["doing"] == ["Milk", "Rice"]
    assert await page.evaluate("document.activeElement.innerText") == "Rice"
    await page.press("ArrowUp")
    assert await page.evaluate("document.activeElement.innerText") == "Milk"


async def test_cards_are_ordered_by_hand_with_a_field_of_their_own(
    page: Page, person: Person
) -> None:
    database_id, view_id = await board(page, person)
    tea, rice = await title_of(page, "Tea"), await title_of(page, "Rice")
    at = await middle(page, rice)
    top = await page.evaluate(f"{one(tea)}.getBoundingClientRect().top")
    first, second = (await columns(page))["open"]
    lower = await middle(page, await title_of(page, second))
    await pull(page, lower, [at[0], top - 4 if first == "Tea" else at[1] - 60])
    await press(page, "Order cards by hand")
    await page.until("document.getElementById('view-bar').dataset.ready === 'true'")
    await page.until(
        "!document.querySelector('.order-notice')"
        " && document.querySelectorAll('[data-card]').length === 4"
    )
    assert (await stored(person, database_id, view_id))["manifest"]["orderFieldKey"] == "position"
    first, second = (await columns(page))["open"]
    upper = await middle(page, await title_of(page, first))
    lower = await middle(page, await title_of(page, second))
    await pull(page, lower, [upper[0], upper[1] - 40])
    await until_value(person, database_id, second, "position", 1)
    assert (await columns(page))["open"] == [second, first]


async def test_a_record_is_added_in_a_column(page: Page, person: Person) -> None:
    database_id, _ = await board(page, person)
    await page.click("section[data-column=doing] .add-card")
    await page.until("document.activeElement.classList.contains('new-card')")
    await page.send("Input.insertText", text="Bread")
    await page.press("Enter")
    await page.until(
        "document.querySelectorAll('section[data-column=doing] [data-card]').length === 2"
    )
    await until_value(person, database_id, "Bread", "state", "doing")


async def test_columns_are_of_people_and_of_a_checkbox(page: Page, person: Person) -> None:
    database_id, _ = await board(page, person, stack="checked")
    await drag(page, await title_of(page, "Tea"), "section[data-column=true]")
    await until_value(person, database_id, "Tea", "checked", True)
    content = {"stackFieldKey": "owner"}
    people = await view(person, database_id, kind="board", label="People", manifest=content)
    await opened(page, person, database_id, people)
    mine = str(person.space.user_id)
    await drag(page, await title_of(page, "Milk"), f'section[data-column="{mine}"]')
    await until_value(person, database_id, "Milk", "owner", [mine])
    await drag(page, await title_of(page, "Milk"), 'section[data-column=""]')
    await until_value(person, database_id, "Milk", "owner", [])


async def test_a_refused_move_is_put_back(page: Page, person: Person) -> None:
    database_id, _ = await board(page, person)
    found = await person.call("GET", f"/v1/databases/{database_id}/records")
    tea = next(row["id"] for row in found["records"] if row["title"] == "Tea")
    # While the card is held, the board does not follow what others do.
    card = await title_of(page, "Tea")
    await page.evaluate(f"{one(card)}.querySelector('.card-title').focus()")
    await page.press(" ")
    await page.press("ArrowRight")
    await page.until("document.querySelector('[data-column=doing] .held') !== null")
    await person.call("DELETE", f"/v1/records/{tea}")
    await page.press(" ")
    await page.until("document.querySelector('[role=alert]').innerText.includes('was not moved')")
    await page.until("document.querySelector('[data-column=open] .count').innerText === '1'")
    assert "Tea" not in str(await columns(page))
    page.problems.clear()  # the browser notes each answer of 404


async def test_a_card_is_moved_on_a_phone(page: Page, person: Person, screens: Path) -> None:
    database_id, _ = await board(page, person)
    await page.show(width=390, height=800)
    assert await axis(page) == 0
    await page.screenshot(screens / "board-phone.png")
    tea = await title_of(page, "Tea")
    await page.click(f"{tea} .handle > button")
    await press(page, "Done")
    await until_value(person, database_id, "Tea", "state", "done")
    await page.send("Emulation.setTouchEmulationEnabled", enabled=True)
    rice = await middle(page, f"{await title_of(page, 'Rice')} .handle > button")
    for kind, x in (("touchStart", 0), *(("touchMove", step) for step in range(0, 300, 30))):
        points = [{"x": min(rice[0] + x, 385), "y": rice[1]}]
        await page.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    await page.until("document.querySelector('section.aimed:not([data-column=open])') !== null")
    await page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    async def has_moved() -> bool:
        return (await records(person, database_id))["Rice"]["state"] != "open"

    await eventually(has_moved, what="Rice in another column")


async def test_viewers_see_no_controls(
    page: Page, person: Person, server: Server, space: Space
) -> None:
    database_id = await tasks(person)
    content = {"stackFieldKey": "state"}
    view_id = await view(person, database_id, kind="board", label="Board", manifest=content)
    viewer, _ = await space.member(Role.VIEWER)
    await sign_in(page, server, space, viewer)
    await page.open(f"{person.home}/databases/{database_id}?view={view_id}")
    await ready(page)
    await page.until("document.querySelectorAll('[data-card]').length === 4")
    controls = "document.querySelectorAll('#view-bar button, #view-body button').length"
    assert await page.evaluate(controls) == 0
    tea = await title_of(page, "Tea")
    await drag(page, tea, "section[data-column=done]")
    assert "Tea" in (await columns(page))["open"]
    assert await violations(page) == []
