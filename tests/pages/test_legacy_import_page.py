"""The page of a legacy import run, in a real browser: what an administrator can decide on it."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, update

from models.people.users.commands import make_platform_admin
from models.people.workspaces.tables import workspace
from tests.support.browser import Page
from tests.support.legacy_imports import folder, folders, whole
from tests.support.patience import ENOUGH
from tests.support.person import sign_in
from tests.support.server import Server
from tests.support.spaces import Space, make_space

pytestmark = pytest.mark.takes(seconds=30)

STATUS = "document.getElementById('status').innerText.trim()"
BUTTONS = "[...document.querySelectorAll('#buttons button')].map(one => one.innerText).join()"


def _of(name: str) -> str:
    """The section of a workspace."""
    named = f"one.querySelector('.name')?.textContent === {json.dumps(name)}"
    return f"[...document.querySelectorAll('#details section')].find(one => {named})"


def _controls(name: str) -> str:
    return f"[...{_of(name)}.querySelectorAll('button')].map(one => one.innerText).join()"


async def _press(
    page: Page, label: str, within: str = "document.getElementById('buttons')"
) -> None:
    button = f"[...{within}.querySelectorAll('button')].find(one => one.innerText === '{label}')"
    await page.until(f"!!{button}")
    await page.evaluate(f"{button}.click()")


async def _uploaded(server: Server, space: Space, content: bytes) -> Any:
    async with space.database.transaction() as work:
        await make_platform_admin(work, space.user_id)
    headers = {"Authorization": f"Bearer {space.token}", "Content-Type": "application/zip"}
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, trust_env=False, timeout=ENOUGH
    ) as http:
        return (await http.post("/v1/admin/legacy-imports", content=content)).json()["data"]


async def test_an_administrator_leaves_out_what_is_blocked_and_imports_the_rest(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    bad = folder("Odd", kind="nope")[1]
    content = whole({"Good": folders(3), "<b>Bad</b>": [bad], "Other": folders(2)})
    run = await _uploaded(server, space, content)
    await sign_in(page, server, space)
    await page.open(f"{server.url}{run['pageUrl']}")
    await page.until(f"{STATUS} === 'awaiting review'")
    await page.until(f"{BUTTONS} === 'Check again,Cancel'")
    assert "leave out what is blocked: <b>Bad</b>." in await page.text("#buttons")
    await page.screenshot(screens / "legacy-import-blocked.png")
    await _press(page, "Leave out", _of("<b>Bad</b>"))
    await page.until(f"{BUTTONS} === 'Approve,Check again,Cancel'")
    assert await page.evaluate(_controls("<b>Bad</b>")) == "Select,Import into …"
    for name in ("Good", "Other"):
        await _press(page, "Leave out", _of(name))
        await page.until(f"{_controls(name)}.startsWith('Select')")
    await page.until(f"{BUTTONS} === 'Cancel'")
    assert "select a workspace" in await page.text("#buttons")
    await _press(page, "Select", _of("Good"))
    await _press(page, "Approve")
    await page.until(f"{STATUS} === 'approved'")
    assert await page.evaluate(_controls("Good")) == ""
    await _press(page, "Start")
    await page.until(f"{STATUS} === 'completed'")
    await page.until(f"{BUTTONS} === 'Roll back'")
    assert "item: 3" in await page.evaluate(f"{_of('Good')}.innerText")
    await page.screenshot(screens / "legacy-import-completed.png")


async def test_a_workspace_whose_import_failed_is_retried(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    target = await make_space(space.database, space.keys)
    run = await _uploaded(server, space, whole({"Moved": folders(3)}))
    await sign_in(page, server, space)
    await page.open(f"{server.url}{run['pageUrl']}")
    await page.until(f"{STATUS} === 'awaiting review'")
    await page.evaluate(f"(window.prompt = () => ' {target.id} ') && null")
    await _press(page, "Import into …", _of("Moved"))
    await page.until(f"{_controls('Moved')}.endsWith('Import into one of its own')")
    await _press(page, "Approve")
    await page.until(f"{STATUS} === 'approved'")
    await _delete(target, func.now())
    await _press(page, "Start")
    await page.until(f"{STATUS} === 'failed'")
    assert "does not exist any more" in await page.evaluate(f"{_of('Moved')}.innerText")
    await page.screenshot(screens / "legacy-import-failed.png")
    await _delete(target, None)
    await _press(page, "Retry", _of("Moved"))
    await page.until(f"{STATUS} === 'completed'")
    await page.until(f"{_controls('Moved')} === ''")


async def _delete(target: Space, moment: Any) -> None:
    """Put a workspace into the trash, or take it out."""
    async with target.database.transaction() as work:
        own = update(workspace).where(workspace.c.id == target.id)
        await work.execute(own.values(deleted_at=moment))
