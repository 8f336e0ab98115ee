"""The editor of a draft: what is wrong and where, conflicts, and nothing typed is lost."""

import json
from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI

from api.console.automations.drafts import places_of
from api.console.automations.routes import picture_of
from models.core.access.rules import Role
from runtime.errors import Detail
from tests.support.automations import BROKEN, create, numbered, path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "</textarea></script><img src=x onerror=alert(1)>"
MANUAL = '{"kind": "manual"}'


def page_of(made: Any) -> str:
    return path_of(made).removeprefix("/v1")


def state_of(made: Any) -> dict[str, str]:
    """The hidden fields of an editor that was opened on this state."""
    return {"draftVersionId": made.get("draftVersionId", ""), "updatedAt": made["updatedAt"]}


async def sent(owner: Visitor, path: str, step: str = "", **fields: str) -> Any:
    return await owner.send_form(f"{path}/edit{step}", f"{path}/edit", None, **fields)


async def test_a_draft_is_saved_published_and_discarded(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space)
    path = page_of(made)
    written = {"graph": json.dumps(numbered(1)), "trigger": MANUAL}
    answer = await sent(owner, path, **written, **state_of(made))
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"{path}/edit?tab=json&notice=saved",
    )
    assert "Draft saved" in (await owner.get(answer.headers["location"])).text
    now = read(await client.get(path_of(made)))
    assert now["graph"]["nodes"][0]["config"] == numbered(1)["nodes"][0]["config"]
    answer = await sent(owner, path, "/publish", **written, **state_of(now), note="First")
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    now = read(await client.get(path_of(made)))
    assert (now["publishedVersionId"], "draftVersionId" in now) == (made["draftVersionId"], False)
    second = {"graph": json.dumps(numbered(2)), "trigger": MANUAL}
    assert (await sent(owner, path, **second, **state_of(now))).status_code == 303
    assert (await sent(owner, path, "/discard")).status_code == 303
    now = read(await client.get(path_of(made)))
    assert ("draftVersionId" in now, now["version"]) == (False, 1)


async def test_two_people_who_edit_do_not_overwrite_each_other_unawares(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space, graph=numbered(0))
    path = page_of(made)
    theirs = {"graph": json.dumps(numbered(1)), "trigger": MANUAL, **state_of(made)}
    assert (await sent(owner, path, **theirs)).status_code == 303
    text = json.dumps({**numbered(2), "variables": {"mine": HOSTILE}})
    answer = await sent(owner, path, graph=text, trigger=MANUAL, **state_of(made))
    assert answer.status_code == 409
    assert text in unescape(answer.text)
    assert "Overwrite" in answer.text
    assert "<img src=x" not in answer.text
    now = read(await client.get(path_of(made)))
    assert now["graph"]["nodes"][0]["config"] == numbered(1)["nodes"][0]["config"]
    assert f'value="{now["updatedAt"]}"' in answer.text
    over = await sent(owner, path, graph=text, trigger=MANUAL, **state_of(now))
    assert over.status_code == 303


@pytest.mark.parametrize(
    ("graph", "trigger", "words"),
    [
        ('{\n "nodes": [\n', MANUAL, "Line 3"),
        ("[]", MANUAL, "Enter a JSON object."),
        ('{"nodes": [{"id": "a", "kind": "pigeon"}]}', MANUAL, "Line 1"),
        ('{"knots": []}', MANUAL, "knots"),
        ('{"nodes": []}', '{"kind": "pigeon"}', "triggerConfig.kind"),
        ('{"nodes": []}', "", "triggerConfig"),
        (HOSTILE, HOSTILE, "not valid JSON"),
    ],
)
async def test_an_invalid_draft_is_shown_again_with_its_errors(
    client: Client, space: Space, owner: Visitor, graph: str, trigger: str, words: str
) -> None:
    made = await create(client, space)
    answer = await sent(
        owner, page_of(made), graph=graph, trigger=trigger, **state_of(made), note="Mine"
    )
    assert answer.status_code == 400
    assert words in unescape(answer.text)
    assert graph in unescape(answer.text)
    assert 'value="Mine"' in answer.text
    assert "<img src=x" not in answer.text
    assert read(await client.get(path_of(made)))["updatedAt"] == made["updatedAt"]


async def test_a_broken_graph_is_saved_and_not_published(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await publish(client, space)
    path = page_of(made)
    written = {"graph": json.dumps(BROKEN, indent=1), "trigger": MANUAL, **state_of(made)}
    answer = await sent(owner, path, "/publish", **written)
    assert answer.status_code == 400
    assert "nowhere" in answer.text
    assert "draftVersionId" not in read(await client.get(path_of(made)))
    assert (await sent(owner, path, **written)).status_code == 303
    assert "nowhere" in (await owner.get(f"{path}/edit")).text


async def test_a_check_draws_and_saves_nothing(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space)
    path = page_of(made)
    fields = {"graph": json.dumps(numbered(7)), "trigger": MANUAL, **state_of(made)}
    whole = await sent(owner, path, "/check", **fields)
    assert (whole.status_code, "<html" in whole.text) == (200, True)
    assert "Ready to publish" in whole.text
    assert "vue-flow" not in whole.text
    assert 'id="graph-data"' in whole.text
    fields["graph"] = "{"
    unreadable = await sent(owner, path, "/check", **fields)
    assert (unreadable.status_code, "Line 1" in unreadable.text) == (200, True)
    assert read(await client.get(path_of(made)))["updatedAt"] == made["updatedAt"]


async def test_the_editor_shows_what_publishing_changes(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space)
    path = page_of(made)
    assert "This is the first version" in (await owner.get(f"{path}/edit/changes")).text
    await client.post(f"{path_of(made)}/publish", json={})
    assert "No differences" in (await owner.get(f"{path}/edit/changes")).text
    content = numbered(2)
    content["nodes"][0]["label"] = HOSTILE
    await client.patch(path_of(made), json={"graph": content})
    changes = (await owner.get(f"{path}/edit/changes")).text
    assert "Changes since version 1" in changes
    assert HOSTILE not in changes
    assert HOSTILE in unescape(changes)


async def test_the_canvas_asks_the_api_in_the_session_of_a_browser(
    app: FastAPI, client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space)
    path = path_of(made)
    token = {"X-CSRF-Token": await owner.token(f"{page_of(made)}/edit"), "Accept": "*/*"}
    body = {"graph": numbered(3), "expectedDraftVersionId": made["draftVersionId"]}
    for lacking in ({"X-CSRF-Token": ""}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await owner.patch(path, json=body, headers={**token, **lacking})
        assert answer.status_code in {401, 403}
    saved = await owner.patch(path, json=body, headers={**token, "If-Match": made["updatedAt"]})
    assert read(saved)["graph"]["nodes"][0]["config"] == numbered(3)["nodes"][0]["config"]
    late = await owner.patch(path, json=body, headers={**token, "If-Match": made["updatedAt"]})
    assert late.status_code == 409
    assert read(await owner.get(path, headers=token))["id"] == made["id"]
    assert read(await owner.post(f"{path}/validate", json={}, headers=token))["valid"] is True
    assert read(await owner.post(f"{path}/publish", json={}, headers=token))["version"] == 1
    run = read(await owner.post(f"{path}/test-run", json={"simulate": True}, headers=token))
    assert read(await owner.get(f"{path}/runs/{run['id']}", headers=token))["source"] == "test"
    assert [one["id"] for one in read(await owner.get(f"{path}/runs", headers=token))["runs"]] == [
        run["id"]
    ]
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        theirs = {"X-CSRF-Token": await reader.token("/"), "Accept": "*/*"}
        assert (await reader.patch(path, json=body, headers=theirs)).status_code == 403


async def test_the_json_is_a_tab_and_the_page_without_scripts(
    client: Client, space: Space, owner: Visitor
) -> None:
    path = f"{page_of(await create(client, space))}/edit"
    canvas, texts = (await owner.get(path)).text, (await owner.get(f"{path}?tab=json")).text
    assert 'name="graph"' in canvas
    assert 'name="graph"' in texts
    assert ('data-tab="canvas"' in canvas, 'data-tab="json"' in texts) == (True, True)
    run = f"{path}?run=01a227ed-4004-70a5-a4b3-ae1988bc5eec"
    assert 'data-run="01a227ed-4004-70a5-a4b3-ae1988bc5eec"' in (await owner.get(run)).text
    assert (await owner.get(f"{path}?run=%22%3E")).status_code == 400


async def test_an_automation_without_a_graph_begins_with_one(
    client: Client, space: Space, owner: Visitor
) -> None:
    empty = {"label": "Empty"}
    made = read(await client.post(f"{space.path}/automations", json=empty), 201)
    page = await owner.get(f"{page_of(made)}/edit")
    assert (page.status_code, "greet" in page.text) == (200, True)


async def test_readers_and_strangers_do_not_edit(
    app: FastAPI, client: Client, space: Space, foreign: Space
) -> None:
    path = page_of(await create(client, space))
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        assert (await reader.get(f"{path}/edit")).status_code == 403
        assert (await reader.get(f"{path}/edit/changes")).status_code == 403
        assert 'href="' + path + '/edit"' not in (await reader.get(path)).text
        for step in ("", "/publish", "/discard"):
            answer = await reader.send_form(f"{path}/edit{step}", graph="{}", trigger=MANUAL)
            assert answer.status_code == 403
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(f"{path}/edit")).status_code == 404
        assert (await stranger.send_form(f"{path}/edit/check")).status_code == 404


def test_a_fault_is_placed_on_the_line_of_its_node() -> None:
    text = '{"nodes": [\n{"id": "a"},\n{"id": "b \\" \\n"}]}'
    first, second, third, whole = places_of(
        text,
        [
            Detail("graph.nodes.1.kind", "It is missing."),
            Detail("graph.nodes.7.kind", "It is missing."),
            Detail("graph", "The text is not JSON: Extra data at line 9, column 1."),
            Detail("graph.edges", "It is wrong."),
        ],
    )
    assert [first.line, second.line, third.line, whole.line] == [3, 0, 9, 0]


def test_a_picture_leads_in_no_circle() -> None:
    ways = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a"), ("a", "c"), ("c", "nowhere")]
    nodes = [{"id": name, "kind": "delay"} for name in "abc"]
    edges = [{"from": source, "to": target, "outcome": "always"} for source, target in ways]
    picture = picture_of({"nodes": nodes, "edges": edges})
    kept = [(edge.source, edge.target) for edge in picture.graph.edges]
    assert kept == [("a", "b"), ("b", "c"), ("a", "c")]
