"""Calendars in a real browser: events are dragged and stretched over days, and added on a day."""

from pathlib import Path

import pytest

from tests.pages.daily_acts.view_acts import (
    drag,
    middle,
    one,
    opened,
    press,
    pull,
    tasks,
    until_value,
    view,
)
from tests.support.browser import Page
from tests.support.person import Json, Person, axis, violations

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

FIELDS: list[Json] = [
    {"label": "Price", "kind": "number"},
    {
        "label": "State",
        "kind": "status",
        "options": [{"name": n} for n in ("Open", "Doing", "Done")],
    },
    {"label": "Due", "kind": "date"},
    {"label": "End", "kind": "date"},
    {"label": "Meeting", "kind": "datetime"},
]


async def calendar(
    page: Page, person: Person, *, tail: str = "#day=2026-11-15", **manifest: str
) -> str:
    """A database whose calendar is open."""
    database_id = await tasks(person, FIELDS)
    content = {"dateFieldKey": "due", **manifest}
    view_id = await view(person, database_id, kind="calendar", label="Plan", manifest=content)
    await opened(page, person, database_id, f"{view_id}{tail}")
    await page.until("document.querySelector('[data-event]') !== null")
    return database_id


async def event(page: Page, title: str) -> str:
    """A selector of the first bar of an event."""
    await page.until(
        "(() => { document.querySelectorAll('[data-event]').forEach(one =>"
        " one.dataset.title = one.querySelector('a').innerText);"
        f" return {one(f'[data-title={title}]')} !== null; }})()"
    )
    return f"[data-title={title}]"


def names(selector: str) -> str:
    return f"[...document.querySelectorAll({selector!r})].map(one => one.innerText.trim())"


def day(text: str) -> str:
    return f'.cal-day[data-day="{text}"]'


async def test_an_event_is_dragged_to_another_day(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await calendar(page, person)
    shown = "[...document.querySelectorAll('[data-event] a')].map(one => one.innerText)"
    assert await page.evaluate(shown) == ["Tea", "Milk", "Rice"]
    await drag(page, await event(page, "Tea"), day("2026-11-19"))
    await until_value(person, database_id, "Tea", "due", "2026-11-19")
    assert await violations(page) == []
    await page.screenshot(screens / "calendar.png")
    await page.show(dark=True)
    await page.screenshot(screens / "calendar-dark.png")
    assert await violations(page) == []
    await page.show(width=390, height=800)
    assert await axis(page) == 0


async def test_an_event_is_stretched_over_days(page: Page, person: Person) -> None:
    database_id = await calendar(page, person, endDateFieldKey="end")
    tea = await event(page, "Tea")
    await drag(page, f"{tea} .cal-edge.end", day("2026-11-06"))
    await until_value(person, database_id, "Tea", "end", "2026-11-06")
    await until_value(person, database_id, "Tea", "due", "2026-11-03")
    edge = await middle(page, f"{await event(page, 'Tea')} .cal-edge.start")
    await pull(page, edge, await middle(page, day("2026-11-02")))
    await until_value(person, database_id, "Tea", "due", "2026-11-02")
    # As a whole it keeps its length, also over the end of a week.
    at = await middle(page, await event(page, "Tea"))
    await pull(page, at, await middle(page, day("2026-11-07")))
    await until_value(person, database_id, "Tea", "end", "2026-11-09")
    await event(page, "Tea")
    assert await page.evaluate("document.querySelectorAll('.cal-event.before').length") == 1


async def test_an_event_is_moved_and_stretched_by_keys_alone(page: Page, person: Person) -> None:
    database_id = await calendar(page, person, endDateFieldKey="end")
    await page.evaluate(f"{one(await event(page, 'Milk') + ' a')}.focus()")
    await page.press(" ")
    await page.press("ArrowRight")
    await page.press("ArrowDown")
    await page.press("Enter")
    await until_value(person, database_id, "Milk", "due", "2026-11-18")
    await page.until("document.activeElement.innerText === 'Milk'")
    await page.press(" ")
    for _ in range(2):
        await page.send(
            "Input.dispatchKeyEvent",
            type="keyDown", key="ArrowRight", code="ArrowRight",
            windowsVirtualKeyCode=39, modifiers=8,
        )  # fmt: skip
    await page.press(" ")
    await until_value(person, database_id, "Milk", "end", "2026-11-20")


async def test_a_moment_keeps_the_time_on_the_clock(page: Page, person: Person) -> None:
    """The clocks in Berlin go back on 25 October 2026."""
    database_id = await calendar(page, person)
    row = {"data": {"title": "Call", "meeting": "2026-10-22T07:30:00.000Z"}}
    await person.call("POST", f"/v1/databases/{database_id}/records", row)
    content = {"dateFieldKey": "meeting"}
    view_id = await view(person, database_id, kind="calendar", label="Calls", manifest=content)
    await page.send("Emulation.setTimezoneOverride", timezoneId="Europe/Berlin")
    await opened(page, person, database_id, f"{view_id}#day=2026-10-20")
    call = await event(page, "Call")
    assert await page.text(f"{call} time") == "09:30"
    await drag(page, call, day("2026-10-29"))
    await until_value(person, database_id, "Call", "meeting", "2026-10-29T08:30:00.000Z")
    await page.until(f"{one(day('2026-10-29'))} !== null")
    assert await page.text(f"{await event(page, 'Call')} time") == "09:30"


async def test_a_full_month_fits_the_window_and_lists_the_events_of_a_day(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await calendar(page, person)
    rows = [{"op": "create", "data": {"title": f"Box {n}", "due": "2026-11-12"}} for n in range(9)]
    path = f"/v1/databases/{database_id}/records/batch"
    await person.call("POST", path, {"operations": rows})
    await page.show(width=1280, height=860)
    await page.until("document.querySelector('.cal-more') !== null")
    weeks = "document.querySelectorAll('.cal-week').length"
    # November begins on a Sunday: no month has more weeks.
    assert await page.evaluate(weeks) == 6
    below = "document.documentElement.scrollHeight - window.innerHeight"
    await page.until(f"{below} === 0")
    # A high window has room for more of them, a month of fewer weeks too.
    lanes = "new Set([...document.querySelectorAll('[data-event]')].map(one => one.offsetTop)).size"
    few = await page.evaluate(lanes)
    await page.show(width=1280, height=1400)
    await page.until(f"{lanes} > {few}")
    assert await page.evaluate(below) == 0
    await page.show(width=1280, height=860)
    await page.until(f"{lanes} === {few}")
    more = int((await page.text(".cal-more")).split()[0][1:])
    shown = f"{names('[data-event] a')}.filter(one => one.startsWith('Box')).length"
    assert more + await page.evaluate(shown) == 9
    await page.evaluate("document.querySelector('.cal-more').focus()")
    await page.press("Enter")
    await page.until("document.querySelector('#day-events[open]') !== null")
    listed = f"{names('#day-events li')}.toSorted()"
    assert await page.evaluate(listed) == [f"Box {n}" for n in range(9)]
    await page.screenshot(screens / "calendar-day.png")
    assert await violations(page) == []
    await page.press("Escape")
    await page.until("document.querySelector('#day-events') === null")
    assert await page.evaluate("document.activeElement.className") == "cal-more"
    await page.press("Enter")
    await press(page, "View week")
    await page.until("document.querySelector('.calendar-view').dataset.mode === 'week'")
    await page.until(f"{shown} === 9")


async def test_a_record_is_added_on_a_day_and_weeks_are_shown(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await calendar(page, person)
    await page.evaluate(f"{one(day('2026-11-12') + ' .cal-add')}.click()")
    await page.until("document.activeElement.classList.contains('cal-new')")
    await page.send("Input.insertText", text="Bread")
    await page.press("Enter")
    await until_value(person, database_id, "Bread", "due", "2026-11-12")
    await event(page, "Bread")
    await press(page, "Week")
    await page.until("document.querySelector('.calendar-view').dataset.mode === 'week'")
    await page.until("document.querySelectorAll('.cal-week').length === 1")
    await press(page, "\u2039")
    await page.until(f"{one(day('2026-11-03'))} !== null")
    await event(page, "Tea")
    await page.screenshot(screens / "week.png")
    await press(page, "Month")
    await page.until("document.querySelectorAll('.cal-week').length === 6")


async def test_bars_of_a_timeline_are_dragged_and_stretched(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await tasks(person, FIELDS)
    content = {"dateFieldKey": "due", "endDateFieldKey": "end"}
    view_id = await view(person, database_id, kind="timeline", label="Line", manifest=content)
    await opened(page, person, database_id, f"{view_id}#day=2026-11-15&mode=week")
    tea = await event(page, "Tea")
    assert await page.evaluate("document.querySelectorAll('.cal-day').length") == 30
    await drag(page, tea, day("2026-11-06"))
    await until_value(person, database_id, "Tea", "due", "2026-11-06")
    await drag(page, f"{await event(page, 'Tea')} .cal-edge.end", day("2026-11-11"))
    await until_value(person, database_id, "Tea", "end", "2026-11-11")
    await page.evaluate(f"{one(await event(page, 'Milk') + ' a')}.focus()")
    for key in (" ", "ArrowRight", "Enter"):
        await page.press(key)
    await until_value(person, database_id, "Milk", "due", "2026-11-11")
    await page.screenshot(screens / "timeline.png")
    assert await violations(page) == []
    await page.show(width=390, height=800, dark=True)
    assert await axis(page) == 0
    await page.screenshot(screens / "timeline-phone-dark.png")
