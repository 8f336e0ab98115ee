"""Imports in a real browser: how a file is read is chosen, and what did not fit is listed."""

import json
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.person import Json, Person, axis, sign_in, tab_to, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

HOSTILE = "<img src=x onerror=alert(1)>"
REPORT = "Report,2026\nname,day\nTea,03/04/2026\nMilk,05/06/2026\n"
"""The first line is a title, and each date has two readings."""
HEADER, ORDER = "select[name=headerRow]", "select[name=dateOrder]"
MAPPED: list[Json] = [
    {"sourcePath": "name", "fieldKey": "title", "label": "Name", "kind": "text"},
    {"sourcePath": "price", "fieldKey": "price", "label": "Price", "kind": "number"},
    {"sourcePath": "day", "fieldKey": "day", "label": "Day", "kind": "date", "required": True},
]


@pytest.fixture
async def person(page: Page, server: Server, space: Space) -> Person:
    await sign_in(page, server, space)
    return Person(server, space)


async def chosen_by_keys(page: Page, selector: str, keys: str, value: str) -> None:
    """Type the first letters of an option, and Enter; the preview follows, and keeps the focus."""
    await tab_to(page, selector)
    before = await page.evaluate("location.href")
    for key in [*keys, "Enter"]:
        assert await page.evaluate("location.href") == before
        await page.press(key)
    await page.until(f"location.href !== {json.dumps(before)}")
    await read(page, selector, value)
    await page.until(f"document.activeElement.matches({json.dumps(selector)})")


async def chosen_by_mouse(page: Page, selector: str, value: str) -> None:
    before = await page.evaluate("location.href")
    await page.evaluate(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
        f" one.value = {json.dumps(value)};"
        " one.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )
    await page.until(f"location.href !== {json.dumps(before)}")
    await read(page, selector, value)


async def read(page: Page, selector: str, value: str) -> None:
    """Wait until the rows were read with a choice."""
    chosen = f"document.querySelector({json.dumps(selector)}).value === {json.dumps(value)}"
    await page.until(f"document.querySelector('form[action$=\"/start\"]') !== null && {chosen}")


async def days(person: Person, page: Page) -> dict[str, str]:
    """The dates of the imported records by their titles."""
    await page.until("document.querySelector('[data-status=succeeded]') !== null")
    path = await page.evaluate("document.querySelector('#live a.primary').pathname")
    found = await person.call("GET", f"/v1/databases/{path.rpartition('/')[2]}/records")
    return {row["title"]: row["data"]["day"] for row in found["records"]}


MONTH_FIRST = {"Tea": "2026-03-04", "Milk": "2026-05-06"}


async def test_header_row_and_date_order_are_chosen(
    page: Page, person: Person, screens: Path
) -> None:
    await page.open(f"{person.home}/import")
    await page.write("#text", REPORT)
    await page.click("form:has(#text) button[type=submit]")
    await page.until(f"document.querySelector({json.dumps(HEADER)}) !== null")
    await chosen_by_mouse(page, HEADER, "1")
    assert (await page.text(".grid thead")).split() == ["Report", "2026"]
    await chosen_by_mouse(page, HEADER, "2")
    assert (await page.text(".grid thead")).split() == ["name", "day"]
    assert "The date order of day is ambiguous" in await page.text("main")
    await chosen_by_mouse(page, ORDER, "mdy")
    assert "ambiguous" not in await page.text("main")
    await page.screenshot(screens / "import-dates.png")
    assert await violations(page) == []
    await page.click("form[action$='/start'] .primary")
    assert await days(person, page) == MONTH_FIRST


async def test_header_row_and_date_order_are_chosen_by_keys_alone(
    page: Page, person: Person
) -> None:
    await page.open(f"{person.home}/import")
    await tab_to(page, "#text")
    await page.send("Input.insertText", text=REPORT)
    await tab_to(page, "form:has(#text) button[type=submit]")
    await page.press("Enter")
    await page.until(f"document.querySelector({json.dumps(HEADER)}) !== null")
    await chosen_by_keys(page, HEADER, "Row 2", "2")
    await chosen_by_keys(page, ORDER, "M", "mdy")
    await tab_to(page, "form[action$='/start'] .primary")
    await page.press("Enter")
    assert await days(person, page) == MONTH_FIRST


async def test_rejects_are_listed_by_column(page: Page, person: Person, screens: Path) -> None:
    rows = "".join(f"n{n},many {n},2026-11-{1 + n % 28:02}\n" for n in range(25))
    text = f"name,price,day\nTea,3,2026-11-01\n{rows}Milk,{HOSTILE},soon\nRice,4,\n"
    body = {"label": "Goods", "kind": "inline", "format": "csv", "text": text, "fields": MAPPED}
    path = f"{person.space.path}/data-sources/import-spreadsheet"
    made = await person.call("POST", path, body)
    await page.open(f"{person.home}/imports/{made['importId']}")
    await page.until("document.querySelector('#rejects') !== null")
    columns = "[...document.querySelectorAll('#rejects summary')].map(one => one.innerText)"
    assert await page.evaluate(columns) == ["price 26 values", "Skipped rows 2 rows", "day 1 value"]
    table = "[...document.querySelectorAll('#rejects details[open] td')].map(one => one.innerText)"
    assert (await page.evaluate(table))[:3] == ["3", "many 0", "Not a number."]
    assert "The first 10 of 26" in await page.text("#rejects")
    await page.click("#rejects details:nth-of-type(2) summary")
    await page.evaluate("scrollTo(0, 0)")
    await page.screenshot(screens / "import-misfits.png")
    assert await violations(page) == []
    await page.show(dark=True)
    await page.screenshot(screens / "import-misfits-dark.png")
    assert await violations(page) == []
    href = await page.evaluate("document.querySelector('#rejects a[download]').href")
    file = await page.evaluate(f"fetch({href!r}).then(answer => answer.text())")
    assert file.count("many") == 25
    assert HOSTILE in file
    await page.show(width=390, height=800)
    assert await axis(page) == 0
    await page.screenshot(screens / "import-misfits-phone.png")
