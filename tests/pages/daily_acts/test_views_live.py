"""Changes of others come into views that are open, by the feed; what one holds stays."""

import pytest

from tests.pages.daily_acts.view_acts import (
    TITLES,
    choose,
    one,
    opened,
    press,
    ready,
    stored,
    tasks,
    view,
)
from tests.support.browser import Page
from tests.support.person import Json, Person, sign_in

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

LIVE = "document.documentElement.dataset.feed === 'live'"
CARDS = (
    "Object.fromEntries([...document.querySelectorAll('section[data-column]')].map(one =>"
    " [one.dataset.column, [...one.querySelectorAll('.card-title')].map(a => a.innerText).join()]))"
)
NOTED = (
    "window.told = ''; window.WebSocket = class extends WebSocket { constructor(...all) {"
    " super(...all); this.addEventListener('message', one => { window.told += one.data; }); } };"
)


def names(selector: str) -> str:
    return f"[...document.querySelectorAll({selector!r})].map(one => one.textContent.trim())"


KINDS: dict[str, tuple[Json, str]] = {
    "board": ({"stackFieldKey": "state"}, f"{CARDS}.done.includes('Green tea')"),
    "calendar": (
        {"dateFieldKey": "due"},
        f"{names('[data-event]')}.includes('Green tea')",
    ),
    "gallery": (
        {},
        f"{names('.gallery .card-title')}.includes('Green tea')",
    ),
    "chart": (
        {"chart": {"type": "bar", "xFieldKey": "state"}},
        f"{names('.chart-values tbody tr')}.includes('Done2')",
    ),
}


async def ids(person: Person, database_id: str) -> dict[str, str]:
    """The ids of the records by their titles."""
    listed = await person.call("GET", f"/v1/databases/{database_id}/records")
    return {one["title"]: one["id"] for one in listed["records"]}


async def looked_at(page: Page, person: Person, kind: str, manifest: Json) -> str:
    """The id of a database whose view is open and follows."""
    database_id = await tasks(person)
    view_id = await view(person, database_id, kind=kind, label="Shared", manifest=manifest)
    day = "#day=2026-11-10&mode=month" if kind == "calendar" else ""
    await opened(page, person, database_id, view_id + day)
    await page.until(LIVE)
    return database_id


@pytest.mark.parametrize("kind", KINDS)
async def test_a_view_shows_what_others_change(page: Page, person: Person, kind: str) -> None:
    manifest, shown = KINDS[kind]
    database_id = await looked_at(page, person, kind, manifest)
    tea = (await ids(person, database_id))["Tea"]
    assert not await page.evaluate(shown)
    change = {"title": "Green tea", "state": "done", "due": "2026-11-12"}
    await person.call("PATCH", f"/v1/records/{tea}", {"data": change})
    await page.until(shown)


async def test_a_held_card_stays_while_others_change_the_board(page: Page, person: Person) -> None:
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=NOTED)
    database_id = await looked_at(page, person, "board", {"stackFieldKey": "state"})
    tea = (await ids(person, database_id))["Tea"]
    await page.evaluate(f"{one('[data-column=doing] .card-title')}.focus()")
    await page.press(" ")
    await page.press("ArrowRight")
    await page.until(f"{CARDS}.done === 'Milk,Salt'")
    await person.call("PATCH", f"/v1/records/{tea}", {"data": {"state": "doing"}})
    await page.until("window.told.includes('record.updated')")
    await page.evaluate("new Promise(done => setTimeout(done, 1000))")
    assert await page.evaluate(f"{CARDS}.done") == "Milk,Salt"
    await page.press(" ")
    await page.until(f"{CARDS}.doing === 'Tea' && {CARDS}.done.includes('Milk')")


async def test_without_a_feed_the_page_asks_by_itself(page: Page, person: Person) -> None:
    broken = "window.WebSocket = class extends WebSocket { constructor(...all) { super(...all);"
    broken += " this.addEventListener('open', () => this.close()); } };"
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=broken)
    database_id = await tasks(person)
    view_id = await view(person, database_id, kind="board", manifest={"stackFieldKey": "state"})
    await opened(page, person, database_id, view_id)
    tea = (await ids(person, database_id))["Tea"]
    await person.call("PATCH", f"/v1/records/{tea}", {"data": {"state": "done"}})
    await page.until(f"{CARDS}.done.includes('Tea')")


async def test_a_view_that_others_change_is_shown_when_one_asks(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)
    await page.until(LIVE)
    await page.click("[data-panel=sort-panel]")
    await press(page, "Add sort")
    await choose(page, "Field of sort 1", "price")
    path = f"/v1/databases/{database_id}/views/{view_id}"
    rule = {"field": "state", "op": "eq", "value": "open"}
    await person.call("PATCH", path, {"label": "Theirs", "manifest": {"filter": rule}})
    await page.until("document.querySelector('.view-bar > .notice') !== null")
    await page.press("Escape")
    assert await page.evaluate("document.querySelectorAll('#table .row').length") == 4
    await press(page, "Show changes")
    await page.until(f"{TITLES}.sort().join() === 'Rice,Tea'")
    await page.until("document.querySelector('.view-bar > .notice') === null")
    # The draft of the other panel is still there.
    assert await page.evaluate("document.querySelector('.unsaved') !== null")
    assert "Theirs" in await page.text(".view-tabs")


async def test_a_layout_of_ones_own_is_no_change_of_others(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.home}/databases/{database_id}?view={view_id}")
    await ready(page)
    await page.until(f"{LIVE} && document.getElementById('table').dataset.ready === 'true'")
    await page.click("[data-head='1']")
    await page.evaluate(
        "[...document.querySelectorAll('.sheet-menu button')]"
        ".find(one => one.innerText === 'Hide').click()"
    )
    await person.call(
        "POST", f"/v1/databases/{database_id}/views", {"label": "Second", "kind": "table"}
    )
    await page.until("document.querySelector('.view-tabs').innerText.includes('Second')")
    assert await page.evaluate("document.querySelector('.view-bar > .notice') === null")


HELD = (
    "(() => { const ask = window.fetch; const open = new Promise(done => { window.letGo = done; });"
    " window.fetch = async (path, how) => { const answer = await ask(path, how);"
    " if (how?.method === METHOD) { window.isHeld = true; await open; } return answer; }; })()"
)
"""The answers to requests of a method come once they are let go."""


@pytest.mark.parametrize("part", ["panel", "column"])
async def test_a_change_of_ones_own_is_none_of_others_before_its_answer(
    page: Page, person: Person, part: str
) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)
    await page.until(f"{LIVE} && document.getElementById('table').dataset.ready === 'true'")
    await page.evaluate(HELD.replace("METHOD", "'PATCH'"))
    if part == "panel":
        await press(page, "Sort")
        await press(page, "Add sort")
        await page.click("#sort-panel [data-save]")
    else:
        await page.click("[data-head='1']")
        await page.until("document.querySelector('.sheet-menu') !== null")
        await page.press("Enter")
    await page.until("window.isHeld")
    # The feed has told of the change once it has told of a later one.
    await person.call(
        "POST", f"/v1/databases/{database_id}/views", {"label": "Second", "kind": "table"}
    )
    await page.until("document.querySelector('.view-tabs').innerText.includes('Second')")
    assert await page.evaluate("document.querySelector('.view-bar > .notice') === null")
    await page.evaluate("letGo()")
    await page.until("document.querySelector('[data-panel=sort-panel]').innerText === 'Sort (1)'")
    assert await page.evaluate("document.querySelector('.view-bar > .notice') === null")


async def test_changes_made_while_a_panel_is_saved_stay(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    view_id = await view(person, database_id)
    await opened(page, person, database_id, view_id)
    await page.evaluate(HELD.replace("METHOD", "'PATCH'"))
    await press(page, "Sort")
    await press(page, "Add sort")
    await page.click("#sort-panel [data-save]")
    await page.until("window.isHeld")
    # The same part once more, and another one.
    await press(page, "Add sort")
    await page.press("Escape")
    await press(page, "Group")
    await choose(page, "Group by", "state")
    await page.evaluate("letGo()")
    await page.until("document.querySelector('#group-panel [data-save]').disabled === false")
    shown = "[...document.querySelectorAll('[data-panel]')].map(one => one.innerText)"
    assert {"Sort (2)", "Group (1)"} <= set(await page.evaluate(shown))
    assert len((await stored(person, database_id, view_id))["manifest"]["sorts"]) == 1
    await page.click("#group-panel [data-save]")
    await page.until("document.querySelector('.group-head') !== null")
    manifest = (await stored(person, database_id, view_id))["manifest"]
    assert (len(manifest["sorts"]), manifest["groupBy"]) == (2, [{"field": "state"}])
