"""The pages of an undo of a run, without scripts: preview, confirmation, outcome."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support import related
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.undos import UndoneAutomation, automation_to_undo, updated
from tests.support.visitor import Visitor, signed_in
from tests.support.written_runs import node

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
async def automation(client: Client, space: Space) -> UndoneAutomation:
    return await automation_to_undo(client, space)


@pytest.fixture
async def tasks(client: Client, space: Space) -> str:
    return await related.make_database(client, space, "Tasks", {"label": "State", "kind": "text"})


async def test_a_run_is_undone_after_a_preview_and_the_undo_in_turn(
    client: Client, owner: Visitor, automation: UndoneAutomation, tasks: str
) -> None:
    record = await related.add(client, tasks, "Before", data={"state": "open"})
    other = await related.add(client, tasks, "Two")
    run = await automation.run(
        updated(record, title=HOSTILE),
        updated(other, title="Zwei"),
        nodes=[node("mail", 1, node_kind="send_email")],
    )
    await automation.write(run, updated(record, data={"state": "closed"}), node_id="close_task")
    await related.change(client, other, title="Mine")
    undo = f"{automation.path(run)}/undo".removeprefix("/v1")
    assert f'href="{undo}"' in (await owner.get(f"/runs/{run}")).text
    preview = (await owner.get(undo)).text
    assert "<b>1</b> of 2 records would be reverted, <b>1</b> conflict." in preview
    assert "It was changed after the run." in preview
    assert "send email" in preview.lower()
    assert preview.count("close_task") == 2, "among the nodes, and beside the record"
    assert "Node close_task" in (await owner.get(f"/records/{record}")).text
    assert f"{undo} \\" in preview, "the equal call"
    assert HOSTILE not in preview
    assert (await related.get(client, record))["title"] == HOSTILE
    page = await owner.send_form(undo, undo)
    assert page.status_code == 303, page.text
    done = await owner.get(page.headers["location"])
    assert "<b>1</b> of 2 records reverted" in done.text
    assert (await related.get(client, record))["title"] == "Before"
    undo_id = page.headers["location"].rpartition("/")[2]
    again = (await owner.get(f"{undo}?undoId={undo_id}")).text
    assert "Undo this undo" in again
    await owner.send_form(undo, undo, undoId=undo_id)
    assert (await related.get(client, record))["title"] == HOSTILE


async def test_a_viewer_has_no_button(
    app: FastAPI, space: Space, automation: UndoneAutomation, tasks: str, client: Client
) -> None:
    record = await related.add(client, tasks, "Before")
    run = await automation.run(updated(record, title="After"))
    undo = f"{automation.path(run)}/undo".removeprefix("/v1")
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        assert undo not in (await viewer.get(f"/runs/{run}")).text
        assert (await viewer.get(undo)).status_code == 403


async def test_an_open_run_says_why_it_is_not_undone(
    owner: Visitor, automation: UndoneAutomation
) -> None:
    run = await automation.run(status="running", completed_at=None)
    undo = f"{automation.path(run)}/undo".removeprefix("/v1")
    assert "The run is still open" in (await owner.get(undo)).text


async def test_runs_of_the_list_are_undone_by_an_operation(
    client: Client, owner: Visitor, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "Before")
    run = await automation.run(updated(record, title="After"))
    place = f"/workspaces/{space.id}/runs/operations"
    body: dict[str, Any] = {"selection": "ticked", f"run.{run}": "on", "action": "undo"}
    preview = (await owner.send_form(f"{place}/preview", **body)).text
    assert "These runs wrote <b>1</b> record." in preview
    begun = await owner.send_form(place, **body)
    assert begun.status_code == 303, begun.text
    assert "Undo" in (await owner.get(begun.headers["location"])).text
