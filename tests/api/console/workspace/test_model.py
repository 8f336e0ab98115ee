"""Usage, the audit log and the language model by their pages."""

import re
from html import unescape
from uuid import UUID

import pytest
from fastapi import FastAPI

from api.console.workspace.logs import in_words, phrase_of
from api.kernel.routing import Route
from api.routers.registry import ROUTERS
from models.core.access.rules import Role
from models.people.request_logs import LogEntry, append_entries
from models.people.users import display_name
from models.workspace.model_settings import open_endpoint
from runtime.clock import utc_now
from runtime.ids import new_id
from tests.support.automations import publish
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


async def test_usage_offers_no_choice_without_effect(
    owner: Visitor, space: Space, client: Client
) -> None:
    """A plan sets no limit, so the page has no form for it; the API keeps the label."""
    page = settings_of(space, "usage")
    shown = (await owner.get(page)).text
    assert "Automation runs" in shown
    assert "<select" not in shown.partition("<main")[2]
    assert (await posted(owner, page, f"{page}/plan", {"plan": "team"})).status_code in {401, 404}
    await client.patch(f"{space.path}/plan", json={"plan": "team"})
    assert (await client.get(f"{space.path}/usage")).json()["data"]["plan"] == "team"


async def test_the_audit_log_is_read_in_sentences(
    app: FastAPI, owner: Visitor, visit: Visit, space: Space, client: Client
) -> None:
    page = settings_of(space, "audit")
    assert "No changes yet" in (await owner.get(page)).text
    await visit(Role.VIEWER)
    members = (await client.get(f"{space.path}/members")).json()["data"]["members"]
    (bo,) = [one["userId"] for one in members if one["userId"] != str(space.user_id)]
    made = await publish(client, space, label=f"Orders {HOSTILE}")
    await client.get(f"{space.path}/automations")
    await client.post(f"{space.path}/{HOSTILE}", json={})
    await client.patch(space.path, json={"name": "Renamed"})
    await client.patch(space.path, json={"name": "Other"}, headers={"Prefer": "propose"})
    await client.patch(f"{space.path}/members/{bo}", json={"role": "editor"})
    await client.patch(f"{space.path}/members/{bo}", json={"role": "emperor"})
    await posted(owner, settings_of(space), settings_of(space), {"name": "", "slug": "x"})
    await app.state.services.request_log.flush()
    shown = (await owner.get(page)).text
    assert "<img" not in shown
    plain = unescape(re.sub(r"<[^>]+>", "", shown))
    async with space.database.reading() as work:
        names = [await display_name(work, id_) for id_ in (space.user_id, UUID(bo))]
    for sentence in (
        f"{names[0]} changed the role of {names[1]} to Editor",
        f"{names[0]} tried to change the role of {names[1]}",
        f"{names[0]} updated the workspace",
        f"{names[0]} tried to update the workspace",
        f"{names[0]} proposed to update the workspace",
        "published the automation “Orders",
    ):
        assert sentence in plain, plain
    assert "API key owner" in plain
    assert f"update_member PATCH {space.path}/members/{bo}" in plain
    assert f"publish_automation POST {space.path}/automations/{made['id']}/publish" in plain
    assert f"GET {space.path}/automations" not in plain


@pytest.mark.parametrize(
    ("kind", "caller"),
    [
        ("share_link", "Visitor of a share link"),
        ("webhook", "Webhook of “Orders”"),
        ("system", "Automation of “Orders”"),
        ("session", "Former member"),
        ("api_key", "Former member"),
    ],
)
async def test_the_audit_log_names_callers_without_membership(
    owner: Visitor, space: Space, client: Client, kind: str, caller: str
) -> None:
    made = await publish(client, space, label="Orders")
    is_automation = kind in {"webhook", "system"}
    entry = LogEntry(
        workspace_id=space.id,
        principal_type=kind,
        principal_id=UUID(made["id"]) if is_automation else new_id(),
        api_key_id=None,
        method="POST",
        path=f"/v1/hooks/{made['id']}",
        status=202,
        idempotency_key=None,
        error=None,
        duration_ms=1,
        created_at=utc_now(),
    )
    async with space.database.transaction() as work:
        await append_entries(work, [entry])
    assert f"<b>{caller}</b>" in unescape((await owner.get(settings_of(space, "audit"))).text)


@pytest.mark.parametrize(
    ("phrase", "target", "sentence"),
    [
        ("Change the role of a member. You cannot.", ("member", "Bo"), "changed the role of Bo"),
        (
            "Delete a form with its answers.",
            ("form", "“F”"),
            "deleted the form “F”",
        ),
        ("Enable or disable a provider for all.", None, "enabled or disabled a provider for all"),
        (
            "Pause, resume or cancel an operation.",
            None,
            "paused, resumed or cancelled an operation",
        ),
        ("Create a secret, or replace its value.", None, "created a secret"),
        ("Put an action into the trash, for 30 days.", None, "put an action into the trash"),
        ("Change the name, the slug or the icon.", None, "changed the name, the slug or the icon"),
        ("Create a workspace and become its owner.", None, "created a workspace"),
        (
            "Retry a run; it begins again.",
            ("automation", "“A”"),
            "retried a run of the automation “A”",
        ),
        ("Run an automation now.", ("automation", "“A”"), "ran the automation “A”"),
        (
            "Retry a failed or cancelled run.",
            ("run", "“R”"),
            "retried the failed or cancelled run “R”",
        ),
        ("Revoke an API key immediately.", ("API key", "“K”"), "revoked the API key “K”"),
        ("Delete one's own comment.", ("comment", "“C”"), "deleted the comment “C”"),
        ("Submit an answer: once.", None, "submitted an answer"),
        ("Roll back an ended run, up to 30 days.", None, "rolled back an ended run"),
    ],
)
def test_operations_in_the_past(phrase: str, target: tuple[str, str] | None, sentence: str) -> None:
    assert in_words(phrase, target, succeeded=True) == sentence


_NO_DEEDS = {"had", "let", "left", "told", "showed", "looked", "brought", "gave", "took", "went"}


@pytest.mark.parametrize(
    "route",
    [
        route
        for router in ROUTERS
        for route in router.routes
        if route.operation.method != "GET"
        and ("{workspaceId}" in route.path or route.operation.access.resource)
    ],
    ids=lambda route: route.operation.name,
)
def test_every_change_is_a_deed(route: Route) -> None:
    """The sentence of an operation begins with a verb of the field, and is short."""
    sentence = in_words(phrase_of(route.operation), None, succeeded=True)
    assert sentence.split()[0] not in _NO_DEEDS, sentence
    assert 1 < len(sentence.split()) < 22, sentence


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
