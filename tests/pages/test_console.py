"""The console in a real browser: what a person sees and does there."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.engine import Json, graph, node
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=40)

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def person(server: Server, space: Space) -> Person:
    return Person(server, space)


def approval(role: str = "owner", **config: object) -> Json:
    config = {"role": role, "allowSelf": True, "title": "Refund 1042?", **config}
    return graph(
        node("read", "transform", label="Read the order", output={"total": 42}),
        node("ask", "approval", label="Ask somebody", **config),
        node("pay", "transform", label="Pay it back", output={"paid": True}),
        edges=[("read", "ask"), ("ask", "pay", "approved")],
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_pictures_of_every_page(
    page: Page, server: Server, person: Person, screens: Path, dark: bool
) -> None:
    theme = "dark" if dark else "light"
    await page.show(dark=dark)
    await page.open(f"{server.url}/sign-in")
    await page.screenshot(screens / f"console-sign-in-{theme}.png")
    await sign_in(page, server, person.space)
    await page.open(f"{server.url}/")
    await page.screenshot(screens / f"console-empty-home-{theme}.png")
    await page.open(f"{person.home}/runs")
    await page.screenshot(screens / f"console-empty-runs-{theme}.png")
    await furnish(person)
    await page.open(person.home)
    await page.until("document.querySelectorAll('.approval').length === 2")
    for name, path in {
        "home": "", "runs": "/runs", "failed": "/runs?status=failed", "automations": "/automations",
    }.items():  # fmt: skip
        await page.open(person.home + path)
        await page.screenshot(screens / f"console-{name}-{theme}.png")
        await page.show(dark=dark, width=360, height=780)
        await page.screenshot(screens / f"console-{name}-{theme}-360.png")
        assert await axis(page) <= 0, name
        await page.show(dark=dark)
    await page.open(f"{person.home}/automations")
    await page.click("tbody tr:nth-child(2) .main a")
    await page.until("document.querySelector('#graph .node') !== null")
    await page.screenshot(screens / f"console-automation-{theme}.png")
    await page.click("[commandfor=run]")
    await page.screenshot(screens / f"console-run-now-{theme}.png")
    await page.press("Escape")
    await page.click("#runs ~ * a, .columns tbody tr:first-child .main a")
    await page.until("document.querySelector('#graph .node') !== null")
    await page.until("document.getElementById('live').innerText === 'live'")
    await page.screenshot(screens / f"console-run-{theme}.png")
    await page.show(dark=dark, width=360, height=780)
    await page.screenshot(screens / f"console-run-{theme}-360.png")
    assert await axis(page) <= 0


async def furnish(person: Person) -> None:
    """A workspace in which something happens."""
    fails = graph(
        node("read", "transform", label="Read the ledger", output={}),
        node("stop", "stop", label="Close", result="failed", message="The ledger is not balanced."),
        edges=[("read", "stop")],
    )
    schedule = {"kind": "schedule", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    simple = graph(node("only", "transform", label="Sum up", output={"sum": 1}))
    for label, content, fields in (
        ("Nightly ledger", fails, {}),
        ("Morning report", simple, {"triggerConfig": schedule}),
        ("Refund of an order", approval(), {}),
    ):
        automation_id = await person.automation(content, label=label, **fields)
        for number in range(2):
            await person.start(automation_id, {"order": number})
    await person.automation(simple, label="Invoice reminder", publish=False, enabled=False)
