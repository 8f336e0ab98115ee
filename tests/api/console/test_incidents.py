"""Pages of incidents, without scripts: listed, assigned, muted, closed, retried."""

from typing import Any

from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.automations import publish, read
from tests.support.client import Client
from tests.support.incidents import open_incident
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, signed_in


async def shown(client: Client, space: Space, incident_id: Any) -> Any:
    return read(await client.get(f"{space.path}/incidents/{incident_id}"))


async def test_an_incident_is_listed_assigned_muted_closed_and_opened_again(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    incident_id = await open_incident(space, made["id"], "<b>Order 17</b> fell.")
    path = f"/workspaces/{space.id}/incidents"
    listed = (await owner.get(path)).text
    assert f'href="{path}/{incident_id}"' in listed
    assert "&lt;b&gt;Order &lt;number&gt;&lt;/b&gt; fell." in listed
    page = (await owner.get(f"{path}/{incident_id}")).text
    assert "<b>1</b> run failed at" in page
    assert "version 1" in page
    sent: dict[str, Any] = {"assigneeUserId": str(space.user_id), "note": "Known.", "muted": "on"}
    saved = await owner.send_form(f"{path}/{incident_id}/edit", **sent)
    assert saved.status_code == 303
    assert f'href="{path}/{incident_id}"' not in (await owner.get(path)).text
    assert f'href="{path}/{incident_id}"' in (await owner.get(f"{path}?state=muted")).text
    await owner.send_form(f"{path}/{incident_id}/close")
    closed = await shown(client, space, incident_id)
    assert (closed["state"], closed["closeReason"], closed["note"]) == (
        "closed",
        "person",
        "Known.",
    )
    assert "manually" in (await owner.get(f"{path}/{incident_id}")).text
    await owner.send_form(f"{path}/{incident_id}/reopen")
    await owner.send_form(f"{path}/{incident_id}/edit", note="")
    opened = await shown(client, space, incident_id)
    assert (opened["state"], opened["muted"], opened["note"]) == ("open", False, "")
    assert "assigneeUserId" not in opened


async def test_a_note_that_is_too_long_comes_back(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    incident_id = await open_incident(space, made["id"], "It fell.")
    path = f"/workspaces/{space.id}/incidents/{incident_id}/edit"
    answer = await owner.send_form(path, note="n" * 2_001)
    assert answer.status_code == 400
    assert "n" * 2_001 in answer.text
    assert (await shown(client, space, incident_id))["note"] == ""


async def test_all_are_retried_after_a_look(client: Client, owner: Visitor, space: Space) -> None:
    made = await publish(client, space, label="Orders")
    incident_id = await open_incident(space, made["id"], "It fell.")
    path = f"/workspaces/{space.id}/incidents/{incident_id}"
    preview = await owner.send_form(f"{path}/retry/preview")
    assert preview.status_code == 200
    assert "<b>1</b> run still to retry" in preview.text
    sent: dict[str, Any] = {
        "version": "published",
        "from": "start",
        "rate": "2",
        "idempotencyKey": form_key(preview),
    }
    begun = [await owner.send_form(f"{path}/retry", **sent) for _ in range(2)]
    assert {one.status_code for one in begun} == {303}
    assert len({one.headers["location"] for one in begun}) == 1
    (operation,) = read(await client.get(f"{space.path}/run-operations"))["runOperations"]
    assert begun[0].headers["location"].endswith(operation["id"])
    assert (operation["total"], operation["retry"]["version"], operation["rate"]) == (
        1,
        "published",
        2,
    )
    wrong = await owner.send_form(f"{path}/retry", rate="fast")
    assert wrong.status_code == 400
    assert "must be a number" in wrong.text


async def test_a_viewer_reads_and_finds_no_buttons(
    app: FastAPI, client: Client, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    incident_id = await open_incident(space, made["id"], "It fell.")
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = (await viewer.get(f"/workspaces/{space.id}/incidents/{incident_id}")).text
    assert "It fell." in page
    assert "Retry all" not in page
    assert f"{incident_id}/edit" not in page


async def test_the_first_page_leads_to_incidents(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    await open_incident(space, made["id"], "It fell.")
    home = (await owner.get(f"/workspaces/{space.id}")).text
    assert f'href="/workspaces/{space.id}/incidents"' in home
