"""The filters of the list of runs in a real browser, and a filter that is kept."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_person_finds_runs_by_a_text_and_keeps_the_filter(
    page: Page, server: Server, person: Person, screens: Path, dark: bool
) -> None:
    stop = node("refuse", "stop", label="Refuse it", result="failed", message="Too large.")
    automation = await person.automation(graph(stop))
    runs = [await person.start(automation, {"customer": name}) for name in ("Ada", "Grace")]

    async def have_failed() -> bool:
        states = [(await person.call("GET", f"/v1/runs/{run}"))["run"]["status"] for run in runs]
        return states == ["failed", "failed"]

    await eventually(have_failed, "the runs")
    await page.show(dark=dark)
    await sign_in(page, server, person.space)
    await page.open(f"{person.home}/runs")
    await page.until("document.querySelectorAll('tbody tr').length === 2")
    await page.write("[name=text]", "ada")
    await page.press("Enter")
    await page.until("document.querySelectorAll('tbody tr').length === 1")
    assert "text=ada" in await page.evaluate("location.search")
    theme = "dark" if dark else "light"
    await page.screenshot(screens / f"filters-{theme}.png")
    await page.click(".more summary")
    await page.screenshot(screens / f"more-filters-{theme}.png")
    await page.write("[name=failedNodeId]", "refuse")
    await page.press("Enter")
    await page.until("location.search.includes('failedNodeId=refuse')")
    await page.until("document.querySelector('.more')?.open")
    await page.click("[commandfor=save-filter]")
    await page.until("document.querySelector('#save-filter').open")
    await page.screenshot(screens / f"save-filter-{theme}.png")
    await page.write("#save-filter [name=label]", "Refused to Ada")
    await page.press("Enter")
    await page.until("document.querySelector('.saved a[aria-current]') !== null")
    assert await page.text(".saved a") == "Refused to Ada"
    await page.show(dark=dark, width=360, height=780)
    await page.screenshot(screens / f"filters-{theme}-360.png")
    assert await axis(page) <= 0
