"""A spreadsheet that is dropped on the page of imports becomes a table."""

import base64
import json
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.person import sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=15)


@pytest.mark.long
async def test_a_dropped_file_becomes_a_database(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    await sign_in(page, server, space)
    await page.open(f"{server.url}/workspaces/{space.id}/import")
    content = base64.b64encode(b"name,price\nTea,3\nMilk,1\n").decode()
    await page.evaluate(
        "(() => { const data = new DataTransfer();"
        f" data.items.add(new File([atob({json.dumps(content)})], 'Prices.csv'));"
        " const drop = new DragEvent('drop', {dataTransfer: data, cancelable: true});"
        " document.dispatchEvent(drop); })()"
    )
    await page.until("document.querySelector('[name=label]') !== null")
    assert await page.evaluate("document.querySelector('[name=label]').value") == "Prices"
    await page.screenshot(screens / "import.png")
    await page.click("form[action$='/start'] .primary")
    await page.until("document.querySelector('[data-status=succeeded]') !== null")
    assert "2 records" in await page.text("#live")
    await page.click("#live a.primary")
    await page.until("document.querySelectorAll('.sheet .row').length === 2")
    assert "Milk" in await page.text(".sheet")
