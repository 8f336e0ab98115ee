"""Dashboards in a real browser: widgets added, arranged by mouse and keys, shared by a link."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pages.daily_acts.view_acts import FIELDS, tasks, view
from tests.support.browser import Page
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in, violations

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]


def widget(kind: str, content: dict[str, Any], x: int, y: int, w: int, h: int) -> dict[str, Any]:
    return {"kind": kind, "content": content, "x": x, "y": y, "w": w, "h": h}


async def new_dashboard(person: Person, *blocks: dict[str, Any]) -> tuple[str, str]:
    """The ids of the item and of the surface of a dashboard."""
    body = {"workspaceId": str(person.space.id), "kind": "dashboard", "title": "Shop"}
    made = await person.call("POST", "/v1/items", {**body, "content": {"blocks": list(blocks)}})
    return str(made["item"]["id"]), str(made["item"]["targetId"])


async def until_placed(person: Person, surface_id: str, expected: dict[str, list[int]]) -> None:
    seen: dict[str, list[int]] = {}

    async def is_placed() -> bool:
        surface = await person.call("GET", f"/v1/surfaces/{surface_id}")
        seen.clear()
        for one in surface["blocks"]:
            seen[one["content"]["title"]] = [one[side] for side in ("x", "y", "w", "h")]
        return seen == expected

    try:
        await eventually(is_placed, "the frames")
    finally:
        assert seen == expected


async def shop(person: Person) -> list[dict[str, Any]]:
    """Widgets of a database with four records."""
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    named = {"databaseId": database_id}
    count = {**named, "aggregate": {"op": "count"}, "title": "Open"}
    by_state = {**named, "type": "bar", "xFieldKey": "state", "aggregate": {"op": "count"}}
    return [
        widget("number", count, 0, 0, 3, 3),
        widget("chart", {**by_state, "title": "By state"}, 3, 0, 9, 8),
        widget("view", {"viewId": view_id, "title": "Tasks"}, 0, 8, 8, 7),
        widget("runs", {"title": "Runs"}, 8, 8, 4, 7),
    ]


IN_SIZE = (
    "(() => { const svg = document.querySelector('.of-chart svg');"
    " return svg.viewBox.baseVal.width === Math.round(svg.clientWidth); })()"
)
"""A drawing has the size of its place, so that its texts have that of the page."""


async def test_widgets_are_drawn_and_arranged(page: Page, person: Person, screens: Path) -> None:
    _, surface_id = await new_dashboard(person, *await shop(person))
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.server.url}/surfaces/{surface_id}")
    await page.until("document.querySelector('.of-number .chart-number b').innerText === '4'")
    await page.until("document.querySelectorAll('.of-chart svg .chart-mark').length === 3")
    await page.until("document.querySelectorAll('.of-view tbody tr').length === 4")
    await page.until(IN_SIZE)
    for dark in (False, True):
        await page.show(dark=dark)
        await page.screenshot(screens / f"dashboard-{'dark' if dark else 'light'}.png")
        assert await violations(page) == []
    # By keys: the number becomes wider, and what is in its way moves down.
    await page.evaluate("document.querySelector('.of-number .grip').focus()")
    arrow = "Input.dispatchKeyEvent"
    held = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39, "modifiers": 8}
    await page.send(arrow, type="keyDown", **held)
    await page.send(arrow, type="keyUp", **held)
    moved = {"Open": [0, 0, 4, 3], "By state": [3, 3, 9, 8], "Tasks": [0, 11, 8, 7]}
    await until_placed(person, surface_id, {**moved, "Runs": [8, 11, 4, 7]})
    await page.evaluate(
        "[...document.querySelectorAll('.dashboard-bar button')]"
        ".find(one => one.innerText === 'Undo').click()"
    )
    before = {"Open": [0, 0, 3, 3], "By state": [3, 0, 9, 8], "Tasks": [0, 8, 8, 7]}
    await until_placed(person, surface_id, {**before, "Runs": [8, 8, 4, 7]})
    # By the mouse: the number goes three rows down.
    start = await page.evaluate(
        "(() => { const grip = document.querySelector('.of-number .grip').getBoundingClientRect();"
        " return [grip.x + 5, grip.y + 5]; })()"
    )
    at = {"x": start[0], "y": start[1], "button": "left", "clickCount": 1}
    await page.send("Input.dispatchMouseEvent", type="mousePressed", **at)
    for part in (0.5, 1):
        to = {**at, "y": start[1] + part * 3 * 44}
        await page.send("Input.dispatchMouseEvent", type="mouseMoved", buttons=1, **to)
    await page.until("document.querySelector('.widget-shade') !== null")
    await page.send("Input.dispatchMouseEvent", type="mouseReleased", **to)
    await until_placed(person, surface_id, {**before, "Open": [0, 3, 3, 3], "Runs": [8, 8, 4, 7]})
    await page.show(width=390, height=800)
    await page.screenshot(screens / "dashboard-narrow.png")
    assert await axis(page) <= 0


async def test_long_numbers_fit_and_runs_have_the_names_of_their_automations(
    page: Page, person: Person
) -> None:
    database_id = await tasks(person, [{"label": "Price", "kind": "currency"}, *FIELDS[1:]])
    row = {"title": "All of it", "price": 12_044_195.31}
    await person.call("POST", f"/v1/databases/{database_id}/records", {"data": row})
    asked = {"databaseId": database_id, "aggregate": {"op": "sum", "field": "price"}}
    widgets = [
        widget("number", {**asked, "title": "Worth"}, 0, 0, 2, 3),
        widget("runs", {"title": "Runs"}, 3, 0, 4, 7),
    ]
    run_id = await person.run(graph(node("one", "transform", output={})), label="Count stock")
    _, surface_id = await new_dashboard(person, *widgets)
    await sign_in(page, person.server, person.space)
    await page.show(width=1280)
    await page.open(f"{person.server.url}/surfaces/{surface_id}")
    number = "document.querySelector('.of-number .chart-number b')"
    await page.until(f"{number}.innerText === '12,044,210.31'")
    inside = "document.querySelector('.of-number .widget-body')"
    assert await page.evaluate(f"{inside}.scrollWidth <= {inside}.clientWidth")
    link = f"document.querySelector('.of-runs a[href=\"/runs/{run_id}\"]')"
    await page.until(f"{link}.innerText === 'Count stock'")
    assert not any("/automations?" in one for one in page.requests), "only those of the runs"


async def test_a_widget_is_added_in_dialogs(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    _, surface_id = await new_dashboard(person)
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.server.url}/surfaces/{surface_id}")
    await page.until("document.getElementById('dashboard').dataset.ready === 'true'")
    await page.evaluate("document.querySelector('[data-add=chart]').click()")
    for values in (
        {"databaseId": database_id},
        {"type": "pie", "xFieldKey": "state", "op": "sum", "field": "price", "title": "Worth"},
    ):
        name = next(iter(values))
        await page.until(f"document.querySelector('#note-dialog[open] [name={name}]') !== null")
        await page.evaluate(
            "(() => { const form = document.querySelector('#note-dialog form');"
            f" for (const [name, value] of Object.entries({json.dumps(values)}))"
            " form.elements[name].value = value; form.requestSubmit(); })()"
        )
    await page.until("document.querySelectorAll('.of-chart svg .slice').length === 3")
    (block,) = (await person.call("GET", f"/v1/surfaces/{surface_id}"))["blocks"]
    assert block["content"] == {
        "databaseId": database_id,
        "type": "pie",
        "xFieldKey": "state",
        "aggregate": {"op": "sum", "field": "price"},
        "title": "Worth",
    }


async def test_a_link_shares_the_figures(page: Page, person: Person, screens: Path) -> None:
    item_id, _ = await new_dashboard(person, *await shop(person))
    path = f"{person.space.path}/items/{item_id}/share-links"
    link = await person.call("POST", path, {})
    await page.open(person.server.url + link["shareUrl"])
    await page.until("document.querySelector('.of-number .figure b').innerText === '4'")
    await page.until("document.querySelectorAll('.of-chart svg .chart-mark').length === 3")
    assert await page.evaluate("document.querySelectorAll('.of-view tbody tr').length") == 4
    assert "Not shared" in await page.text(".of-runs")
    assert await page.evaluate("document.querySelectorAll('main button, main .grip').length") == 0
    await page.screenshot(screens / "dashboard-shared.png")
    assert await violations(page) == []
