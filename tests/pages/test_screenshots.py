"""The pictures of the README: made of the shop that the demo opens, so that they stay true.

`make screenshots` makes them anew.
"""

import os
from datetime import date
from pathlib import Path

import pytest

from cli.demo_shop import RUNS, WorkspaceClient, open_shop
from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Person, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=15)

IMAGES = Path(__file__).parents[2] / "docs" / "images"
RECORDED = os.environ.get("RECORD_SCREENSHOTS") == "1"
TODAY = date(2026, 11, 27)


async def take(page: Page, name: str, screens: Path) -> None:
    """Keep a picture beside the README, or with the others of the tests."""
    directory = IMAGES if RECORDED else screens
    await page.screenshot(directory / f"{name}.png")


@pytest.mark.long
async def test_the_shop_looks_as_the_readme_shows_it(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    client = WorkspaceClient(server.url, space.token, str(space.id))
    await open_shop(client, TODAY)
    await client.close()
    person = Person(server, space)

    async def all_ran() -> bool:
        runs = await person.call("GET", f"{space.path}/automation-runs?limit=50")
        states = [run["status"] for run in runs["runs"]]
        has_ended = not {"queued", "running"} & set(states) and states.count("waiting") == 1
        return len(states) == RUNS + 1 and has_ended

    await eventually(all_ran, "the runs of the shop")
    await sign_in(page, server, space)
    await page.show(width=1360, height=780)
    await page.open(person.home)
    await page.until("document.body.innerText.includes('Refund the order?')")
    await page.until("document.body.innerText.includes('Out of stock')")
    await take(page, "home", screens)
    databases = await person.call("GET", f"{space.path}/databases")
    (orders,) = databases["databases"]
    await page.open(f"{person.home}/databases/{orders['id']}")
    await page.until("document.querySelectorAll('.sheet .row').length > 20")
    await take(page, "grid", screens)
    automations = await person.call("GET", f"{space.path}/automations")
    refund = next(one for one in automations["automations"] if "efund" in one["label"])
    await page.open(f"{person.home}/automations/{refund['id']}/edit")
    await page.until("document.querySelectorAll('.vue-flow__node').length > 2")
    await page.until("document.querySelectorAll('.vue-flow__edge').length > 1")
    await take(page, "canvas", screens)


def test_the_readme_shows_them() -> None:
    text = (IMAGES.parents[1] / "README.md").read_text(encoding="utf-8")
    for name in ("home", "canvas", "grid"):
        assert f"docs/images/{name}.png" in text
        assert (IMAGES / f"{name}.png").stat().st_size < 300_000
