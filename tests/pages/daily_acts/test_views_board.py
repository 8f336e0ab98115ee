"""Boards in a real browser: cards are moved by mouse, keys and finger, and are added in a column."""

from pathlib import Path

import pytest

from models.core.access.rules import Role
from tests.pages.daily_acts.view_acts import drag, one, opened, press, ready, stored, tasks, view
from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Json, Person, axis, sign_in, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40)]


@pytest.fixture
def person(server: Server, space: Space) -> Person:
    return Person(server, space)


async def records(person: Person, database_id: str) -> dict[str, Json]:
    """The values of the records by their titles."""
    found = await person.call("GET", f"/v1/databases/{database_id}/records")
    return {row["title"]: row["data"] for row in found["records"]}


async def until_value(
    person: Person, database_id: str, title: str, key: str, value: object
) -> None:
    async def holds() -> bool:
        return (await records(person, database_id))[title].get(key) == value

    await eventually(holds, what=f"{key} of {title} is {value}")


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
