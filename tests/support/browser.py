"""A real browser without a window, driven by the DevTools protocol."""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.support.patience import ENOUGH, eventually

Json = dict[str, Any]

CHROMIUM: str | None = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
"""The browser's program; None where there is none."""

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
    # A page gets nothing from other hosts.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


_ONLY_MISSING = "if (!(error instanceof TypeError)) throw error"
"""A page that is still read has not all of its elements: null has no properties."""


class ProtocolError(RuntimeError):
    """The browser refused a call, such as one to a page that is left."""


class Page:
    """One tab. `problems` collects errors, refusals of its policy and failed scripts."""

    def __init__(self, protocol: "Protocol", session: str) -> None:
        self._protocol = protocol
        self._session = session
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.questions: list[str] = []
        """The kinds of dialogs that the page opened: each is answered by `agrees`."""
        self.agrees = True

    async def send(self, method: str, **parameters: Any) -> Json:
        return await self._protocol.send(method, parameters, self._session)

    async def open(self, url: str) -> None:
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression, awaited when it is a promise."""
        answer = await self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The value of an expression once it is truthy; elements may be yet to come."""
        patient = (
            f"(() => {{ try {{ return {expression} }} catch (error) {{ {_ONLY_MISSING} }} }})()"
        )
        value: Any = None

        async def holds() -> bool:
            nonlocal value
            try:
                value = await self.evaluate(patient)
            except ProtocolError:
                # The page is left at this moment; the next one may have what is waited for.
                return False
            return bool(value)

        await eventually(holds, what=expression)
        return value

    async def text(self, selector: str) -> str:
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def click(self, selector: str) -> None:
        """A click of the mouse in the middle of an element that is enabled and does not move."""
        place = (
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            " one.scrollIntoView({block: 'nearest', inline: 'nearest'});"
            " const at = one.getBoundingClientRect();"
            " return [at.x + at.width / 2, at.y + at.height / 2, one.matches(':disabled')]; })()"
        )
        boxes: list[Any] = []

        async def has_stopped() -> bool:
            with suppress(ProtocolError):
                boxes.append(await self.evaluate(place))
            return len(boxes) > 1 and boxes[-1] == boxes[-2] and not boxes[-1][2]

        await eventually(has_stopped, what=f"{selector} that is enabled and does not move")
        box = boxes[-1]
        for kind in ("mousePressed", "mouseReleased"):
            await self.send(
                "Input.dispatchMouseEvent",
                type=kind, x=box[0], y=box[1], button="left", clickCount=1,
            )  # fmt: skip

    async def press(self, key: str) -> None:
        """A key, by its name in `KeyboardEvent.key`."""
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent",
                type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                **({"text": text} if text and kind == "keyDown" else {}),
            )  # fmt: skip

    async def write(self, selector: str, text: str) -> None:
        """Type into a field."""
        await self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        await self.send("Input.insertText", text=text)

    async def show(self, *, dark: bool = False, width: int = 1440, height: int = 860) -> None:
        """The size of the window, and the person's taste."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    async def screenshot(self, path: Path) -> None:
        answer = await self.send("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))

    def hear(self, event: Json) -> None:
        parameters = event["params"]
        if event["method"] == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        elif event["method"] == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event["method"] == "Page.javascriptDialogOpening":
            self.questions.append(parameters["type"])
            self._answering = asyncio.create_task(
                self.send("Page.handleJavaScriptDialog", accept=self.agrees)
            )


class Protocol:
    """Calls and events of one connection to a browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._pages: dict[str, Page] = {}

    async def send(self, method: str, parameters: Json, session: str | None = None) -> Json:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message: Json = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        await self._connection.send(json.dumps(message))
        return await asyncio.wait_for(answer, ENOUGH)

    @asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """A fresh tab, which shares nothing with others, until the block ends."""
        context = await self.send("Target.createBrowserContext", {})
        target = await self.send("Target.createTarget", {"url": "about:blank", **context})
        attached = await self.send(
            "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True}
        )
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.send(f"{domain}.enable")
        await page.show()
        yield page
        del self._pages[attached["sessionId"]]
        await self.send("Target.disposeBrowserContext", context)

    async def listen(self) -> None:
        async for text in self._connection:
            message = json.loads(text)
            if "id" not in message:
                page = self._pages.get(message.get("sessionId", ""))
                if page is not None:
                    page.hear(message)
            elif "error" in message:
                error = ProtocolError(message["error"]["message"])
                self._answers.pop(message["id"]).set_exception(error)
            else:
                self._answers.pop(message["id"]).set_result(message["result"])


@asynccontextmanager
async def browser(directory: Path) -> AsyncIterator[Protocol]:
    """A browser whose profile is in `directory`, until the block ends."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *_OPTIONS, f"--user-data-dir={directory}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port, path = await _endpoint(directory / "DevToolsActivePort")
        async with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as connection:
            protocol = Protocol(connection)
            listening = asyncio.create_task(protocol.listen())
            yield protocol
            listening.cancel()
    finally:
        process.kill()
        await process.wait()


async def _endpoint(file: Path) -> list[str]:
    async with asyncio.timeout(ENOUGH):
        while True:
            if await asyncio.to_thread(file.exists):
                lines = (await asyncio.to_thread(file.read_text)).split()
                if len(lines) == 2:
                    return lines
            await asyncio.sleep(0.05)
