"""Views of a database in a real browser: filters, sorts and groups by clicks, saved into views."""

from pathlib import Path

import pytest

from tests.pages.daily_acts.view_acts import (
    choose,
    enter,
    opened,
    press,
    stored,
    tasks,
    titles,
    until_stored,
    view,
)
from tests.support.browser import Page
from tests.support.person import Person, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40)]


@pytest.fixture
def person(server: Server, space: Space) -> Person:
    return Person(server, space)


async def test_a_nested_filter_is_built_by_clicks_and_saved(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)
    await page.click("[data-panel=filter-panel]")
    await press(page, "Add condition")
    await choose(page, "Field of condition 1", "price")
    await choose(page, "Operator of condition 1", "gte")
    await enter(page, "Value of condition 1", "2,5")
    await press(page, "Add group")
    await choose(page, "Field of condition 2.1", "state")
    await choose(page, "Operator of condition 2.1", "in")
    await choose(page, "Add to Value of condition 2.1", "open")
    await page.until("document.querySelector('.match-count').innerText === '2 records match'")
    await page.screenshot(screens / "filter.png")
    assert await violations(page) == []
    await page.click("[data-save]")
    expected = {
        "and": [
            {"field": "price", "op": "gte", "value": 2.5},
            {"or": [{"field": "state", "op": "in", "value": ["open"]}]},
        ]
    }
    await until_stored(page, person, database_id, view_id, expected, "filter")
    assert await titles(page) == ["Rice", "Tea"]
    await press(page, "Undo")
    await page.until("document.querySelectorAll('#records tbody tr').length === 4")
    assert "filter" not in (await stored(person, database_id, view_id))["manifest"]
