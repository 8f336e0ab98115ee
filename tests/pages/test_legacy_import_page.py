"""The page of a legacy import run in a browser: it follows the run, and leaves who types alone."""

from pathlib import Path

import httpx2
import pytest

from models.people.users import make_platform_admin
from tests.support.browser import Page
from tests.support.legacy_imports import folders, whole
from tests.support.patience import ENOUGH
from tests.support.person import sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]

STATUS = "document.querySelector('#status .badge')?.innerText.trim()"


async def test_an_administrator_follows_approves_and_starts_a_run(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    async with space.database.transaction() as work:
        await make_platform_admin(work, space.user_id)
    headers = {"Authorization": f"Bearer {space.token}", "Content-Type": "application/zip"}
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, trust_env=False, timeout=ENOUGH
    ) as http:
        content = whole({"Good": folders(3)})
        run = (await http.post("/v1/admin/legacy-imports", content=content)).json()["data"]
    await sign_in(page, server, space)
    await page.open(f"{server.url}{run['pageUrl']}")
    await page.until(f"{STATUS} === 'awaiting review'")
    await page.write("#decisions input[name=note]", "Counts compared.")
    await page.screenshot(screens / "legacy-import-review.png")
    await page.click("form[action$='/approve'] button")
    await page.until(f"{STATUS} === 'approved'")
    assert "Counts compared." in await page.text("#live")
    await page.click("form[action$='/start'] button")
    await page.until(f"{STATUS} === 'completed'")
    assert "item: 3" in await page.text("section[aria-label=Good]")
    await page.screenshot(screens / "legacy-import-completed.png")
