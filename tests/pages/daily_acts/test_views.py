"""Views of a database in a real browser: filters, sorts and groups by clicks, saved into views."""

from pathlib import Path

import pytest

from models.core.access.rules import Role
from tests.pages.daily_acts.view_acts import (
    TITLES,
    choose,
    enter,
    opened,
    press,
    ready,
    stored,
    tasks,
    until_stored,
    view,
)
from tests.support.browser import Page
from tests.support.person import Person, sign_in, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]


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
    await page.until(f"{TITLES}.join() === 'Rice,Tea'")
    await press(page, "Undo")
    await page.until("document.querySelectorAll('#table .row').length === 4")
    assert "filter" not in (await stored(person, database_id, view_id))["manifest"]


async def test_the_tools_of_a_table_leave_the_tabs_their_room(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    for label in ("Board of the week", "Due next", "Done"):
        await view(person, database_id, label=label)
    await page.show(width=1280)
    await opened(page, person, database_id)
    tabs = await page.evaluate(
        "[...document.querySelectorAll('.view-tabs .tabs a')].map(one => one.innerText)"
    )
    assert len(tabs) == len(set(tabs)) == 5
    nav = "document.querySelector('.view-tabs .tabs')"
    assert await page.evaluate(f"{nav}.scrollWidth - {nav}.clientWidth") <= 1


GROUPS = (
    "[...document.querySelectorAll('.group-head')].map(one =>"
    " [...one.querySelectorAll('.group-value, .option, .group-count, .group-figure')]"
    ".map(part => part.firstChild?.textContent ?? '').filter(Boolean))"
)
ALL = "document.querySelector('.sheet-totals').innerText.trim()"


SHIFTS = """
const ask = window.fetch;
// The records come after the bar.
window.fetch = async (path, how) => {
  if (how?.method === "POST") await new Promise((done) => setTimeout(done, 500));
  return ask(path, how);
};
window.moved = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries().flatMap((entry) => entry.sources)) {
    if (one.node?.closest?.(".toolbar")) window.moved.push(one.node.textContent);
  }
}).observe({ type: "layout-shift", buffered: true });
"""


async def test_the_tools_do_not_move_while_the_page_is_read(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=SHIFTS)
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.home}/databases/{database_id}")
    await page.until("document.getElementById('table').dataset.ready === 'true'")
    # Shifts are reported after the next frame.
    await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
    assert await page.evaluate("window.moved") == []
    assert (
        await page.evaluate(
            "getComputedStyle(document.querySelector('[data-panel=sort-panel]')).visibility"
        )
        == "visible"
    )


async def test_sorts_groups_and_fields_are_chosen_and_saved(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)
    await page.click("[data-panel=sort-panel]")
    await press(page, "Add sort")
    await choose(page, "Field of sort 1", "state")
    await press(page, "Add sort")
    await choose(page, "Field of sort 2", "price")
    await choose(page, "Direction of sort 2", "desc")
    await page.click("[data-save]")
    sorts = [{"field": "state", "direction": "asc"}, {"field": "price", "direction": "desc"}]
    await until_stored(page, person, database_id, view_id, sorts, "sorts")
    await page.until(f"{TITLES}.join() === 'Rice,Tea,Milk,Salt'")
    await page.press("Escape")
    await page.click("[data-panel=group-panel]")
    await choose(page, "Group by", "state")
    await press(page, "Add summary")
    await page.click("[data-save]")
    await page.until("document.querySelector('.group-head') !== null")
    assert await page.evaluate(GROUPS) == [
        *(["Open", "2", "Sum 12"], ["Doing", "1", "Sum 2"], ["Done", "1", "Sum 1"])
    ]
    assert await page.evaluate(ALL) == "Sum 15"
    manifest = (await stored(person, database_id, view_id))["manifest"]
    assert manifest["groupBy"] == [{"field": "state"}]
    assert manifest["aggregates"] == [{"op": "sum", "field": "price"}]
    await page.press("Escape")
    await page.click("[data-panel=fields-panel]")
    await page.evaluate(
        "[...document.querySelectorAll('.shown-fields label')]"
        ".find(one => one.innerText.trim() === 'Due').click()"
    )
    await page.screenshot(screens / "fields.png")
    assert await violations(page) == []
    await page.click("[data-save]")
    await page.until(
        "![...document.querySelectorAll('#table .column-head')]"
        ".some(one => one.innerText.includes('Due'))"
    )


KINDS = {
    "board": ("[data-card]", {"stackFieldKey": "state"}),
    "calendar": (".calendar-grid", {"dateFieldKey": "due"}),
    "gallery": (".gallery [data-card]", {}),
    "chart": (".chart-card svg", {"chart": {"type": "bar", "xFieldKey": "state"}}),
    "timeline": (".timeline .cal-week", {"dateFieldKey": "due", "endDateFieldKey": "due"}),
    "list": ("#records tbody tr", {}),
    "form": ("#records tbody tr", None),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_view_of_each_kind_is_made_here(
    page: Page, person: Person, screens: Path, kind: str
) -> None:
    shown, manifest = KINDS[kind]
    database_id = await tasks(person)
    await opened(page, person, database_id)
    await page.click("[data-new-view]")
    await choose(page, "Kind", kind)
    await enter(page, "Name", "Fresh")
    await page.screenshot(screens / f"new-{kind}.png")
    assert await violations(page) == []
    await press(page, "Create")
    await page.until(
        "location.search.startsWith('?view=')"
        " && document.getElementById('view-bar').dataset.ready === 'true'"
    )
    await page.until(f"document.querySelector({shown!r}) !== null")
    made = (await person.call("GET", f"/v1/databases/{database_id}/views"))["views"][-1]
    assert (made["label"], made["kind"], made["scope"]) == ("Fresh", kind, "shared")
    assert manifest is None or made["manifest"] == manifest
    await page.screenshot(screens / f"view-{kind}.png")


async def test_a_chart_is_changed_in_its_settings(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await tasks(person)
    content = {"chart": {"type": "bar", "xFieldKey": "state"}}
    view_id = await view(person, database_id, kind="chart", manifest=content)
    await opened(page, person, database_id, view_id)
    await page.until("document.querySelectorAll('.chart-mark').length === 3")
    await page.click("[data-panel=view-menu]")
    await press(page, "Settings…")
    await choose(page, "Chart type", "line")
    await choose(page, "Values of", "due")
    await choose(page, "Figure", "sum")
    await press(page, "Save")
    await page.until("document.querySelectorAll('.chart-card .dot').length === 3")
    chart = (await stored(person, database_id, view_id))["manifest"]["chart"]
    assert chart == {
        "type": "line",
        "xFieldKey": "due",
        "granularity": "month",
        "aggregate": {"op": "sum", "field": "price"},
    }
    said = "document.querySelector('.chart-card svg').getAttribute('aria-label')"
    assert "Nov 2026: 5; Dec 2026: 9; Empty: 1" in await page.evaluate(said)
    await page.screenshot(screens / "chart-line.png")
    assert await violations(page) == []
    for kind, shown in (("pie", ".slice"), ("number", ".chart-number b")):
        await page.click("[data-panel=view-menu]")
        await press(page, "Settings…")
        await choose(page, "Chart type", kind)
        await press(page, "Save")
        await page.until(f"document.querySelector('{shown}') !== null")
        await page.screenshot(screens / f"chart-{kind}.png")
    assert await page.text(".chart-number b") == "15"


async def test_a_view_is_duplicated_made_private_locked_moved_and_deleted(
    page: Page, person: Person
) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id, manifest={"sorts": [{"field": "price"}]})
    await opened(page, person, database_id, view_id)

    async def menu(label: str) -> None:
        await page.click("[data-panel=view-menu]")
        await press(page, label)

    await menu("Lock")
    await page.until("document.querySelector('.view-tabs .tabs').innerText.includes('locked')")
    assert (await stored(person, database_id, view_id))["locked"]
    await menu("Duplicate")
    await page.until(
        f"!location.search.includes('{view_id}')"
        " && document.getElementById('view-bar').dataset.ready === 'true'"
    )
    views = (await person.call("GET", f"/v1/databases/{database_id}/views"))["views"]
    copy = views[-1]
    assert (copy["label"], copy["locked"]) == ("Copy of Mine", False)
    assert copy["manifest"] == {"sorts": [{"field": "price"}]}
    await menu("Make private")
    await page.until("document.querySelector('.view-tabs .tabs').innerText.includes('private')")
    assert (await stored(person, database_id, copy["id"]))["scope"] == "personal"
    await page.evaluate("window.isBefore = true")
    await menu("Move left")
    await page.until("!window.isBefore")
    await ready(page)
    views = (await person.call("GET", f"/v1/databases/{database_id}/views"))["views"]
    assert [one["label"] for one in views] == ["All records", "Copy of Mine", "Mine"]
    await menu("Delete…")
    await page.click("#delete-view .danger")
    await page.until("location.search === '' && document.getElementById('view-bar') !== null")
    await ready(page)
    views = (await person.call("GET", f"/v1/databases/{database_id}/views"))["views"]
    assert [one["label"] for one in views] == ["All records", "Mine"]


async def test_changes_of_two_people_in_a_view_are_not_lost(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)
    path = f"/v1/databases/{database_id}/views/{view_id}"
    theirs = [{"field": "price", "direction": "desc"}]
    await person.call("PATCH", path, {"manifest": {"sorts": theirs}})
    await page.click("[data-panel=filter-panel]")
    await press(page, "Add condition")
    await choose(page, "Field of condition 1", "checked")
    await page.click("[data-save]")
    mine = {"and": [{"field": "checked", "op": "eq", "value": True}]}
    await until_stored(page, person, database_id, view_id, mine, "filter")
    assert (await stored(person, database_id, view_id))["manifest"]["sorts"] == theirs
    other = {"field": "price", "op": "gt", "value": 5}
    await person.call("PATCH", path, {"manifest": {"filter": other}})
    await choose(page, "Operator of condition 1", "is_not_empty")
    await page.click("[data-save]")
    await page.until("document.querySelector('.panel-foot .fault') !== null")
    assert "Someone else changed this view" in await page.text(".panel-foot .fault")
    assert (await stored(person, database_id, view_id))["manifest"] == {"filter": other}
    page.problems.clear()  # the browser notes each answer of 409


@pytest.mark.parametrize("role", [Role.EDITOR, Role.VIEWER])
async def test_a_locked_view_has_no_controls_for_members_who_cannot_change_it(
    page: Page, person: Person, server: Server, space: Space, role: Role
) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id, locked=True)
    member, _ = await space.member(role)
    await sign_in(page, server, space, member)
    await page.open(f"{person.home}/databases/{database_id}?view={view_id}")
    await ready(page)
    shown = (
        "[...document.querySelectorAll('#view-bar button')].filter(one => one.checkVisibility())"
    )
    labels = f"{shown}.map(one => one.innerText.trim())"
    expected = ["⋯", "New view", "Filter", "Sort", "Group", "Fields", "Colors"]
    assert await page.evaluate(labels) == (expected if role is Role.EDITOR else [])
    if role is Role.EDITOR:
        await page.click("[data-panel=view-menu]")
        items = "[...document.querySelectorAll('.menu-item')].map(one => one.innerText)"
        assert await page.evaluate(items) == ["Duplicate"]
        await page.click("[data-panel=filter-panel]")
        await page.until("document.querySelector('.panel-foot') !== null")
        assert await page.evaluate("document.querySelector('[data-save]')") is None
    assert await violations(page) == []


async def test_records_are_colored_by_rules(page: Page, person: Person, screens: Path) -> None:
    database_id = await tasks(person)
    content = {"stackFieldKey": "state"}
    view_id = await view(person, database_id, kind="board", manifest=content)
    await opened(page, person, database_id, view_id)
    await page.click("[data-panel=color-panel]")
    await press(page, "Add rule")
    await choose(page, "Field of condition 1", "price")
    await choose(page, "Operator of condition 1", "gt")
    await enter(page, "Value of condition 1", "2")
    await page.screenshot(screens / "colors.png")
    assert await violations(page) == []
    await page.click("[data-save]")
    await page.until("document.querySelectorAll('[data-card][data-color=red]').length === 2")
    (rule,) = (await stored(person, database_id, view_id))["manifest"]["colors"]
    condition = {"field": "price", "op": "gt", "value": 2}
    assert rule == {"color": "red", "filter": {"and": [condition]}}
    await page.screenshot(screens / "board-colors.png")


async def test_a_filter_is_built_by_keys_alone(page: Page, person: Person, screens: Path) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)
    await page.evaluate("document.querySelector('[data-panel=filter-panel]').focus()")
    focused = "document.activeElement"
    await page.press("Enter")
    await page.until(f"{focused}.closest('#filter-panel') !== null")
    await page.press("Escape")
    await page.until(f"{focused}.dataset.panel === 'filter-panel'")
    await page.press("Enter")
    await page.until(f"{focused}.closest('#filter-panel') !== null")
    await page.press("Tab")
    await page.press("Enter")
    await page.until("document.querySelector('.filter-row') !== null")
    for _ in range(4):
        await page.send(
            "Input.dispatchKeyEvent",
            type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9, modifiers=8,
        )  # fmt: skip
        if await page.evaluate(f"{focused}.classList.contains('filter-field')"):
            break
    await page.press("P")
    await page.until("document.querySelector('.filter-field').value === 'price'")
    await page.press("Tab")
    await page.press("Tab")
    await page.send("Input.insertText", text="9")
    await page.until("document.querySelector('.match-count').innerText === '1 record matches'")
    await page.show(dark=True)
    await page.screenshot(screens / "filter-dark.png")
    assert await violations(page) == []
    for _ in range(6):
        await page.press("Tab")
        if await page.evaluate(f"{focused}.dataset.save !== undefined"):
            break
    await page.press("Enter")
    expected = {"and": [{"field": "price", "op": "eq", "value": 9}]}
    await until_stored(page, person, database_id, view_id, expected, "filter")
