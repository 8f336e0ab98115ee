"""A person before a real browser: signed in to the console of a real API, with automations."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2

from models.people.credentials import begin_session
from tests.support.browser import Page
from tests.support.patience import ENOUGH
from tests.support.server import Server
from tests.support.spaces import Space

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Person:
    """The owner of a workspace, and what they did by the API before they opened a page."""

    server: Server
    space: Space

    @property
    def home(self) -> str:
        return f"{self.server.url}/workspaces/{self.space.id}"

    async def call(self, method: str, path: str, body: Json | None = None) -> Any:
        """The data that a call of the API answers."""
        headers = {"Authorization": f"Bearer {self.space.token}"}
        async with httpx2.AsyncClient(
            base_url=self.server.url, headers=headers, trust_env=False, timeout=ENOUGH
        ) as http:
            answer = await http.request(method, path, json=body)
            return answer.raise_for_status().json()["data"]

    async def automation(self, content: Json, *, publish: bool = True, **fields: Any) -> str:
        """The id of an automation that was just made."""
        body = {"label": "Orders", "enabled": True, "graph": content, **fields}
        path = f"{self.space.path}/automations"
        made = await self.call("POST", path, body)
        if publish:
            await self.call("POST", f"{path}/{made['id']}/publish", {})
        return str(made["id"])

    async def start(self, automation_id: str, payload: Json | None = None) -> str:
        """The id of a run that was just asked for."""
        path = f"{self.space.path}/automations/{automation_id}/run"
        run = await self.call("POST", path, {"triggerPayload": payload or {}})
        return str(run["id"])

    async def run(self, content: Json, payload: Json | None = None, **fields: Any) -> str:
        """The id of a run of an automation that was just made."""
        return await self.start(await self.automation(content, **fields), payload)


async def sign_in(page: Page, server: Server, space: Space, user_id: UUID | None = None) -> None:
    """Give a tab the session of a member, by default of the owner.

    A page of the session before it would ask in this one, and be refused.
    """
    if await page.evaluate("location.protocol") != "about:":
        await page.open("about:blank")
    async with space.database.transaction() as work:
        session = await begin_session(work, user_id or space.user_id)
    await page.send(
        "Network.setCookie",
        name=f"session-{server.port}",
        value=session.token,
        url=server.url,
        httpOnly=True,
        sameSite="Lax",
    )


async def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus."""
    has_focus = f"document.activeElement.matches({json.dumps(selector)})"
    for _ in range(_MOST_TABS):
        if await page.evaluate(has_focus):
            return
        await page.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


_MOST_TABS = 80


async def axis(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return int(await page.evaluate(wide))


AXE = Path(__file__).parent / "axe" / "axe.min.js"
# An experiment of theirs: it reads the two lines of a node as one word.
LEFT_OUT = {"label-content-name-mismatch": {"enabled": False}}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


async def violations(page: Page) -> list[Any]:
    """The rules that what a page shows now breaks, judged by axe-core, with some of the places."""
    await page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    options = json.dumps({"runOnly": RULES, "rules": LEFT_OUT, "resultTypes": ["violations"]})
    found: list[Any] = await page.evaluate(
        f"axe.run(document, {options}).then((all) => all.violations.map((one) =>"
        " [one.id, one.nodes.slice(0, 3).map((node) => node.target + ' ' + node.html)]))"
    )
    return found


def quoted(text: str) -> str:
    return json.dumps(text)
