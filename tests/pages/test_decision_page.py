"""The page that the link of a mail opens, in a real browser."""

from pathlib import Path
from uuid import UUID

import pytest

from models.automation.waits.links import NodeAddress, decision_link_to, decision_path
from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.person import Person, axis
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]

HOSTILE = "<img src=x onerror=alert(1)>"
FORM = [
    {"key": "amount", "label": "Amount", "kind": "number", "required": True},
    {"key": "fast", "label": "At once", "kind": "checkbox"},
    {"key": "why", "label": HOSTILE, "kind": "select", "options": ["Broken", "Late"]},
]


async def asked(person: Person, user_id: UUID) -> tuple[str, str]:
    """A run that asks a person, and the path of the link they are sent."""
    config = {"assignees": [str(user_id)], "title": "Refund 1042?", "message": HOSTILE}
    content = graph(
        node("ask", "approval", **config, form=FORM),
        node("pay", "transform", output={"paid": True}),
        edges=[("ask", "pay", "approved")],
    )
    run_id = await person.run(content)

    async def waits() -> bool:
        run = await person.call("GET", f"/v1/runs/{run_id}")
        return bool(run["run"]["status"] == "waiting")

    await eventually(waits, what="the run that waits")
    address = NodeAddress(UUID(run_id), "ask")
    async with person.space.database.reading() as work:
        link = await decision_link_to(work, person.space.id, address, user_id, work.now)
    return run_id, decision_path(person.space.keys, link)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
async def test_a_person_decides_by_the_link_alone(
    page: Page, server: Server, space: Space, screens: Path, scripts: bool
) -> None:
    person = Person(server, space)
    guest, _ = await space.member(Role.GUEST)
    run_id, path = await asked(person, guest)
    await page.send("Emulation.setScriptExecutionDisabled", value=not scripts)
    await page.open(f"{server.url}{path}")
    assert await page.text("h1") == "Refund 1042?"
    assert await page.text(".message") == HOSTILE
    for dark, width in ((False, 1440), (True, 1440), (False, 360)):
        await page.show(dark=dark, width=width)
        name = f"decision-{'dark' if dark else 'light'}-{width}.png"
        await page.screenshot(screens / name)
        assert await axis(page) <= 0, name
    await page.write("[name='answer.number.amount']", "12.5")
    await page.press("Enter")
    await page.write("[name=comment]", "Go ahead.")
    await page.click(".decision [value=approved]")
    await page.until("document.querySelector('[role=status]') !== null")
    assert await page.text("h1") == "Approved"

    async def has_ended() -> bool:
        run = await person.call("GET", f"/v1/runs/{run_id}")
        return bool(run["run"]["status"] == "succeeded")

    await eventually(has_ended, what="the end of the run")
    await page.open(f"{server.url}{path}")
    await page.until("document.querySelector('.decision') === null")
    assert "no longer valid" in await page.text("[role=status]")
    # The browser notes the 409.
    assert all("409" in problem for problem in page.problems)
    page.problems.clear()
