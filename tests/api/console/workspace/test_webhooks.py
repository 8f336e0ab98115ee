"""Webhook endpoints by their pages: secrets are shown once, deliveries are listed and repeated."""

from typing import Any

from sqlalchemy import update

from models.core.access.rules import Role
from models.messages.deliveries.commands import delivery
from tests.support.client import Client
from tests.support.settings_pages import (
    HOSTILE,
    Visit,
    assert_inert,
    commands_of,
    posted,
    sent,
    settings_of,
)
from tests.support.spaces import Space
from tests.support.visitor import Visitor

URL = "https://hooks.example.test/workspace"


async def endpoint_of(client: Client, space: Space, **values: Any) -> str:
    """The id of a new endpoint."""
    body = {"url": URL, **values}
    made = await client.post(f"{space.path}/webhook-endpoints", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["data"]["id"])


async def read(client: Client, space: Space, endpoint_id: str) -> dict[str, Any]:
    answer = await client.get(f"{space.path}/webhook-endpoints/{endpoint_id}")
    found: dict[str, Any] = answer.json()["data"]
    return found


async def test_a_secret_is_shown_once(owner: Visitor, space: Space, client: Client) -> None:
    page, form = settings_of(space, "webhooks"), settings_of(space, "webhooks", "new")
    fields = {"url": URL, "description": HOSTILE, "event.run.status": "on"}
    answer = await posted(owner, form, page, fields)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    (secret,) = [one for one in commands_of(answer) if one.startswith("whsec_")]
    listed = await owner.get(page)
    assert_inert(listed)
    assert secret not in listed.text
    endpoints = (await client.get(f"{space.path}/webhook-endpoints")).json()["data"]["endpoints"]
    assert [one["eventTypes"] for one in endpoints] == [["run.status"]]
    here = settings_of(space, "webhooks", endpoints[0]["id"])
    shown = await owner.get(here)
    assert_inert(shown)
    assert secret not in shown.text
    rotated = await posted(owner, here, f"{here}/rotate-secret", {})
    (other,) = [one for one in commands_of(rotated) if one.startswith("whsec_")]
    assert other != secret
    # Opened again by its address, the page of the secret leads to the endpoint.
    assert (await owner.get(f"{here}/rotate-secret")).headers["location"] == here


async def test_an_endpoint_is_changed_disabled_enabled_and_deleted(
    owner: Visitor, space: Space, client: Client
) -> None:
    endpoint_id = await endpoint_of(client, space, eventTypes=["run.status"], description="Old")
    here = settings_of(space, "webhooks", endpoint_id)
    shown = await owner.get(f"{here}/edit")
    assert 'name="event.run.status" checked' in shown.text
    fields = {"url": URL, "event.item.created": "on"}
    assert await sent(owner, here, here, **fields) == f"{here}?notice=saved"
    now = await read(client, space, endpoint_id)
    assert now["eventTypes"] == ["item.created"]
    assert "description" not in now
    for form, enabled in (("disable", False), ("enable", True)):
        assert await sent(owner, here, f"{here}/{form}") == f"{here}?notice=saved"
        assert (await read(client, space, endpoint_id))["enabled"] is enabled
    page = settings_of(space, "webhooks")
    assert await sent(owner, here, f"{here}/delete") == f"{page}?notice=removed"
    assert (await owner.get(here)).status_code == 404


async def test_each_error_is_shown_beside_its_field(
    owner: Visitor, space: Space, client: Client
) -> None:
    endpoint_id = await endpoint_of(client, space)
    for path in (settings_of(space, "webhooks"), settings_of(space, "webhooks", endpoint_id)):
        fields = {"url": "ftp://kept", "description": "Kept", "event.run.status": "on"}
        answer = await posted(owner, settings_of(space), path, fields)
        assert answer.status_code == 400
        for words in ('value="ftp://kept"', 'value="Kept"', 'event.run.status" checked'):
            assert words in answer.text
        assert 'class="fault"' in answer.text


async def test_deliveries_are_shown_filtered_and_repeated(
    owner: Visitor, space: Space, client: Client
) -> None:
    endpoint_id = await endpoint_of(client, space)
    here = settings_of(space, "webhooks", endpoint_id)
    assert "No deliveries yet" in (await owner.get(here)).text
    assert await sent(owner, here, f"{here}/test") == f"{here}?notice=sent"
    deliveries = f"{space.path}/webhook-endpoints/{endpoint_id}/deliveries"
    (pending,) = (await client.get(deliveries)).json()["data"]["deliveries"]
    shown = await owner.get(here, params={"status": "pending"})
    assert "webhook.test" in shown.text
    assert "Redeliver</button>" not in shown.text
    again = f"{here}/deliveries/{pending['id']}/redeliver"
    assert (await posted(owner, here, again, {})).status_code == 409
    async with space.database.transaction() as work:
        this = update(delivery).where(delivery.c.id == pending["id"])
        await work.execute(
            this.values(status="failed", attempts=9, error=HOSTILE, completed_at=work.now)
        )
    assert "webhook.test" not in (await owner.get(here, params={"status": "delivered"})).text
    shown = await owner.get(here, params={"status": "failed"})
    assert_inert(shown)
    assert "status=failed" in shown.text
    assert await sent(owner, here, again) == f"{here}?notice=sent"
    repeated = (await client.get(deliveries)).json()["data"]["deliveries"]
    assert [one["status"] for one in repeated] == ["pending", "failed"]
    assert (await owner.get(here, params={"status": "lost"})).status_code == 400


async def test_a_viewer_reads_without_credentials_of_the_address(
    visit: Visit, owner: Visitor, space: Space, client: Client
) -> None:
    url = f"{URL}?token=hidden-in-the-address"
    endpoint_id = await endpoint_of(client, space, url=url)
    here = settings_of(space, "webhooks", endpoint_id)
    await sent(owner, here, f"{here}/test")
    viewer = await visit(Role.VIEWER)
    shown = await viewer.get(here)
    assert shown.status_code == 200
    assert "hidden-in-the-address" not in shown.text
    assert "<form" not in shown.text.partition('<div class="panel">')[2].partition("</main>")[0]
    for path in (f"{here}/edit", settings_of(space, "webhooks", "new")):
        assert (await viewer.get(path)).status_code == 403
    for form in ("", "/disable", "/test", "/rotate-secret", "/delete"):
        answer = await viewer.send_form(here + form, settings_of(space))
        assert answer.status_code == 403
    assert (await read(client, space, endpoint_id))["enabled"] is True


async def test_an_endpoint_of_another_workspace_is_not_found(
    owner: Visitor, space: Space, foreign: Space, client: Client
) -> None:
    endpoint_id = await endpoint_of(client.with_token(foreign.token), foreign)
    here = settings_of(space, "webhooks", endpoint_id)
    assert (await owner.get(here)).status_code == 404
    for form in ("", "/disable", "/rotate-secret", "/delete"):
        answer = await owner.send_form(here + form, settings_of(space), url=URL)
        assert answer.status_code == 404
    found = await read(client.with_token(foreign.token), foreign, endpoint_id)
    assert found["enabled"] is True
