"""Continuing a run in a real browser: its timeline, an event, and a run from a node."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.engine import graph, node
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_person_sends_an_event_and_runs_from_a_node(
    page: Page, server: Server, person: Person, screens: Path, dark: bool
) -> None:
    run_id = await person.run(
        graph(
            node("read", "transform", label="Read the order", output={"total": 42}),
            node(
                "paid",
                "wait_event",
                label=HOSTILE,
                eventKey="payment",
                filter="data.paid == true",
            ),
            node("ship", "transform", label="Ship it", output={"shipped": True}),
            edges=[("read", "paid"), ("paid", "ship")],
        ),
        {"order": 7},
    )
    theme = "dark" if dark else "light"
    await page.show(dark=dark)
    await sign_in(page, server, person.space)
    await page.open(f"{server.url}/runs/{run_id}")
    await look_at_timeline(page)
    await page.screenshot(screens / f"event-{theme}.png")
    await send_event(page)
    await page.click("[data-node=ship]")
    await page.until("document.querySelector('#details a[href*=from-node]') !== null")
    await page.screenshot(screens / f"ended-{theme}.png")
    await page.click("#details a[href*=from-node]")
    await page.until("document.querySelector('[name=outputs]') !== null")
    assert await page.evaluate("document.querySelector('#f-nodeId').value") == "ship"
    await page.screenshot(screens / f"from-node-{theme}.png")
    await page.show(dark=dark, width=360, height=780)
    await page.screenshot(screens / f"from-node-{theme}-360.png")
    assert await axis(page) <= 0
    await page.show(dark=dark)
    await run_from_node(page, run_id)


async def look_at_timeline(page: Page) -> None:
    """Check that a waiting run shows where to send its event, and its times in three colours."""
    await page.until("document.querySelector('.event textarea') !== null")
    await page.until("document.querySelector('.timeline [data-part=wait]') !== null")
    assert "Queue" in await page.text(".timeline")
    colours = await page.evaluate(
        "['queue', 'wait', 'work'].map((part) => getComputedStyle("
        "document.querySelector(`.timeline [data-part=${part}] i`)).backgroundColor)"
    )
    assert len(set(colours)) == 3


async def send_event(page: Page) -> None:
    """Send an event that is refused and stays in its form, then one that the run waits for."""
    await page.evaluate("document.querySelector('.event textarea').value = ''")
    await page.write(".event textarea", '{"paid": false}')
    await page.click(".event button")
    await page.until("document.querySelector('.toast[data-kind=error]') !== null")
    assert await page.evaluate("document.querySelector('.event textarea').value.includes('false')")
    assert [one for one in page.problems if "400" not in one] == []
    page.problems.clear()
    await page.evaluate("document.querySelector('.event textarea').value = ''")
    await page.write(".event textarea", '{"paid": true}')
    await page.click(".event button")
    await page.until("document.getElementById('status').dataset.status === 'succeeded'")
    # The graph moves up when the form goes.
    await page.until("document.querySelector('.event') === null")


async def run_from_node(page: Page, run_id: str) -> None:
    """Start the run of the form, and read of which node it is."""
    await page.click(".run-by-hand .primary")
    await page.until(
        f"/^.runs.[0-9a-f-]+$/.test(location.pathname) && !location.href.includes('{run_id}')"
    )
    await page.until("document.getElementById('status')?.dataset.status === 'succeeded'")
    assert "from node" in await page.text("#facts")
