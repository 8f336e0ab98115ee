"""The page of a run that brings rows in, in a real browser."""

import base64
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.browser import Page
from tests.support.patience import ENOUGH
from tests.support.person import sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]


async def imported(server: Server, space: Space, content: bytes, file_format: str) -> Any:
    """An import that was just asked for."""
    body = {
        "label": "<b>Goods</b>",
        "kind": "inline",
        "format": file_format,
        "content": base64.b64encode(content).decode(),
        "fields": [],
    }
    headers = {"Authorization": f"Bearer {space.token}"}
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, trust_env=False, timeout=ENOUGH
    ) as http:
        return (await http.post(f"{space.path}/imports", json=body)).json()["data"]


async def follow(page: Page, server: Server, run: Any, space: Space, status: str) -> None:
    """Open the page of a run, in a session, and wait for the end."""
    await sign_in(page, server, space)
    await page.open(f"{server.url}{run['pageUrl']}")
    await page.until(f"document.getElementById('status').dataset.status === '{status}'")
    await page.until("document.getElementById('live').hidden")


async def test_a_person_sees_the_imported_rows_and_undoes_them(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    run = await imported(server, space, b"code,price\na,1\nb,2\n", "csv")
    await follow(page, server, run, space, "succeeded")
    assert "Import · csv of the request → <b>Goods</b> (new)" in await page.text("#label")
    assert (await page.text("#counts")).split()[:4] == ["2", "rows", "read", "2"]
    assert "2 rows" in await page.text("#stages")
    await page.screenshot(screens / "imported.png")
    assert await page.text("#buttons") == "Undo"
    await page.click("#buttons button")
    await page.until("document.getElementById('said').innerText.startsWith('Reverted: 2')")
    await page.until("document.getElementById('buttons').innerText === ''")


async def test_a_failed_import_says_what_to_do(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    run = await imported(server, space, b"no workbook", "xlsx")
    await follow(page, server, run, space, "failed")
    read = await page.text("#details")
    assert "The file is not a workbook" in read
    assert "a failed run writes no rows" in read
    stages = "[...document.querySelectorAll('#stages li')].map(one => one.dataset.status ?? null)"
    assert await page.evaluate(stages) == ["succeeded", "failed", None]
    await page.screenshot(screens / "failed.png")
