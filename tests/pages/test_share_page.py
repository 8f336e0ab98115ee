"""The page of a share link in a real browser: the view of a visitor without an account."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from api.console.files import DIGEST
from runtime.configuration.settings import Settings
from tests.support.browser import Page
from tests.support.client import Client
from tests.support.files import Json, stored
from tests.support.server import Server
from tests.support.server import serving as api_process
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=10)

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    """The API as a process of its own."""
    async with api_process(settings) as server:
        yield server


async def share(client: Client, space: Space, item_id: str, **body: Any) -> tuple[str, str]:
    """The path of a new link, and its token."""
    made = await client.post(f"{space.path}/items/{item_id}/share-links", json=body)
    assert made.status_code == 201, made.text
    link = made.json()["data"]
    assert link["shareUrl"] == f"{link['url']}#{link['token']}"
    return link["url"], link["token"]


async def make(client: Client, kind: str, title: str, **values: Any) -> Json:
    made = await client.post("/v1/items", json={"kind": kind, "title": title, **values})
    assert made.status_code == 201, made.text
    item: Json = made.json()["data"]["item"]
    return item


async def shown(page: Page, url: str) -> str:
    """What the page says once it has opened the link."""
    await page.open(url)
    await page.until("document.querySelector('main.shared') !== null")
    return await page.text("main")


def paragraph(words: str) -> Json:
    return {"kind": "paragraph", "content": {"text": words}}


@pytest.mark.long
async def test_a_page_is_read_and_its_token_stays_in_the_browser(
    page: Page, server: Server, client: Client, space: Space, screens: Path
) -> None:
    item = await make(client, "page", "The plan", icon="🗺")
    picture = await stored(client, space, b"<svg/>", headers={"Content-Type": "image/png"})
    spans = [{"text": "Read "}, {"text": "this", "marks": ["bold"], "link": "https://example.com/"}]
    blocks = [
        {"kind": "heading_1", "content": {"text": "First steps"}},
        {"kind": "paragraph", "content": {"text": spans}},
        {"kind": "bulleted_list_item", "content": {"text": "one"}},
        {"kind": "bulleted_list_item", "content": {"text": "two"}, "children": [paragraph("in")]},
        {"kind": "to_do", "content": {"text": "done", "checked": True}},
        {"kind": "callout", "content": {"text": "Mind the gap", "icon": "⚠"}},
        {"kind": "code", "content": {"code": "a < b && c"}},
        {"kind": "table", "content": {"rows": [["Name", "Age"], ["Ada", "36"]], "headerRow": True}},
        {"kind": "divider"},
        {"kind": "file", "content": {"fileId": picture["fileId"], "name": "map.png"}},
        paragraph(HOSTILE),
    ]
    written = await client.put(f"/v1/surfaces/{item['targetId']}", json={"blocks": blocks})
    assert written.status_code == 200, written.text
    path, token = await share(client, space, item["id"], maxUses=1, allowDownload=True)
    text = await shown(page, f"{server.url}{path}#{token}")
    assert [one for one in text.split("\n") if one][:3] == [
        "🗺 The plan", "A shared page", "First steps"
    ]  # fmt: skip
    for words in ("First steps", "Read this", "☑ done", "⚠ Mind the gap", "a < b && c", HOSTILE):
        assert words in text
    assert await page.evaluate("document.querySelectorAll('ul > li').length") == 2
    assert (await page.evaluate("document.querySelector('th').innerText")) == "Name"
    assert not await page.evaluate("document.querySelector('main img')")
    assert await page.evaluate("document.querySelector('a[target]').rel") == (
        "noopener noreferrer nofollow"
    )
    await page.screenshot(screens / "share-page.png")
    # The link's only use is taken; the session of this tab reads on.
    assert "First steps" in await shown(page, f"{server.url}{path}#{token}")
    assert all(token not in url for url in page.requests if "#" not in url)
    assert {url.partition("#")[0].rpartition("/")[0] for url in page.requests} <= {
        f"{server.url}/v1/share", f"{server.url}/console/{DIGEST}", "data:,"
    }  # fmt: skip
    # The address can be kept: it opens the link again, and is sent nowhere.
    assert await page.evaluate("location.pathname + location.hash") == f"{path}#{token}"


@pytest.mark.long
async def test_a_database_a_folder_and_a_file(
    page: Page, server: Server, client: Client, space: Space, screens: Path
) -> None:
    folder = await make(client, "folder", "Everything")
    fields = [
        {"label": "Stage", "kind": "select", "options": [{"name": "Open"}]},
        {"label": "Paid", "kind": "checkbox"},
    ]
    body = {"label": "Orders", "fields": fields, "parentItemId": folder["id"]}
    made = (await client.post(f"{space.path}/databases", json=body)).json()["data"]
    operations = [
        {"op": "create", "title": f"Order {n}", "data": {"stage": "open", "paid": n == 0}}
        for n in range(120)
    ]
    batch = f"/v1/databases/{made['id']}/records/batch"
    assert (await client.post(batch, json={"operations": operations})).status_code == 200
    path, token = await share(client, space, made["itemId"])
    text = await shown(page, f"{server.url}{path}#{token}")
    assert "Title\tStage\tPaid" in text
    assert await page.evaluate("document.querySelector('tbody td').innerText") == "Open"
    assert await page.evaluate("document.querySelectorAll('tbody tr').length") == 50
    await page.screenshot(screens / "share-database.png")
    for count in (50, 20):
        await page.evaluate("document.querySelector('tbody').remove()")
        await page.click("a[rel=next]")
        await page.until(f"document.querySelectorAll('tbody tr').length === {count}")

    path, token = await share(client, space, folder["id"])
    assert "Orders database" in await shown(page, f"{server.url}{path}#token={token}")
    await page.screenshot(screens / "share-folder.png")

    kept = await stored(client, space, b"x" * 2_500, params={"name": "notes.txt"})
    item = await make(client, "file", "Notes", config={"fileId": kept["fileId"]})
    path, token = await share(client, space, item["id"])
    text = await shown(page, f"{server.url}{path}#{token}")
    assert "2.5 kB" in text
    assert "does not allow downloads" in text
    path, token = await share(client, space, item["id"], allowDownload=True)
    assert "Download" in await shown(page, f"{server.url}{path}#{token}")
    await page.screenshot(screens / "share-file.png")
    url = await page.evaluate("document.querySelector('main .button').href")
    assert await page.evaluate(f"fetch('{url}').then((one) => one.text())") == "x" * 2_500


@pytest.mark.long
async def test_without_its_token_a_link_asks_for_it(
    page: Page, server: Server, client: Client, space: Space, screens: Path
) -> None:
    item = await make(client, "folder", "Closed")
    path, token = await share(client, space, item["id"])
    await page.open(f"{server.url}{path}")
    await page.until("document.querySelector('#token') !== null")
    await page.write("#token", "wrong")
    await page.press("Enter")
    await page.until("document.querySelector('[role=alert]') !== null")
    assert "not valid" in await page.text("[role=alert]")
    await page.screenshot(screens / "share-refused.png")
    assert "Closed" not in await page.evaluate("document.body.innerText")
    await page.write("#token", token)
    await page.press("Enter")
    await page.until("document.querySelector('main.shared') !== null")
    assert "Closed" in await page.text("main")
    # The browser itself notes the answer to the wrong token.
    assert len(page.problems) == 1
    assert "404" in page.problems.pop()


async def test_a_token_in_the_query_moves_to_the_fragment(
    page: Page, server: Server, client: Client, space: Space
) -> None:
    path, token = await share(client, space, (await make(client, "folder", "Open"))["id"])
    assert "Open" in await shown(page, f"{server.url}{path}?token={token}")
    assert await page.evaluate("location.search + location.hash") == f"#{token}"
