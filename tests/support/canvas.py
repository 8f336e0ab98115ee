"""The editor of an automation before a person: acts by selectors, and a hand at their speed."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.support.browser import Page
from tests.support.engine import Json
from tests.support.patience import eventually
from tests.support.person import Person, sign_in


async def opened(
    page: Page, person: Person, automation_id: str, tail: str = "", user_id: UUID | None = None
) -> None:
    """Open the editor of an automation in a session, and wait until it is there."""
    await sign_in(page, person.server, person.space, user_id)
    await page.open(f"{person.home}/automations/{automation_id}/edit{tail}")
    await page.until("document.getElementById('editor').dataset.ready === 'true'")
    await page.until("document.querySelector('.vue-flow__node') !== null")


async def draft(person: Person, automation_id: str) -> Json:
    path = f"{person.space.path}/automations/{automation_id}"
    found: Json = await person.call("GET", path)
    return found


def face(node_id: str) -> str:
    return f'[data-face="{node_id}"]'


def one(selector: str) -> str:
    """The first element of a selector, as an expression."""
    return f"document.querySelector({json.dumps(selector)})"


async def saved(page: Page) -> None:
    """Until everything is saved that was changed so far."""
    await page.until("document.querySelector('.save-state').innerText === 'Draft saved'")


async def drag(page: Page, start: list[float], end: list[float]) -> None:
    """Press at one point, move, and let go at another."""
    steps = [
        [start[0] + (end[0] - start[0]) * n / 8, start[1] + (end[1] - start[1]) * n / 8]
        for n in range(9)
    ]
    await page.send("Input.dispatchMouseEvent", type="mouseMoved", x=start[0], y=start[1])
    await page.send(
        "Input.dispatchMouseEvent",
        type="mousePressed",
        x=start[0],
        y=start[1],
        button="left",
        clickCount=1,
        buttons=1,
    )
    for x, y in steps:
        await page.send(
            "Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1
        )
    await page.send(
        "Input.dispatchMouseEvent",
        type="mouseReleased",
        x=end[0],
        y=end[1],
        button="left",
        clickCount=1,
    )


async def middle(page: Page, selector: str) -> list[float]:
    """The middle of an element that does not move any more."""
    place = (
        f"(() => {{ const at = {one(selector)}.getBoundingClientRect();"
        " return [at.x + at.width / 2, at.y + at.height / 2]; })()"
    )
    places: list[Any] = []

    async def has_stopped() -> bool:
        places.append(await page.evaluate(place))
        return places[-1:] == places[-2:-1]

    await page.until(f"{one(selector)} !== null")
    await eventually(has_stopped, what=f"{selector} that does not move")
    found: list[float] = places[-1]
    return found


async def fill(page: Page, path: str, text: str) -> None:
    """Type into a field of the panel, by its path."""
    field = f'[data-path="{path}"] :is(.ace_text-input, textarea, input:not([type=checkbox]))'
    await page.until(f"{one(field)} !== null")
    await page.evaluate(f"{one(field)}.focus()")
    await page.evaluate("document.activeElement.select?.()")
    await page.send("Input.insertText", text=text)


async def choose(page: Page, selector: str, value: str) -> None:
    """Choose an option of a select by its value."""
    await page.until(f"[...{one(selector)}.options].some(one => one.value === {json.dumps(value)})")
    await page.evaluate(
        f"(() => {{ const one = {one(selector)}; one.value = {json.dumps(value)};"
        " one.dispatchEvent(new Event('input', { bubbles: true }));"
        " one.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


async def press(page: Page, label: str) -> None:
    """Click the button, or the summary, of these words."""
    inside = "document.querySelectorAll('main button, main summary, main a.button')"
    found = f"[...{inside}].find(one => one.innerText.trim() === "
    await page.until(f"{found}{json.dumps(label)}) !== undefined")
    await page.evaluate(f"{found}{json.dumps(label)}).setAttribute('data-pressed', '')")
    await page.click("[data-pressed]")
    await page.evaluate("document.querySelector('[data-pressed]')?.removeAttribute('data-pressed')")


async def tick(page: Page, path: str) -> None:
    await page.until(
        f"document.querySelector('[data-path=\"{path}\"] input[type=checkbox]') !== null"
    )
    await page.click(f'[data-path="{path}"] input[type=checkbox]')


async def add_after(page: Page, node_id: str, kind: str, way: str = "") -> None:
    """Add a node by the `+` after another, and a click in the palette."""
    label = f", {way}" if way else ""
    more = (
        f'.step[data-node="{node_id}"] .more[aria-label$="{label}"]'
        if way
        else f'.step[data-node="{node_id}"] .more'
    )
    if await page.evaluate("document.querySelector('.panel-of') !== null"):
        await page.press("Escape")
        await page.until("document.querySelector('.panel-of') === null")
    await page.click(more)
    await page.until("document.activeElement.classList.contains('find-node')")
    await page.click(f"[data-kind={kind}]")
    await page.until("document.querySelector('.panel-of') !== null")


async def keys(page: Page, *names: str) -> None:
    for name in names:
        await page.press(name)


async def with_control(page: Page, key: str, *, shift: bool = False) -> None:
    """A key with Control held."""
    for kind in ("rawKeyDown", "keyUp"):
        await page.send(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=f"Key{key.upper()}",
            windowsVirtualKeyCode=ord(key.upper()),
            modifiers=2 + 8 * shift,
        )


def is_there(node_id: str) -> str:
    return f"{one(face(node_id))} !== null"


async def edges(person: Person, automation_id: str) -> list[tuple[str, str, str]]:
    content = (await draft(person, automation_id))["graph"]
    return sorted((edge["from"], edge["to"], edge["outcome"]) for edge in content["edges"])


CLIPBOARD = """((kind, text) => {
  const clipboardData = new DataTransfer();
  if (text) clipboardData.setData('text/plain', text);
  const how = { clipboardData, bubbles: true, cancelable: true };
  document.dispatchEvent(new ClipboardEvent(kind, how));
  return clipboardData.getData('text/plain');
})"""


CLICK = 0.3
KEY = 0.06
"""Seconds that a practised person takes for a click, with the way to it, and for a key."""
LOOK = 1.35
"""Seconds to read and decide (the operator M of Card, Moran and Newell's keystroke-level model)."""


_IS_IN_SIGHT = """(selector) => {
  const one = document.querySelector(selector);
  one.scrollIntoView({ block: "nearest", inline: "nearest" });
  const { x, y, width, height } = one.getBoundingClientRect();
  const top = document.elementFromPoint(x + width / 2, y + height / 2);
  return one.contains(top) || top?.contains(one) === true && top.closest("label, button") !== null;
}"""
"""An element that a person can click: nothing is before it, and it is within the window."""


@dataclass
class Hand:
    """A hand that clicks and types no faster than a person, and counts what it does."""

    page: Page
    clicks: int = 0
    strokes: int = 0
    looks: int = 0
    texts: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The time of the person alone: what the machine takes is not in it."""
        return self.clicks * CLICK + self.strokes * KEY + self.looks * LOOK

    def __str__(self) -> str:
        wall = time.monotonic() - self.started
        return (
            f"{self.clicks} clicks, {self.strokes} keys, {self.looks} looks: "
            f"{self.seconds:.1f} s of a person, {wall:.1f} s in all"
        )

    async def look(self) -> None:
        """Read, and decide what comes next."""
        self.looks += 1
        await asyncio.sleep(LOOK)

    async def click(self, selector: str) -> None:
        await self.page.until(f"{one(selector)} !== null")
        await asyncio.sleep(CLICK)
        self.clicks += 1
        await middle(self.page, selector)
        assert await self.page.evaluate(f"({_IS_IN_SIGHT})({json.dumps(selector)})"), selector
        await self.page.click(selector)

    async def press(self, words: str, inside: str = "main") -> None:
        """Click the button, link or summary of these words."""
        tags = ", ".join(f"{inside} {tag}" for tag in ("button", "summary", "a", "[role=option]"))
        all_of = f"[...document.querySelectorAll({json.dumps(tags)})]"
        shown = "one.innerText.trim() === WORDS && one.checkVisibility() && !one.disabled"
        element = f"{all_of}.find(one => {shown.replace('WORDS', json.dumps(words))})"
        await self.page.until(f"{element} !== undefined")
        await self.page.evaluate(f"{element}.setAttribute('data-pressed', '')")
        await self.click("[data-pressed]")
        await self.page.evaluate(
            "document.querySelector('[data-pressed]')?.removeAttribute('data-pressed')"
        )

    async def key(self, key: str, modifiers: int = 0) -> None:
        """A key with the modifiers that are held: 2 is Control, 8 is Shift."""
        await asyncio.sleep(KEY)
        self.strokes += 1
        text = "\r" if key == "Enter" else key if len(key) == 1 and not modifiers & 2 else ""
        code = CODES.get(key, ord(key.upper()) if len(key) == 1 else 0)
        for kind in ("keyDown", "keyUp"):
            await self.page.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=f"Key{key.upper()}" if len(key) == 1 and key.isalpha() else key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    async def keys(self, *names: str) -> None:
        for name in names:
            await self.key(name)

    async def type(self, text: str) -> None:
        """Type a text, key by key, into what has the focus."""
        self.texts.append(text)
        for character in text:
            await asyncio.sleep(KEY)
            self.strokes += 1
            await self.page.send("Input.insertText", text=character)

    async def into(self, path: str, text: str) -> None:
        """Click into a field of the panel, by its path, and type; nothing is clicked that has the
        focus already.
        """
        place = f'[data-path="{path}"] :is(.code-field, textarea, input:not([type=checkbox]))'
        await self.page.until(f"{one(place)} !== null")
        if not await self.page.evaluate(f"{one(place)}.contains(document.activeElement)"):
            await self.click(place)
        await self.type(text)

    async def choose(self, path: str, label: str) -> None:
        """Choose in a list by name: a click opens it, and a click is on the option."""
        place = path if path.startswith(("#", "select")) else f"[data-path={json.dumps(path)}]"
        select = f"{place}:is(select), {place} select"
        options = f"[...{one(select)}.options]"
        option = f"{options}.find(one => one.text === {json.dumps(label)})"
        await self.page.until(f"{option} !== undefined")
        # The list is drawn by the system, where no script clicks.
        await asyncio.sleep(2 * CLICK)
        self.clicks += 2
        await self.page.evaluate(
            f"(() => {{ const one = {one(select)}; one.value = {option}.value;"
            " one.dispatchEvent(new Event('input', { bubbles: true }));"
            " one.dispatchEvent(new Event('change', { bubbles: true })); })()"
        )


CODES = {
    "Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37,
    "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46, "/": 191, "?": 191,
}  # fmt: skip
