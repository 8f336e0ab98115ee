"""Weeks and days with hours in a real browser: events are dragged and stretched over hours."""

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
    {"label": "State", "kind": "text"},
    {"label": "Due", "kind": "date"},
    {"label": "Start", "kind": "datetime"},
    {"label": "End", "kind": "datetime"},
]
# Berlin is one hour before UTC in November.
CALL = {"title": "Call", "start": "2026-11-03T08:30:00.000Z", "end": "2026-11-03T09:30:00.000Z"}
TALK = {"title": "Talk", "start": "2026-11-03T09:00:00.000Z", "end": "2026-11-03T11:00:00.000Z"}
FAIR = {"title": "Fair", "start": "2026-11-03T23:00:00.000Z", "end": "2026-11-05T23:00:00.000Z"}
TUESDAY, WEDNESDAY, THURSDAY = "2026-11-03", "2026-11-04", "2026-11-05"


async def hours(page: Page, person: Person, *, mode: str = "week", **manifest: str) -> str:
    """A database whose calendar is open at a week with hours."""
    database_id = await tasks(person, FIELDS)
    for row in (CALL, TALK, FAIR):
        await person.call("POST", f"/v1/databases/{database_id}/records", {"data": row})
    content = {"dateFieldKey": "start", **(manifest or {"endDateFieldKey": "end"})}
    view_id = await view(person, database_id, kind="calendar", label="Plan", manifest=content)
    await page.send("Emulation.setTimezoneOverride", timezoneId="Europe/Berlin")
    await opened(page, person, database_id, f"{view_id}#day={TUESDAY}&mode={mode}")
    await page.until("document.querySelectorAll('[data-event]').length >= 3")
    return database_id


async def event(page: Page, title: str) -> str:
    """A selector of the first box of an event."""
    await page.until(
        "(() => { document.querySelectorAll('[data-event]').forEach(one =>"
        " one.dataset.title = one.querySelector('a').innerText);"
        f" return {one(f'[data-title={title}]')} !== null; }})()"
    )
    return f"[data-title={title}]"


async def at_hour(page: Page, day: str, hour: float) -> list[float]:
    """The point of a time in the column of a day."""
    column = one(f'.hours-day[data-day="{day}"]')
    found: list[float] = await page.evaluate(
        f"(() => {{ const at = {column}.getBoundingClientRect();"
        f" return [at.x + at.width / 2, at.y + at.height * {hour} / 24]; }})()"
    )
    return found


async def shift_arrow(page: Page, key: str, code: int) -> None:
    await page.send(
        "Input.dispatchKeyEvent",
        type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, modifiers=8,
    )  # fmt: skip


async def test_an_event_is_dragged_to_another_hour_and_day(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await hours(page, person)
    call = await event(page, "Call")
    assert await page.text(f"{call} time") == "09:30 \u2013 10:30"
    boxes = "[...document.querySelectorAll('.cal-event.timed')].map(one => one.style.left)"
    assert await page.evaluate(boxes) == ["0%", "50%"]
    assert await violations(page) == []
    await page.screenshot(screens / "hours.png")
    start = await middle(page, call)
    # Five quarters of an hour later, on the next day.
    shift = (await at_hour(page, WEDNESDAY, 1.25))[1] - (await at_hour(page, WEDNESDAY, 0))[1]
    target = [(await at_hour(page, WEDNESDAY, 0))[0], start[1] + shift]
    await pull(page, start, target, picture=screens / "hours-held.png")
    await until_value(person, database_id, "Call", "start", "2026-11-04T09:45:00.000Z")
    await until_value(person, database_id, "Call", "end", "2026-11-04T10:45:00.000Z")
    assert await page.text(f"{await event(page, 'Call')} time") == "10:45 \u2013 11:45"
    await page.show(dark=True)
    await page.screenshot(screens / "hours-dark.png")
    assert await violations(page) == []


async def test_both_ends_of_an_event_are_stretched(page: Page, person: Person) -> None:
    database_id = await hours(page, person)
    talk = await event(page, "Talk")
    await pull(
        page, await middle(page, f"{talk} .cal-edge.end"), await at_hour(page, TUESDAY, 13.5)
    )
    await until_value(person, database_id, "Talk", "end", "2026-11-03T12:30:00.000Z")
    await until_value(person, database_id, "Talk", "start", TALK["start"])
    edge = f"{await event(page, 'Talk')} .cal-edge.start"
    await pull(page, await middle(page, edge), await at_hour(page, TUESDAY, 9.5))
    await until_value(person, database_id, "Talk", "start", "2026-11-03T08:30:00.000Z")
    # It does not become shorter than a quarter of an hour.
    edge = f"{await event(page, 'Talk')} .cal-edge.end"
    await pull(page, await middle(page, edge), await at_hour(page, TUESDAY, 8))
    await until_value(person, database_id, "Talk", "end", "2026-11-03T08:45:00.000Z")


async def test_an_event_goes_to_the_row_of_whole_days_and_back(page: Page, person: Person) -> None:
    database_id = await hours(page, person)
    rows = "[...document.querySelectorAll('.cal-allday [data-event] a')].map(one => one.innerText)"
    assert await page.evaluate(rows) == ["Fair"]
    await drag(page, await event(page, "Call"), f'.cal-allday [data-day="{THURSDAY}"]')
    await until_value(person, database_id, "Call", "start", "2026-11-04T23:00:00.000Z")
    await until_value(person, database_id, "Call", "end", "2026-11-05T23:00:00.000Z")
    await page.until(f"{rows}.length === 2")
    # The hours scroll while the pointer is near their edge, unless they are at their beginning.
    await page.evaluate("document.querySelector('.hours-scroll').scrollTop = 0")
    await pull(
        page, await middle(page, await event(page, "Call")), await at_hour(page, WEDNESDAY, 7.1)
    )
    await until_value(person, database_id, "Call", "start", "2026-11-04T06:00:00.000Z")
    await until_value(person, database_id, "Call", "end", "2026-11-04T07:00:00.000Z")
    # Whole days are dragged and stretched by days.
    edge = f"{await event(page, 'Fair')} .cal-edge.end"
    await drag(page, edge, '.cal-allday [data-day="2026-11-07"]')
    await until_value(person, database_id, "Fair", "end", "2026-11-07T23:00:00.000Z")


async def test_hours_are_changed_by_keys_alone(page: Page, person: Person) -> None:
    database_id = await hours(page, person)
    await page.evaluate(f"{one(await event(page, 'Call') + ' a')}.focus()")
    for key in (" ", "ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        await page.press(key)
    await until_value(person, database_id, "Call", "start", "2026-11-04T09:00:00.000Z")
    await page.until("document.activeElement.innerText === 'Call'")
    said = "document.querySelector('.calendar-view [role=status]').innerText"
    await page.until(f"{said}.includes('10:00 to 11:00')")
    await page.press(" ")
    await shift_arrow(page, "ArrowDown", 40)
    await shift_arrow(page, "ArrowDown", 40)
    await page.press(" ")
    await until_value(person, database_id, "Call", "end", "2026-11-04T10:30:00.000Z")
    await page.until("document.activeElement.innerText === 'Call'")
    # A whole day becomes hours below it.
    await page.evaluate(f"{one(await event(page, 'Fair') + ' a')}.focus()")
    for key in (" ", "ArrowDown", "ArrowUp", "Enter"):
        await page.press(key)
    await until_value(person, database_id, "Fair", "start", "2026-11-04T07:45:00.000Z")
    await until_value(person, database_id, "Fair", "end", "2026-11-04T08:45:00.000Z")
    await page.until("document.activeElement.innerText === 'Fair'")
    for key in (" ", "ArrowDown", "Escape"):
        await page.press(key)
    await page.until("document.querySelector('.cal-event.held') === null")
    await until_value(person, database_id, "Fair", "start", "2026-11-04T07:45:00.000Z")


async def test_a_day_has_hours_and_takes_new_records(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await hours(page, person, dateFieldKey="start")
    await press(page, "Day")
    await page.until("document.querySelectorAll('.hours-day').length === 1")
    at = await at_hour(page, TUESDAY, 13.1)
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            await page.send(
                "Input.dispatchMouseEvent",
                type=kind, x=at[0], y=at[1], button="left", clickCount=count,
            )  # fmt: skip
    await page.until("document.activeElement.classList.contains('cal-new')")
    await page.send("Input.insertText", text="Lunch")
    await page.press("Enter")
    await until_value(person, database_id, "Lunch", "start", "2026-11-03T12:00:00.000Z")
    assert await page.text(f"{await event(page, 'Lunch')} time") == "13:00 \u2013 14:00"
    await page.show(width=390, height=800)
    await page.screenshot(screens / "hours-phone.png")
    assert await axis(page) == 0
    assert await violations(page) == []
    await press(page, "\u203a")
    await page.until(f"document.querySelector('.hours-day').dataset.day === '{WEDNESDAY}'")
    assert "mode=day" in await page.evaluate("location.hash")


async def test_the_night_on_which_clocks_change(page: Page, person: Person) -> None:
    """In Berlin it is 02:30 twice on 25 October 2026; an event at 23:30 the day before is moved."""
    database_id = await hours(page, person)
    row = {"start": "2026-10-24T21:30:00.000Z", "end": "2026-10-24T22:00:00.000Z"}
    path = f"/v1/databases/{database_id}/records"
    await person.call("POST", path, {"data": {"title": "Late", **row}})
    await page.evaluate("location.hash = '#day=2026-10-24&mode=week'; location.reload()")
    await page.until("document.querySelector('.hours-day[data-day=\"2026-10-24\"]') !== null")
    await page.evaluate(f"{one(await event(page, 'Late') + ' a')}.focus()")
    for key in (" ", "ArrowRight", "Enter"):
        await page.press(key)
    await until_value(person, database_id, "Late", "start", "2026-10-25T22:30:00.000Z")
    await until_value(person, database_id, "Late", "end", "2026-10-25T23:00:00.000Z")
