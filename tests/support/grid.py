"""A table before a person in a browser: made by the API, driven by keys and mouse."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Json, Person, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

READY = "!window.isLeft && document.getElementById('table')?.dataset.ready === 'true'"
SAVED = "document.querySelector('.save-state').dataset.saving === 'false'"
STEP = "document.querySelector('.table-foot .said').innerText"
CONTROL = 2
SHIFT = 8
CODES = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "Backspace": 8,
    "Delete": 46,
    "F2": 113,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


@dataclass
class Table:
    """One database, its page, and what a person does there."""

    page: Page
    person: Person
    database: Json
    ids: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/v1/databases/{self.database['id']}"

    async def open(self, query: str = "", user_id: Any = None) -> None:
        """Open the table in a session, and wait until it is there."""
        await sign_in(self.page, self.person.server, self.person.space, user_id)
        await self.page.evaluate("window.isLeft = true")
        await self.page.open(f"{self.person.home}/databases/{self.database['id']}{query}")
        await self.page.until(READY)

    async def key(self, key: str, modifiers: int = 0) -> None:
        """A key with the modifiers that are held."""
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        code = CODES.get(key, ord(key.upper()) if len(key) == 1 else 0)
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" and not modifiers & CONTROL else {}
            await self.page.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
                **typed,
            )

    async def keys(self, *names: str) -> None:
        for name in names:
            await self.key(name)

    async def type(self, text: str) -> None:
        await self.page.send("Input.insertText", text=text)

    async def choose(self, row: int, key: str) -> None:
        """Select a cell."""
        await self.page.click(self.cell(row, key))
        await self.page.until("document.activeElement.classList.contains('sheet')")

    def cell(self, row: int, key: str) -> str:
        """The selector of a cell."""
        return f'.cell[data-row="{row}"][data-key="{key}"]'

    async def shows(self, row: int, key: str, text: str) -> None:
        """Wait until a cell shows a text."""
        cell = json.dumps(f"{self.cell(row, key)} .cell-text")
        shown = f"document.querySelector({cell}).innerText.replaceAll('\\u00a0', ' ').trim()"
        await self.page.until(f"{shown} === {json.dumps(text)}")

    async def saved(self) -> None:
        await self.page.until(SAVED)

    async def stored(self, row: int) -> Json:
        """The record of a row, as the API has it."""
        record: Json = await self.person.call("GET", f"/v1/records/{self.ids[row]}")
        return record

    async def holds(self, row: int, key: str, value: Any) -> None:
        """Wait until the API has a value."""

        async def is_there() -> bool:
            found = (await self.stored(row))["data"].get(key)
            return bool(found == value)

        await eventually(is_there, what=f"{key} of row {row} that is {value!r}")

    async def clip(self, *, text: str | None = None, html: str | None = None) -> None:
        """Paste what another program has copied."""
        parts = {"text/plain": text, "text/html": html}
        given = json.dumps({kind: one for kind, one in parts.items() if one is not None})
        await self.page.evaluate(
            "(() => { const data = new DataTransfer();"
            f" for (const [kind, text] of Object.entries({given})) data.setData(kind, text);"
            " document.activeElement.dispatchEvent(new ClipboardEvent('paste',"
            " { clipboardData: data, bubbles: true, cancelable: true })); })()"
        )

    async def copied(self) -> Json:
        """What a copy of the selection puts into the clipboard."""
        taken: Json = await self.page.evaluate(
            "(() => { const data = new DataTransfer();"
            " document.activeElement.dispatchEvent(new ClipboardEvent('copy',"
            " { clipboardData: data, bubbles: true, cancelable: true }));"
            " return { text: data.getData('text/plain'), html: data.getData('text/html') }; })()"
        )
        return taken

    async def says(self, text: str) -> None:
        await self.page.until(f"{STEP}.includes({json.dumps(text)})")


async def table_of(
    page: Page, server: Server, space: Space, fields: list[Json], rows: list[Json]
) -> Table:
    """A database with these fields and records, the first one on top."""
    person = Person(server, space)
    database = await person.call(
        "POST", f"{space.path}/databases", {"label": "Goods", "fields": fields}
    )
    table = Table(page, person, database)
    # Newest first: the last one that is made is the first row.
    for at in range(len(rows), 0, -500):
        part = rows[max(0, at - 500) : at]
        operations = [{"op": "create", "data": one} for one in reversed(part)]
        made = await person.call("POST", f"{table.path}/records/batch", {"operations": operations})
        table.ids = [*reversed([one["id"] for one in made["records"]]), *table.ids]
    return table
