"""A test says of each node whether its output is fixed, recorded, simulated, or really made."""

import json
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.canvas import draft, face, one, opened, press, saved
from tests.support.endpoint import Serve, reply
from tests.support.engine import graph, node
from tests.support.person import Person

pytestmark = [pytest.mark.takes(seconds=40)]

KINDS = "[...document.querySelectorAll('.step:not(.trigger) .kind')].map((one) => one.innerText)"


async def tries(page: Page, mode: str, *lines: str) -> None:
    """Run a test of this mode, until nodes have these lines below their labels."""
    before = await page.evaluate("document.querySelector('.canvas-bar[data-run]')?.dataset.run")
    await press(page, "Test")
    await page.until("document.querySelector('dialog#test') !== null")
    await page.click(f"dialog#test input[value={mode}]")
    await press(page, "Run test")
    bar = "document.querySelector('.canvas-bar[data-run]')"
    await page.until(
        f"{bar}.dataset.run !== {json.dumps(before)} && {bar}.dataset.status === 'succeeded'"
    )
    expected = json.dumps(lines, ensure_ascii=False, separators=(",", ":"))
    await page.until(f"JSON.stringify({KINDS}) === {json.dumps(expected)}")


@pytest.mark.long
async def test_a_test_says_where_outputs_came_from(
    page: Page, person: Person, serve: Serve, screens: Path
) -> None:
    endpoint = await serve(reply(200, {"stock": 7}))
    content = graph(
        node("pinned", "http_request", label="Ask the warehouse", url=endpoint.url),
        node("other", "http_request", label="Ask again", url=endpoint.url),
        node("tell", "notify", label="Tell", title="Stock", role="owner"),
        edges=[("pinned", "other"), ("other", "tell")],
    )
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    await tries(page, "real", "HTTP request", "HTTP request", "Notify")
    assert len(endpoint.requests) == 2
    # The output that is shown is the fixed one of later tests, by one click.
    await page.click(face("pinned"))
    await press(page, "Use as fixed output in tests")
    await page.until(f"{one('.panel-out .button')}.innerText === 'Remove fixed output'")
    await page.press("Escape")
    await saved(page)
    [pinned, *_] = (await draft(person, automation_id))["graph"]["nodes"]
    assert pinned["mock"]["enabled"]
    assert pinned["mock"]["output"]["body"] == {"stock": 7}
    await tries(
        page,
        "recorded",
        "HTTP request · fixed output",
        "HTTP request · recorded output",
        "Notify · simulated",
    )
    await tries(
        page,
        "simulate",
        "HTTP request · fixed output",
        "HTTP request · simulated",
        "Notify · simulated",
    )
    assert len(endpoint.requests) == 2
    await page.click(face("pinned"))
    await page.until(f"{one('.panel-out')}.innerText.includes('The node did not run')")
    await page.screenshot(screens / "canvas-fixed-output.png")
