"""Acts of a person on the page of a database: controls by their labels, dragging, what is kept."""

import json
from pathlib import Path
from typing import Any

from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Json, Person, sign_in

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
    """Open a database in a session, and wait until the bar and the table are there."""
    await sign_in(page, person.server, person.space)
    tail = f"?view={view_id}" if view_id else ""
    await page.open(f"{person.home}/databases/{database_id}{tail}")
    await ready(page)


async def ready(page: Page) -> None:
    await page.until(
        "document.getElementById('view-bar').dataset.ready === 'true'"
        " && document.querySelector('#table:not([data-ready])') === null"
    )


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


async def control(page: Page, key: str) -> None:
    """A key with Control, outside of what is written."""
    await page.evaluate("document.activeElement.blur()")
    code = ord(key.upper())
    for kind in ("keyDown", "keyUp"):
        await page.send(
            "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=2
        )


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


TITLES = (
    "[...document.querySelectorAll('#table .row [role=rowheader]')]"
    ".sort((one, other) => one.dataset.row - other.dataset.row).map(one => one.innerText.trim())"
)


async def middle(page: Page, selector: str) -> list[float]:
    """The middle of an element that does not move any more, after it was brought into view."""
    await page.until(f"{one(selector)} !== null")
    await page.evaluate(f"{one(selector)}.scrollIntoView({{block: 'nearest', inline: 'nearest'}})")
    place = (
        f"(() => {{ const at = {one(selector)}.getBoundingClientRect();"
        " return [at.x + at.width / 2, at.y + at.height / 2]; })()"
    )
    places: list[Any] = []

    async def has_stopped() -> bool:
        places.append(await page.evaluate(place))
        return places[-1:] == places[-2:-1]

    await eventually(has_stopped, what=f"{selector} that does not move")
    found: list[float] = places[-1]
    return found


async def drag(page: Page, start: str, end: str, *, picture: Path | None = None) -> None:
    """Press in the middle of an element, move, and let go in the middle of another."""
    await middle(page, end)
    # The end stays in view, unless both are too far apart; its place may have changed.
    at, to = await middle(page, start), await middle(page, end)
    await pull(page, at, to, picture=picture)


async def pull(
    page: Page, at: list[float], to: list[float], *, picture: Path | None = None
) -> None:
    """Press at one point, move, and let go at another."""

    async def mouse(kind: str, place: list[float], buttons: int) -> None:
        x, y = place
        await page.send(
            "Input.dispatchMouseEvent",
            type=kind, x=x, y=y, button="left" if buttons or kind != "mouseMoved" else "none",
            buttons=buttons, clickCount=0 if kind == "mouseMoved" else 1,
        )  # fmt: skip

    await mouse("mouseMoved", at, 0)
    await mouse("mousePressed", at, 1)
    for step in range(1, 9):
        await mouse("mouseMoved", [at[n] + (to[n] - at[n]) * step / 8 for n in (0, 1)], 1)
    if picture is not None:
        await page.screenshot(picture)
    await mouse("mouseReleased", to, 0)


async def records(person: Person, database_id: str) -> dict[str, Json]:
    """The values of the records by their titles."""
    found = await person.call("GET", f"/v1/databases/{database_id}/records")
    return {row["title"]: row["data"] for row in found["records"]}


async def until_value(
    person: Person, database_id: str, title: str, key: str, value: object
) -> None:
    async def holds() -> bool:
        return (await records(person, database_id)).get(title, {}).get(key) == value

    await eventually(holds, what=f"{key} of {title} is {value}")
