"""The canary of an automation in a real browser."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_person_tries_a_draft_on_some_runs_and_promotes_it(
    page: Page, server: Server, person: Person, screens: Path, dark: bool
) -> None:
    automation = await person.automation(graph(node("a", "transform", output={"n": 1})))
    path = f"{person.space.path}/automations/{automation}"
    stop = node("stop", "stop", result="failed", message="Too large.")
    await person.call("PATCH", path, {"graph": graph(stop)})
    theme = "dark" if dark else "light"
    await page.show(dark=dark)
    await sign_in(page, server, person.space)
    await page.open(f"{person.home}/automations/{automation}/canary")
    await page.until("document.querySelector('[name=percent]') !== null")
    await page.screenshot(screens / f"canary-start-{theme}.png")
    await page.evaluate("document.querySelector('[name=percent]').value = '50'")
    await page.click(".run-by-hand .primary")
    await page.until("document.querySelector('.both-versions') !== null")
    runs = [await person.start(automation) for _ in range(12)]

    async def have_ended() -> bool:
        states = {(await person.call("GET", f"/v1/runs/{run}"))["run"]["status"] for run in runs}
        return states <= {"succeeded", "failed"}

    await eventually(have_ended, "the runs")
    await page.open(f"{person.home}/automations/{automation}/canary")
    await page.until("document.querySelector('.both-versions') !== null")
    counts = await page.evaluate(
        "[...document.querySelectorAll('.version-of dd')].map((one) => Number(one.innerText))"
    )
    assert sum(counts) == 12
    await page.screenshot(screens / f"canary-{theme}.png")
    await page.show(dark=dark, width=360, height=780)
    await page.screenshot(screens / f"canary-{theme}-360.png")
    assert await axis(page) <= 0
    await page.show(dark=dark)
    await page.open(f"{person.home}/automations/{automation}")
    await page.until("document.querySelector('.notice a') !== null")
    await page.screenshot(screens / f"canary-automation-{theme}.png")
    await page.click(".notice a")
    await page.until("document.querySelector('[commandfor=promote]') !== null")
    await page.click("[commandfor=promote]")
    await page.until("document.querySelector('#promote').open")
    await page.click("#promote .primary")
    await page.until("location.pathname.endsWith('/" + automation + "')")
    await page.until("document.querySelector('#graph .node') !== null")
    assert "Canary running" not in await page.text("main")
