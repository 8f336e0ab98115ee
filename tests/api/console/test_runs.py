"""Pages of runs and automations without a worker: lists, filters, actions, and who may do what."""

import json
import re
from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI
from markupsafe import escape

from api.kernel.limits import RateLimit
from models.core.access.rules import Role
from models.people.workspaces import add_member
from tests.support.automations import DAY, create, path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, signed_in

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
HTMX = {"HX-Request": "true"}
PART = {**HTMX, "HX-Request-Type": "partial"}


async def started(client: Client, made: Any, payload: Any = None) -> Any:
    answer = await client.post(f"{path_of(made)}/run", json={"triggerPayload": payload or {}})
    return read(answer)


async def status_of(client: Client, run: Any) -> str:
    return str(read(await client.get(f"/v1/runs/{run['id']}"))["run"]["status"])


def page_of(made: Any) -> str:
    return path_of(made).removeprefix("/v1")


def action(made: Any, run: Any, verb: str) -> str:
    return f"{page_of(made)}/runs/{run['id']}/{verb}"


def links(page: str, pattern: str) -> list[str]:
    return [unescape(one) for one in re.findall(rf'href="({pattern})"', page)]


async def test_the_list_is_filtered_and_paged_by_its_url(
    client: Client, owner: Visitor, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.console.runs.listing.PAGE", 2)
    one = await publish(client, space, label="One of them")
    other = await publish(client, space, label="The other")
    runs = [await started(client, made) for made in (one, other, one)]
    await client.post(f"{path_of(one)}/runs/{runs[0]['id']}/cancel", json={})
    path = f"/workspaces/{space.id}/runs"
    first = (await owner.get(path)).text
    assert links(first, '/runs/[^"]+') == [f"/runs/{run['id']}" for run in reversed(runs[1:])]
    (older,) = links(first, f'{path}[^"]*cursor=[^"]+')
    second = (await owner.get(older)).text
    assert links(second, '/runs/[^"]+') == [f"/runs/{runs[0]['id']}"]
    cancelled = (await owner.get(path, params={"status": "cancelled", "source": ""})).text
    assert links(cancelled, '/runs/[^"]+') == [f"/runs/{runs[0]['id']}"]
    assert "automation-runs?status=cancelled&amp;limit=" in cancelled, "the equal call"
    assert '>Queued <span class="count">2</span></a>' in cancelled
    narrowed = (await owner.get(path, params={"automationId": other["id"], "period": "day"})).text
    assert '>Queued <span class="count">1</span></a>' in narrowed
    assert links(narrowed, '/runs/[^"]+') == [f"/runs/{runs[1]['id']}"]
    none = (await owner.get(path, params={"status": "failed"})).text
    assert "No matching runs" in none
    for wrong in ("?status=gone", "?nonsense=1", "?cursor=abc", "?automationId=x"):
        answer = await owner.get(path + wrong)
        assert answer.status_code == 400
        assert "text/html" in answer.headers["content-type"]


async def test_a_part_is_refreshed_alone(client: Client, owner: Visitor, space: Space) -> None:
    await started(client, await publish(client, space))
    for path in ("", "/runs", "/automations"):
        page = f"/workspaces/{space.id}{path}"
        part = await owner.get(page, headers=PART)
        assert part.text.lstrip().startswith('<div id="live"')
        assert "<html" not in part.text
        assert "<html" in (await owner.get(page)).text


async def test_each_page_shows_the_equal_calls(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    run = await started(client, made)
    shown = {
        page_of(made): ["/run", "/publish", "/versions", "/runs", ""],
        f"/runs/{run['id']}": [f"/runs/{run['id']}/cancel", f"/runs/{run['id']}/retry"],
    }
    for path, ends in shown.items():
        page = unescape((await owner.get(path)).text)
        for end in ends:
            assert f"{path_of(made)}{end} \\\n" in page, end


async def test_pages_are_logged_as_requests(
    app: FastAPI, client: Client, owner: Visitor, space: Space
) -> None:
    await owner.get(f"/workspaces/{space.id}")
    await app.state.services.request_log.flush()
    logged = read(await client.get(f"{space.path}/api-keys/request-logs"))
    (entry,) = [one for one in logged if one["path"] == f"/workspaces/{space.id}"]
    assert (entry["principalType"], entry["status"]) == ("session", 200)
    assert entry["principalId"] == str(space.user_id)


async def test_callers_are_limited_by_session(
    app: FastAPI, owner: Visitor, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.state.services.limits, "callers", RateLimit(0.001, 2))
    path = f"/workspaces/{space.id}"
    assert [(await owner.get(path)).status_code for _ in range(3)] == [200, 200, 429]
    answer = await owner.get(path)
    assert "Too many requests" in answer.text
    assert answer.headers["retry-after"]
    async with await signed_in(app, space) as other:
        assert (await other.get(path)).status_code == 200


async def test_a_person_changes_between_workspaces(
    app: FastAPI, space: Space, foreign: Space
) -> None:
    async with space.database.transaction() as work:
        await add_member(work, foreign.id, space.user_id, Role.VIEWER)
    async with await signed_in(app, space) as person:
        page = (await person.get(f"/workspaces/{foreign.id}")).text
        menu = links(page, '/workspaces/[^/"]+')
        assert {f"/workspaces/{space.id}", f"/workspaces/{foreign.id}"} <= set(menu)
        assert "viewer" in page


async def test_empty_pages_teach(owner: Visitor, space: Space) -> None:
    assert "First steps" in (await owner.get(f"/workspaces/{space.id}")).text
    for path, word in (("/runs", "No runs yet"), ("/automations", "curl")):
        page = (await owner.get(f"/workspaces/{space.id}{path}")).text
        assert word in page
        assert f"/v1/workspaces/{space.id}/automations" in page


async def test_a_run_is_cancelled_and_run_again_by_forms(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    run = await started(client, made, {"order": 7})
    page = await owner.get(f"/runs/{run['id']}")
    assert f'action="{action(made, run, "cancel")}"' in page.text
    answer = await owner.send_form(action(made, run, "cancel"), page=f"/runs/{run['id']}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run['id']}")
    assert await status_of(client, run) == "cancelled"
    page = await owner.get(f"/runs/{run['id']}")
    fields: Any = {"from": "start", "version": "original", "idempotencyKey": form_key(page)}
    again = [
        await owner.send_form(action(made, run, "retry"), page=f"/runs/{run['id']}", **fields)
        for _ in range(2)  # pressed twice
    ]
    assert {one.status_code for one in again} == {303}
    (target,) = {one.headers["location"] for one in again}
    retried = read(await client.get(f"/v1{target}"))["run"]
    assert retried["replayOfRunId"] == run["id"]
    assert retried["triggerPayload"] == {"order": 7}


async def test_a_part_of_a_page_is_answered_with_a_message(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    run = await started(client, made)
    token = {"X-CSRF-Token": await owner.token(f"/runs/{run['id']}"), **HTMX}
    answer = await owner.post(action(made, run, "cancel"), headers=token)
    assert answer.status_code == 200
    assert 'class="toast"' in answer.text
    assert answer.headers["hx-trigger"] == "changed"
    answer = await owner.post(
        action(made, run, "nodes/wait/resume"), headers=token, data={"decision": "approved"}
    )
    assert answer.status_code == 409
    assert 'data-kind="error"' in answer.text
    assert "The run has ended" in answer.text


async def test_entered_values_are_shown_again_with_a_refusal(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    typed = '{"name": "<b>Ada</b>",\n oops}'
    answer = await owner.send_form(f"{page_of(made)}/run", page=page_of(made), payload=typed)
    assert answer.status_code == 400
    assert "payload" in answer.text
    assert "&lt;b&gt;Ada&lt;/b&gt;&#34;,\n oops}" in answer.text
    assert f'href="{page_of(made)}"' in answer.text, "the way back"
    again = re.search(r'name="csrfToken" value="([^"]+)"', answer.text)
    assert again is not None
    fields = {"csrfToken": unescape(again[1]), "payload": '{"name": "Ada"}'}
    answer = await owner.post(f"{page_of(made)}/run", data=fields)
    assert answer.status_code == 303
    run = read(await client.get(f"/v1{answer.headers['location']}"))["run"]
    assert run["triggerPayload"] == {"name": "Ada"}


async def test_an_automation_is_published_enabled_and_disabled(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await create(client, space, label="Fresh")
    page = (await owner.get(page_of(made))).text
    assert "draft" in page
    wrong = await owner.send_form(
        f"{page_of(made)}/publish", page=page_of(made), draftVersionId=str(space.id)
    )
    assert wrong.status_code == 409, "another draft than the person has seen"
    answer = await owner.send_form(
        f"{page_of(made)}/publish",
        page=page_of(made),
        draftVersionId=made["draftVersionId"],
        note="First.",
    )
    assert (answer.status_code, answer.headers["location"]) == (303, page_of(made))
    for enabled in (True, False):
        word = str(enabled).lower()
        await owner.send_form(f"{page_of(made)}/enable", page=page_of(made), enabled=word)
        found = read(await client.get(path_of(made)))
        assert found["enabled"] is enabled
        assert found["publishedVersionId"] == made["draftVersionId"]
    page = (await owner.get(page_of(made))).text
    assert "First." in page


async def test_hostile_texts_are_inert(client: Client, owner: Visitor, space: Space) -> None:
    made = await publish(client, space, label=HOSTILE)
    run = await started(client, made, {"text": HOSTILE})
    await client.patch(space.path, json={"name": HOSTILE})
    pages = [
        f"/workspaces/{space.id}", f"/workspaces/{space.id}/runs", page_of(made),
        f"/workspaces/{space.id}/automations", f"/runs/{run['id']}",
    ]  # fmt: skip
    for path in pages:
        answer = await owner.get(path)
        assert answer.status_code == 200
        assert "<img src=x" not in answer.text
        assert "<script>alert" not in answer.text
        assert "alert(1)" in answer.text
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        own = answer.text.replace(escape(HOSTILE), "").replace(json.dumps(HOSTILE), "")
        assert not re.search(r"\son\w+=|\sstyle=|<style|hx-on|javascript:", own)


# ---- who may do what


async def test_roles_are_read_with_each_request(client: Client, app: FastAPI, space: Space) -> None:
    made = await publish(client, space)
    run = await started(client, made)
    user_id, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, user_id) as member:
        page = (await member.get(f"/runs/{run['id']}")).text
        assert 'commandfor="cancel"' in page
        token = {"csrfToken": await member.token(f"/runs/{run['id']}")}
        async with space.database.transaction() as work:
            await add_member(work, space.id, user_id, Role.VIEWER)
        answer = await member.post(action(made, run, "cancel"), data=token)
        assert answer.status_code == 403
        assert "Permission denied" in answer.text
        assert await status_of(client, run) == "queued"
        assert 'commandfor="cancel"' not in (await member.get(f"/runs/{run['id']}")).text
        await space.remove(user_id)
        assert (await member.get(f"/runs/{run['id']}")).status_code == 404
        assert (await member.post(action(made, run, "cancel"), data=token)).status_code == 404
        assert (await member.get(f"/workspaces/{space.id}")).status_code == 404
        answer = await member.get("/")
        assert "Create a workspace" in answer.text


async def test_a_guest_sees_what_is_theirs(client: Client, app: FastAPI, space: Space) -> None:
    made = await publish(client, space)
    run = await started(client, made)
    user_id, _ = await space.member(Role.GUEST)
    async with await signed_in(app, space, user_id) as guest:
        assert (await guest.get(f"/workspaces/{space.id}")).status_code == 200
        listed = await guest.get(f"/workspaces/{space.id}/runs")
        assert run["id"] not in listed.text
        for path in (f"/runs/{run['id']}", page_of(made)):
            assert (await guest.get(path)).status_code == 404


async def test_a_cookie_reads_what_the_page_of_a_run_reads(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    run = await started(client, made)
    node_runs = f"{path_of(made)}/runs/{run['id']}/node-runs"
    api = {"Accept": "application/json"}
    for path in (f"/v1/runs/{run['id']}", node_runs):
        assert (await owner.get(path, headers=api)).status_code == 200
        for site in ("cross-site", "same-site", "none"):
            answer = await owner.get(path, headers={**api, "Sec-Fetch-Site": site})
            assert answer.status_code == 401
        key = {**api, "Authorization": "Bearer svc_sk_wrong"}
        assert (await owner.get(path, headers=key)).status_code == 401
    keys = f"/v1/workspaces/{space.id}/api-keys"
    assert (await owner.get(keys, headers=api)).status_code == 401


async def test_pages_are_small(client: Client, owner: Visitor, space: Space) -> None:
    made = await publish(client, space, graph=DAY)
    for _ in range(60):
        run = await started(client, made)
    sizes = {}
    for path in (
        f"/workspaces/{space.id}", f"/workspaces/{space.id}/runs", page_of(made),
        f"/runs/{run['id']}",
    ):  # fmt: skip
        page = await owner.get(path)
        files = set(re.findall(r'(?:href|src)="(/(?:console|pages)/[^"]+)"', page.text))
        weight = [len((await owner.get(file, headers={"Accept": "*/*"})).content) for file in files]
        assert all(weight)
        sizes[path] = len(page.content) + sum(weight)
    assert max(sizes.values()) < 165_000, sizes
