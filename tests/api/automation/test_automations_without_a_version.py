"""Automations that have no version yet: made without a graph, or left so by a discarded draft."""

from typing import Any

import pytest

from tests.support.automations import create, numbered, path_of, read, refusal
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]

OF_A_VERSION = {"version", "versionId", "draftVersionId", "trigger", "triggerConfig", "graph"}


async def bare(client: Client, space: Space, **body: Any) -> Json:
    """An automation made without a graph."""
    path = f"{space.path}/automations"
    made: Json = read(await client.post(path, json={"label": "Later", **body}), 201)
    return made


async def test_it_is_shown_without_what_a_version_says(client: Client, space: Space) -> None:
    made = await bare(client, space, enabled=True)
    whole = await create(client, space)
    assert whole.keys() - made.keys() == OF_A_VERSION
    assert (made["hasUnpublishedChanges"], made["referenceIssues"]) == (False, [])
    assert read(await client.get(path_of(made))) == made
    listed = read(await client.get(f"{space.path}/automations"))["automations"]
    assert [one["id"] for one in listed] == [whole["id"], made["id"]]
    assert read(await client.get(f"{path_of(made)}/versions"))["versions"] == []
    renamed = read(await client.patch(path_of(made), json={"label": "Soon", "enabled": False}))
    assert (renamed["label"], renamed["enabled"], "graph" in renamed) == ("Soon", False, False)
    assert read(await client.delete(path_of(made)))["label"] == "Soon"


RUNS = ("test-run", "run", "run-from-node")


@pytest.mark.parametrize("discarded", [False, True])
async def test_nothing_runs_before_there_is_a_version(
    client: Client, space: Space, discarded: bool
) -> None:
    made = await bare(client, space, enabled=True)
    if discarded:
        made = await create(client, space, graph=numbered(1), enabled=True)
        left = read(await client.post(f"{path_of(made)}/discard-draft"))
        assert made.keys() - left.keys() == OF_A_VERSION
        assert left["hasUnpublishedChanges"] is False
    for run in RUNS:
        body = {"nodeId": "a"} if run == "run-from-node" else {}
        answer = await client.post(f"{path_of(made)}/{run}", json=body)
        assert refusal(answer) == (409, "run_error"), run
    assert (await client.post(made["webhookPath"], json={})).status_code == 404


async def test_operations_that_need_a_version_say_that_it_is_missing(
    client: Client, space: Space
) -> None:
    made = await bare(client, space)
    path = path_of(made)
    for method, place, body, refused in (
        ("POST", "publish", {}, (409, "conflict")),
        ("POST", "discard-draft", None, (409, "conflict")),
        ("GET", "export", None, (409, "conflict")),
        ("GET", "schedule-preview", None, (400, "validation_error")),
        ("POST", "validate", {}, (400, "validation_error")),
        ("PATCH", "", {"triggerConfig": {"kind": "manual"}}, (400, "validation_error")),
        ("PATCH", "", {"trigger": "manual"}, (400, "validation_error")),
    ):
        answer = await client.request(method, f"{path}/{place}".rstrip("/"), json=body)
        assert refusal(answer) == refused, place
    assert read(await client.get(path)) == made


async def test_its_first_draft_is_like_any_other(client: Client, space: Space) -> None:
    made = await bare(client, space)
    path = path_of(made)
    checked = read(await client.post(f"{path}/validate", json={"graph": numbered(1)}))
    assert checked == {"valid": True, "referenceIssues": []}
    drafted = read(await client.patch(path, json={"graph": numbered(1)}))
    assert (drafted["version"], drafted["trigger"]) == (1, "manual")
    read(await client.post(f"{path}/discard-draft"))
    (archived,) = read(await client.get(f"{path}/versions"))["versions"]
    assert (archived["version"], archived["status"]) == (1, "archived")
    restored = read(await client.post(f"{path}/versions/{archived['id']}/restore"))
    assert (restored["version"], restored["graph"]) == (2, drafted["graph"])
    published = read(await client.post(f"{path}/publish", json={}))
    assert published["publishedVersionId"] == restored["draftVersionId"]


async def test_a_copy_has_no_version_either(client: Client, space: Space) -> None:
    made = await bare(client, space)
    copied = read(await client.post(f"{path_of(made)}/duplicate"), 201)
    assert (copied["label"], copied.keys() & OF_A_VERSION) == ("Later copy", set())


@pytest.mark.parametrize(
    "body", [{"trigger": "manual"}, {"triggerConfig": {"kind": "manual"}}, {"triggerConfig": {}}]
)
async def test_a_trigger_without_a_graph_is_refused(
    client: Client, space: Space, body: Json
) -> None:
    answer = await client.post(f"{space.path}/automations", json={"label": "Later", **body})
    assert refusal(answer) == (400, "validation_error")
