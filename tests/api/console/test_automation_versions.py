"""Pages of versions: one alone, two compared, and an earlier one as the draft again."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.automations import create, path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "</script><img src=x onerror=alert(1)>"
FIRST = {"nodes": [{"id": "greet", "kind": "transform", "config": {"output": {"text": "Hello"}}}]}
SECOND = {
    "nodes": [
        {"id": "greet", "kind": "transform", "config": {"output": {"text": HOSTILE}}},
        {"id": "pause", "kind": "delay", "label": HOSTILE, "config": {"seconds": 1}},
    ],
    "edges": [{"from": "greet", "to": "pause"}],
}


async def two_versions(client: Client, space: Space) -> Any:
    """An automation with two versions, and the ids of these, the newer one first."""
    made = await publish(client, space, graph=FIRST)
    read(await client.patch(path_of(made), json={"graph": SECOND}))
    read(await client.post(f"{path_of(made)}/publish", json={"note": HOSTILE}))
    versions = read(await client.get(f"{path_of(made)}/versions"))["versions"]
    return path_of(made).removeprefix("/v1"), [one["id"] for one in versions]


async def test_a_version_is_shown_with_its_author_and_note(
    client: Client, space: Space, owner: Visitor
) -> None:
    path, (newer, older) = await two_versions(client, space)
    assert f"{path}/versions/{newer}" in (await owner.get(path)).text
    page = (await owner.get(f"{path}/versions/{newer}")).text
    assert "Version 2" in page
    assert "onerror=alert(1)&gt;" in page
    assert "<img src=x" not in page
    assert "to version" not in page
    assert older in page


async def test_two_versions_are_compared_in_both_directions(
    client: Client, space: Space, owner: Visitor
) -> None:
    path, (newer, older) = await two_versions(client, space)
    there = (await owner.get(f"{path}/versions/{newer}?against={older}")).text
    back = (await owner.get(f"{path}/versions/{older}?against={newer}")).text
    assert "config.output" in there
    assert there.count('class="change" data-change="added"') == 2
    assert back.count('class="change" data-change="removed"') == 2
    assert '"pause": "added"' in there
    assert '"pause": "removed"' in back
    assert "<img src=x" not in there + back
    same = (await owner.get(f"{path}/versions/{older}?against={older}")).text
    assert "No differences" in same


async def test_an_earlier_version_becomes_the_draft(
    client: Client, space: Space, owner: Visitor
) -> None:
    path, (newer, older) = await two_versions(client, space)
    answer = await owner.send_form(f"{path}/versions/{older}/restore", f"{path}/versions/{older}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/edit")
    automation = read(await client.get(f"/v1{path}"))
    assert automation["version"] == 3
    assert automation["graph"]["nodes"][0]["config"] == FIRST["nodes"][0]["config"]
    assert automation["publishedVersionId"] == newer


@pytest.mark.parametrize("role", [Role.VIEWER])
async def test_a_reader_compares_and_does_not_restore(
    app: FastAPI, client: Client, space: Space, role: Role
) -> None:
    path, (newer, older) = await two_versions(client, space)
    person, _ = await space.member(role)
    async with await signed_in(app, space, person) as reader:
        page = await reader.get(f"{path}/versions/{newer}?against={older}")
        assert (page.status_code, "Restore as draft" in page.text) == (200, False)
        assert (await reader.send_form(f"{path}/versions/{older}/restore")).status_code == 403


async def test_versions_of_other_automations_are_not_there(
    app: FastAPI, client: Client, space: Space, foreign: Space, owner: Visitor
) -> None:
    path, (newer, _) = await two_versions(client, space)
    other = await create(client, space, graph=FIRST, label="Another")
    stranger_version = other["draftVersionId"]
    assert (await owner.get(f"{path}/versions/{stranger_version}")).status_code == 404
    assert (
        await owner.get(f"{path}/versions/{newer}?against={stranger_version}")
    ).status_code == 404
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(f"{path}/versions/{newer}")).status_code == 404


async def test_notes_are_kept_and_shown_and_compared_as_text(
    client: Client, space: Space, owner: Visitor
) -> None:
    note = {"id": "n", "text": HOSTILE, "position": {"x": 0, "y": 0}, "color": "red"}
    made = await publish(client, space, graph=FIRST)
    read(await client.patch(path_of(made), json={"graph": {**FIRST, "notes": [note]}}))
    path = path_of(made).removeprefix("/v1")
    changes = (await owner.get(f"{path}/edit/changes")).text
    assert "Note <small>&lt;/script&gt;" in changes
    published = read(await client.post(f"{path_of(made)}/publish", json={}))
    assert [one["text"] for one in published["graph"]["notes"]] == [HOSTILE]
    newer, older = read(await client.get(f"{path_of(made)}/versions"))["versions"]
    pages = [
        path,
        f"{path}/versions/{newer['id']}",
        f"{path}/versions/{older['id']}?against={newer['id']}",
    ]
    for page in pages:
        text = (await owner.get(page)).text
        assert "onerror=alert(1)&gt;" in text
        assert "<img src=x" not in text
    assert 'data-change="removed"' in text
    alone = (await owner.get(f"{path}/versions/{older['id']}")).text
    assert "graph-notes" not in alone
    restored = read(await client.post(f"{path_of(made)}/versions/{newer['id']}/restore"))
    assert restored["graph"]["notes"] == published["graph"]["notes"]
