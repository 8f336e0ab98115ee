"""Many runs at once in a real browser: ticked in the list, and followed to the end."""

import pytest

from tests.support.browser import Page
from tests.support.endpoint import Serve, reply
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]


async def test_ticked_runs_are_retried_and_followed(
    page: Page, server: Server, space: Space, serve: Serve
) -> None:
    person = Person(server, space)
    endpoint = await serve(reply(500), reply(500), reply(500), reply())
    content = graph(node("charge", "http_request", method="POST", url=endpoint.url))
    automation_id = await person.automation(content)
    for _ in range(3):
        await person.start(automation_id)

    async def all_failed() -> bool:
        runs = await person.call("GET", f"{space.path}/automation-runs?status=failed")
        return len(runs["runs"]) == 3

    await eventually(all_failed, "three runs that failed")
    await sign_in(page, server, space)
    await page.open(f"{person.home}/runs?status=failed")
    await page.until("document.querySelectorAll('.pick').length === 3")
    await page.click("tbody tr:nth-child(1) .pick input")
    await page.click("tbody tr:nth-child(3) .pick input")
    # The box is no part of the link that the whole row is.
    assert await page.evaluate("location.pathname.endsWith('/runs')")
    assert await page.evaluate("document.querySelectorAll('.pick input:checked').length") == 2
    await page.click("#bulk button[value=retry]")
    await page.until("document.querySelector('select[name=from]') !== null")
    assert "2 of 2 selected runs" in await page.text(".form")
    for width in (1440, 360):
        await page.show(width=width)
        assert await axis(page) <= 0
    await page.show()
    await page.click(".form button.primary")
    await page.until("location.pathname.includes('/runs/operations/')")
    await page.until("document.querySelector('#live .outcome [data-status=succeeded]') !== null")
    assert "2 succeeded, 0 skipped, 0 failed" in await page.text("#live")

    async def retried() -> bool:
        runs = await person.call("GET", f"{space.path}/automation-runs?status=succeeded")
        return len(runs["runs"]) == 2

    await eventually(retried, "two retries")
