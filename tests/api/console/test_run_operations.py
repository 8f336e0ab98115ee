"""Pages of operations over runs, without scripts: ticked, previewed, begun, followed."""

import re
from html import unescape
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from sqlalchemy import update

from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Role
from runtime.clock import utc_now
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.run_operations import carry_out
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, signed_in


async def failed(client: Client, space: Space, made: Any, count: int) -> list[str]:
    runs = [read(await client.post(f"{path_of(made)}/run", json={}))["id"] for _ in range(count)]
    async with space.database.transaction() as work:
        these = automation_run.c.id.in_([UUID(run_id) for run_id in runs])
        ends = {"status": "failed", "completed_at": utc_now(), "error": "It broke."}
        await work.execute(update(automation_run).where(these).values(ends))
    return runs


def hidden(page: str, form: str = "") -> dict[str, str]:
    """The hidden fields of a page."""
    found = re.findall(rf'<input type="hidden" {form}name="([^"]+)" value="([^"]*)"', page)
    return {unescape(name): unescape(value) for name, value in found}


async def operations(client: Client, space: Space) -> list[Any]:
    listed: list[Any] = read(await client.get(f"{space.path}/run-operations"))["runOperations"]
    return listed


async def test_ticked_runs_are_retried_by_forms_alone(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    runs = await failed(client, space, made, 3)
    path = f"/workspaces/{space.id}/runs"
    listed = (await owner.get(path)).text
    boxes = re.findall(r'type="checkbox" id="[^"]+" form="bulk" name="(run\.[^"]+)"', listed)
    assert boxes == [f"run.{run_id}" for run_id in runs[::-1]]
    sent: dict[str, Any] = {
        "selection": "ticked",
        "action": "retry",
        boxes[0]: "on",
        boxes[2]: "on",
    }
    preview = await owner.send_form(f"{path}/operations/preview", **sent)
    assert preview.status_code == 200
    assert "<b>2</b> of 2 selected runs can be retried" in preview.text
    assert "Orders" in preview.text
    assert await operations(client, space) == [], "nothing has begun"
    fields = {**hidden(preview.text), "from": "start", "version": "published", "rate": "500"}
    begun = await owner.post(f"{path}/operations", data=fields)
    assert begun.status_code == 303, begun.text
    again = await owner.post(f"{path}/operations", data=fields)
    assert again.headers["location"] == begun.headers["location"]
    (one,) = await operations(client, space)
    assert begun.headers["location"] == f"{path}/operations/{one['id']}"
    assert (one["retry"]["from"], one["retry"]["version"]) == ("start", "published")
    assert (one["rate"], one["total"]) == (500, 2)
    followed = (await owner.get(begun.headers["location"])).text
    assert "<b>0</b> of 2 done" in followed
    assert 'http-equiv="refresh"' in followed
    await carry_out(space.database, one)
    ended = (await owner.get(begun.headers["location"])).text
    assert "2 succeeded, 0 skipped, 0 failed" in ended
    assert 'http-equiv="refresh"' not in ended
    for run_id in (runs[0], runs[2]):
        assert f'href="/runs/{run_id}"' in ended
    assert len(re.findall(r'<td><a href="/runs/', ended)) == 4, "each with its new run"


async def test_a_page_or_all_that_fit_the_filters_are_selected(
    client: Client, owner: Visitor, space: Space
) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    await failed(client, space, made, 2)
    await failed(client, space, other, 1)
    path = f"/workspaces/{space.id}/runs"
    listed = await owner.get(path, params={"automationId": made["id"], "period": "day"})
    fields = hidden(listed.text)
    assert fields["filter.automationId"] == made["id"]
    whole = {**fields, "action": "retry", "selection": "all"}
    preview = (await owner.post(f"{path}/operations/preview", data=whole)).text
    assert "<b>2</b> of 2 selected" in preview
    kept = hidden(preview)
    assert kept.keys() >= {"filter.automationId", "filter.since", "filter.until"}
    shown = hidden(listed.text, 'form="bulk" ')
    page = {**fields, **shown, "action": "retry", "selection": "page"}
    preview = (await owner.post(f"{path}/operations/preview", data=page)).text
    assert len([name for name in hidden(preview) if name.startswith("run.")]) == 2
    await failed(client, space, made, 1)
    begun = await owner.post(f"{path}/operations", data=kept)
    (one,) = await operations(client, space)
    await carry_out(space.database, one)
    (one,) = await operations(client, space)
    assert one["total"] == 2, "what came after the preview is not selected"
    assert begun.status_code == 303


async def test_a_form_that_means_no_run_or_cannot_be_read_says_so(
    client: Client, owner: Visitor, space: Space
) -> None:
    (run_id,) = await failed(client, space, await publish(client, space), 1)
    path = f"/workspaces/{space.id}/runs/operations"
    none = await owner.send_form(f"{path}/preview", action="retry", selection="ticked")
    assert none.status_code == 400
    assert "No runs selected" in none.text
    sent: dict[str, Any] = {"action": "resume", f"run.{run_id}": "on", "data": "{", "rate": "1"}
    wrong = await owner.send_form(f"{path}/preview", **sent)
    assert wrong.status_code == 400
    unknown: dict[str, Any] = {"action": "cancel", "selection": "all", "filter.label": "x"}
    refused = await owner.send_form(path, **unknown)
    assert refused.status_code == 400, "a filter that is not known is not left out"
    fast: dict[str, Any] = {"action": "retry", f"run.{run_id}": "on", "rate": "0"}
    shown = await owner.send_form(path, **fast)
    assert shown.status_code == 400
    assert 'aria-invalid="true"' in shown.text
    assert await operations(client, space) == []


async def test_an_operation_is_paused_resumed_cancelled_and_undone(
    client: Client, owner: Visitor, space: Space
) -> None:
    runs = await failed(client, space, await publish(client, space), 2)
    made = read(
        await client.post(f"{space.path}/run-operations", json={"action": "retry", "runIds": runs}),
        202,
    )
    page = f"/workspaces/{space.id}/runs/operations/{made['id']}"

    async def press(verb: str) -> str:
        key = form_key(await owner.get(page))
        answer = await owner.send_form(f"{page}/{verb}", page=page, idempotencyKey=key)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    for verb, status in (("pause", "paused"), ("resume", "queued")):
        assert await press(verb) == page
        assert (await operations(client, space))[0]["status"] == status
    await carry_out(space.database, made)
    assert "Undo…" in (await owner.get(page)).text
    undo = await press("undo")
    newest, first = await operations(client, space)
    assert undo == f"/workspaces/{space.id}/runs/operations/{newest['id']}"
    assert newest["undoes"] == first["id"]
    page = undo
    await press("cancel")
    listed = (await owner.get(f"/workspaces/{space.id}/runs/operations")).text
    assert "undoes another operation" in listed
    assert "Retry 2 runs" in listed
    assert "cancelled" in listed


async def test_a_viewer_sees_no_boxes(client: Client, space: Space, app: FastAPI) -> None:
    await failed(client, space, await publish(client, space), 1)
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = (await viewer.get(f"/workspaces/{space.id}/runs")).text
        assert 'type="checkbox"' not in page
        assert 'id="bulk"' not in page
        listed = await viewer.get(f"/workspaces/{space.id}/runs/operations")
        assert "No operations yet" in listed.text
