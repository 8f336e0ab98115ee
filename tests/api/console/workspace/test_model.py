"""Usage, the audit log and the language model by their pages."""

from fastapi import FastAPI

from models.core.access.rules import Role
from models.workspace.model_settings import open_endpoint
from tests.support.client import Client
from tests.support.settings_pages import HOSTILE, Visit, posted, sent, settings_of
from tests.support.spaces import Space
from tests.support.visitor import Visitor

URL = "https://llm.example.test/v1"
FIELDS = {"baseUrl": URL, "model": "some-model", "timeoutSeconds": "60", "enabled": "on"}
KEY = "sk-that-no-page-may-show"


async def key_of(space: Space) -> str | None:
    async with space.database.reading() as work:
        endpoint = await open_endpoint(work, space.keys, space.id)
    assert endpoint is not None
    return endpoint.api_key


async def test_usage_and_plan(owner: Visitor, visit: Visit, space: Space, client: Client) -> None:
    page = settings_of(space, "usage")
    assert "Automation runs" in (await owner.get(page)).text
    target = await sent(owner, page, f"{page}/plan", plan="team")
    assert target == f"{page}?notice=saved"
    assert (await client.get(f"{space.path}/usage")).json()["data"]["plan"] == "team"
    assert (await posted(owner, page, f"{page}/plan", {"plan": "golden"})).status_code == 400
    admin = await visit(Role.ADMIN)
    assert "Change plan" not in (await admin.get(page)).text
    assert (await posted(admin, page, f"{page}/plan", {"plan": "free"})).status_code == 403


async def test_the_audit_log_names_who_changed_what(
    app: FastAPI, owner: Visitor, space: Space, client: Client
) -> None:
    page = settings_of(space, "audit")
    assert "No changes yet" in (await owner.get(page)).text
    await client.get(f"{space.path}/automations")
    await client.post(f"{space.path}/{HOSTILE}", json={})
    await client.patch(space.path, json={"name": "Renamed"})
    await posted(owner, settings_of(space), settings_of(space), {"name": "", "slug": "x"})
    await app.state.services.request_log.flush()
    shown = (await owner.get(page)).text
    assert "<img" not in shown
    assert "key owner" in shown
    assert f'title="{settings_of(space)}"' in shown
    assert f"{space.path}/automations" not in shown


async def test_the_key_of_a_model_is_never_shown(
    owner: Visitor, space: Space, client: Client
) -> None:
    page = settings_of(space, "model")
    assert await sent(owner, page, page, **FIELDS, secretKey=KEY) == f"{page}?notice=saved"
    shown = await owner.get(page)
    assert f'value="{URL}"' in shown.text
    assert KEY not in shown.text
    assert await key_of(space) == KEY
    # What is left empty stays, and what is refused comes back without the key.
    await sent(owner, page, page, **{**FIELDS, "model": HOSTILE})
    assert await key_of(space) == KEY
    assert "<img" not in (await owner.get(page)).text
    wrong = {**FIELDS, "timeoutSeconds": "soon", "secretKey": "another-secret"}
    answer = await posted(owner, page, page, wrong)
    assert answer.status_code == 400
    assert 'value="soon"' in answer.text
    assert "another-secret" not in answer.text
    other = {**FIELDS, "baseUrl": "https://elsewhere.example.test/v1"}
    answer = await posted(owner, page, page, other)
    assert answer.status_code == 400
    assert "Enter the key of the new endpoint" in answer.text
    assert await key_of(space) == KEY
    await sent(owner, page, page, **FIELDS, removeKey="on")
    assert await key_of(space) is None
    settings = await client.get(f"{space.path}/ai/model-settings")
    assert settings.json()["data"]["enabled"] is True


async def test_a_viewer_reads_the_model(owner: Visitor, visit: Visit, space: Space) -> None:
    page = settings_of(space, "model")
    viewer = await visit(Role.VIEWER)
    assert "No model configured" in (await viewer.get(page)).text
    await sent(owner, page, page, **FIELDS, secretKey=KEY)
    shown = await viewer.get(page)
    assert "some-model" in shown.text
    assert "<form" not in shown.text.partition('<div class="panel">')[2].partition("</main>")[0]
    assert (await posted(viewer, settings_of(space), page, FIELDS)).status_code == 403
