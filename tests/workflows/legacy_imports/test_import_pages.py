"""Legacy imports by pages without scripts: sent, reviewed, imported, retried, rolled back."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import func, update

from models.people.workspaces import workspace
from tests.support.legacy_imports import Administrator, folder, folders, whole
from tests.support.patience import eventually
from tests.support.spaces import Space, make_space
from tests.support.visitor import Visitor, form_key, form_token, signed_in

pytestmark = pytest.mark.takes(seconds=30)

HOSTILE = "<b>Bad</b>"


@pytest_asyncio.fixture
async def visitor(app: FastAPI, admin: Administrator) -> AsyncIterator[Visitor]:
    """The administrator in a session."""
    async with await signed_in(app, admin.space) as visitor:
        yield visitor


async def sent(visitor: Visitor, content: bytes) -> str:
    """The path of a run whose bundle was chosen on the page."""
    page = await visitor.get("/legacy-imports")
    data = {"csrfToken": form_token(page), "idempotencyKey": form_key(page)}
    answer = await visitor.post(
        "/legacy-imports", data=data, files={"file": ("old.zip", content, "application/zip")}
    )
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def reached(visitor: Visitor, path: str, word: str) -> str:
    """The page of a run once it says so of its status."""
    text = ""

    async def says() -> bool:
        nonlocal text
        text = (await visitor.get(path)).text
        status = text.partition('id="status"')[2].partition("</p>")[0]
        return f">{word}<" in status or f"/></svg>{word}</span>" in status

    await eventually(says, word)
    return text


def entry(text: str, name: str) -> str:
    """The part of the page about one workspace."""
    return text.partition(f'aria-label="{name}"')[2].partition("</section>")[0]


def own(text: str, name: str) -> str:
    """The address of the forms of one workspace."""
    return entry(text, name).partition('action="')[2].partition('"')[0].removesuffix("/retry")


async def send(visitor: Visitor, path: str, page: str, **fields: Any) -> None:
    answer = await visitor.send_form(path, page, None, **fields)
    assert answer.status_code == 303, answer.text


@pytest.mark.long
async def test_a_blocked_workspace_is_left_out_and_others_are_imported_and_rolled_back(
    visitor: Visitor,
) -> None:
    bad = folder("Odd", kind="nope")[1]
    path = await sent(visitor, whole({"Good": folders(3), HOSTILE: [bad], "Other": folders(2)}))
    page = await reached(visitor, path, "awaiting review")
    assert HOSTILE not in page
    name = "&lt;b&gt;Bad&lt;/b&gt;"
    assert f"Exclude blocked workspaces before approving: {name}." in page
    assert f'action="{path}/approve"' not in page
    refused = await visitor.send_form(f"{path}/approve", path)
    assert refused.status_code == 409
    await send(visitor, own(page, name), path, selected="false")
    await send(visitor, own(page, "Other"), path, selected="false")
    page = await reached(visitor, path, "awaiting review")
    assert ">Include<" in entry(page, name)
    await send(visitor, f"{path}/approve", path, note="Counts compared.")
    page = await reached(visitor, path, "approved")
    assert "Counts compared." in page
    await send(visitor, f"{path}/start", path)
    page = await reached(visitor, path, "completed")
    assert "item: 3" in entry(page, "Good")
    assert path in (await visitor.get("/legacy-imports")).text
    without = await visitor.send_form(f"{path}/rollback", path)
    assert without.status_code == 400
    await send(visitor, f"{path}/rollback", path, reason="Not yet")
    page = await reached(visitor, path, "rolled back")
    assert ("Not yet" in page, "noscript" in page) == (True, False)


@pytest.mark.long
async def test_a_workspace_whose_import_failed_is_tried_again(
    visitor: Visitor, admin: Administrator
) -> None:
    target = await make_space(admin.space.database, admin.space.keys)
    path = await sent(visitor, whole({"Moved": folders(3)}))
    page = await reached(visitor, path, "awaiting review")
    nowhere = await visitor.send_form(own(page, "Moved"), path, None, target="nowhere")
    assert nowhere.status_code == 400
    await send(visitor, own(page, "Moved"), path, target=f" {target.id} ")
    page = await reached(visitor, path, "awaiting review")
    assert str(target.id) in entry(page, "Moved")
    await send(visitor, own(page, "Moved"), path, own="true")
    page = await reached(visitor, path, "awaiting review")
    assert "a new workspace" in entry(page, "Moved")
    await send(visitor, own(page, "Moved"), path, target=str(target.id))
    await reached(visitor, path, "awaiting review")
    await send(visitor, f"{path}/approve", path)
    await reached(visitor, path, "approved")
    await _delete(target, func.now())
    await send(visitor, f"{path}/start", path)
    page = await reached(visitor, path, "failed")
    assert "no longer exists" in entry(page, "Moved")
    await _delete(target, None)
    await send(visitor, f"{own(page, 'Moved')}/retry", path)
    await reached(visitor, path, "completed")


@pytest.mark.long
async def test_a_run_is_checked_again_and_cancelled(visitor: Visitor) -> None:
    path = await sent(visitor, whole({"Good": folders(1)}))
    await reached(visitor, path, "awaiting review")
    await send(visitor, f"{path}/dry-run", path)
    await reached(visitor, path, "awaiting review")
    await send(visitor, f"{path}/cancel", path, reason="The wrong one.")
    page = await reached(visitor, path, "cancelled")
    assert "The wrong one." in page
    assert f'action="{path}/' not in page
    again = await visitor.send_form(f"{path}/start", path)
    assert again.status_code == 409


async def test_only_its_creator_sees_or_sends_a_bundle(app: FastAPI, visitor: Visitor) -> None:
    path = await sent(visitor, whole({"Good": folders(1)}))
    other = await make_space(app.state.services.database, app.state.services.keys)
    async with await signed_in(app, other) as owner:
        for page in ("/legacy-imports", path):
            assert (await owner.get(page)).status_code == 403
        files = {"file": ("old.zip", b"PK", "application/zip")}
        data = {"csrfToken": await owner.token()}
        assert (await owner.post("/legacy-imports", data=data, files=files)).status_code == 403
    nothing = await visitor.send_form("/legacy-imports", "/legacy-imports")
    assert (nothing.status_code, "Choose a file" in nothing.text) == (400, True)


async def _delete(target: Space, moment: Any) -> None:
    """Put a workspace into the trash, or take it out."""
    async with target.database.transaction() as work:
        mine = update(workspace).where(workspace.c.id == target.id)
        await work.execute(mine.values(deleted_at=moment))
