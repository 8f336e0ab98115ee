"""Views of a database in a real browser: filters, sorts and groups by clicks, saved into views."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Page
from tests.support.person import Json, Person, axis, sign_in, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40)]

FIELDS: list[Json] = [
    {"label": "Price", "kind": "number"},
    {
        "label": "State",
        "kind": "status",
        "options": [
            {"name": "Open", "color": "blue"},
            {"name": "Doing", "color": "yellow"},
            {"name": "Done", "color": "green"},
        ],
    },
    {"label": "Due", "kind": "date"},
    {"label": "Checked", "kind": "checkbox"},
    {"label": "Owner", "kind": "person"},
]
ROWS: list[Json] = [
    {"title": "Tea", "price": 3, "state": "open", "due": "2026-11-03"},
    {"title": "Milk", "price": 2, "state": "doing", "due": "2026-11-10"},
    {"title": "Rice", "price": 9, "state": "open", "due": "2026-12-01"},
    {"title": "Salt", "price": 1, "state": "done"},
]


@pytest.fixture
def person(server: Server, space: Space) -> Person:
    return Person(server, space)


async def tasks(person: Person, fields: list[Json] | None = None) -> str:
    """The id of a database with a few records."""
    body = {"label": "Tasks", "fields": fields or FIELDS}
    made = await person.call("POST", f"{person.space.path}/databases", body)
    for row in ROWS:
        await person.call("POST", f"/v1/databases/{made['id']}/records", {"data": row})
    return str(made["id"])


async def view(person: Person, database_id: str, **content: Any) -> str:
    body = {"label": "Mine", "kind": "table", **content}
    made = await person.call("POST", f"/v1/databases/{database_id}/views", body)
    return str(made["id"])


async def opened(page: Page, person: Person, database_id: str, view_id: str = "") -> None:
    """Open a database in a session, and wait until the bar is there."""
    await sign_in(page, person.server, person.space)
    tail = f"?view={view_id}" if view_id else ""
    await page.open(f"{person.home}/databases/{database_id}{tail}")
    await ready(page)


async def ready(page: Page) -> None:
    await page.until("document.getElementById('view-bar').dataset.ready === 'true'")


def one(selector: str) -> str:
    return f"document.querySelector({json.dumps(selector)})"


async def choose(page: Page, label: str, value: str) -> None:
    """Choose an option of the select of this label."""
    selector = f"select[aria-label={json.dumps(label)}]"
    await page.until(f"[...{one(selector)}.options].some(one => one.value === {json.dumps(value)})")
    await page.evaluate(
        f"(() => {{ const one = {one(selector)}; one.value = {json.dumps(value)};"
        " one.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


async def enter(page: Page, label: str, text: str) -> None:
    """Replace what is in the input of this label."""
    selector = f"input[aria-label={json.dumps(label)}]"
    await page.until(f"{one(selector)} !== null")
    await page.evaluate(f"{one(selector)}.focus(); {one(selector)}.select()")
    await page.send("Input.insertText", text=text)


async def press(page: Page, label: str) -> None:
    """Click the button of these words."""
    inside = "[...document.querySelectorAll('main button, dialog[open] button')]"
    found = f"{inside}.find(one => one.innerText.trim() === {json.dumps(label)} && !one.disabled)"
    await page.until(f"{found} !== undefined")
    await page.evaluate(f"{found}.setAttribute('data-pressed', '')")
    await page.click("[data-pressed]")
    await page.evaluate("document.querySelector('[data-pressed]')?.removeAttribute('data-pressed')")


async def stored(person: Person, database_id: str, view_id: str) -> Json:
    found: Json = await person.call("GET", f"/v1/databases/{database_id}/views/{view_id}")
    return found


async def until_stored(
    page: Page, person: Person, database_id: str, view_id: str, expected: Any, *keys: str
) -> None:
    """Until the manifest of a view has a value at a key; the page says that it is saved."""
    await page.until("document.querySelector('.view-panels').innerText.includes('Saved')")
    manifest = (await stored(person, database_id, view_id))["manifest"]
    assert manifest.get(keys[0]) == expected


async def titles(page: Page) -> list[str]:
    found: list[str] = await page.evaluate(
        "[...document.querySelectorAll('#records tbody th')].map(one => one.innerText.trim())"
    )
    return found


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
