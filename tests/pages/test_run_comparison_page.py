"""Two runs side by side in a real browser: from the failed run to where it parted."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]


async def ended(person: Person, run_id: str) -> None:
    async def has_ended() -> bool:
        run = (await person.call("GET", f"/v1/runs/{run_id}"))["run"]
        return run["status"] in {"succeeded", "failed"}

    await eventually(has_ended, "the end of the run")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_person_finds_where_a_run_parted_from_the_last_that_succeeded(
    page: Page, server: Server, person: Person, screens: Path, dark: bool
) -> None:
    automation = await person.automation(
        graph(
            node("read", "transform", label="Read the order", output={"text": "order"}),
            node("large", "condition", label="Is it large?", expression="trigger.total > 100.0"),
            node("ask", "stop", label="Refuse it", result="failed", message="Too large for us."),
            node("pay", "transform", label="Pay it", output={"paid": True}),
            edges=[("read", "large"), ("large", "ask", "true"), ("large", "pay", "false")],
        )
    )
    well = await person.start(automation, {"total": 40.5, "customer": "Ada"})
    await ended(person, well)
    failed = await person.start(automation, {"total": 400.5, "customer": "Ada"})
    await ended(person, failed)
    await page.show(dark=dark)
    await sign_in(page, server, person.space)
    await page.open(f"{server.url}/runs/{failed}")
    await page.until("document.querySelector('#graph .node') !== null")
    await page.click("a[href$='/comparison']")
    await page.until("document.querySelector('#parts') !== null")
    assert "Is it large?" in await page.text("#parts")
    assert "large" in await page.text(".parting")
    theme = "dark" if dark else "light"
    await page.screenshot(screens / f"comparison-{theme}.png")
    await page.show(dark=dark, width=360, height=780)
    await page.screenshot(screens / f"comparison-{theme}-360.png")
    assert await axis(page) <= 0
    await page.show(dark=dark)
    await page.click("#parts .main a")
    await page.until("document.querySelector('#details h2')?.innerText === 'Is it large?'")
