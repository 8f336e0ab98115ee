"""Automations over HTTP: create, list, get, edit, validate, publish, discard; who may."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from models.core.access.rules import Role, Scope
from tests.support.automations import (
    BROKEN,
    DAY,
    create,
    numbered,
    path_of,
    publish,
    read,
    refusal,
    row_counts,
)
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def test_a_new_automation_is_an_open_draft(client: Client, space: Space) -> None:
    made = await create(client, space, label="Nightly sync")
    assert made.keys() == {
        "id", "workspaceId", "itemId", "key", "label", "enabled", "versionId", "version",
        "draftVersionId", "hasUnpublishedChanges", "trigger", "triggerConfig", "graph",
        "webhookPath", "webhookSecret", "createdAt", "updatedAt", "referenceIssues",
        "scheduleNotes",
    }  # fmt: skip
    assert (made["key"], made["label"], made["enabled"]) == ("nightly_sync", "Nightly sync", False)
    assert (made["version"], made["versionId"]) == (1, made["draftVersionId"])
    assert made["hasUnpublishedChanges"] is True
    assert (made["trigger"], made["triggerConfig"]) == ("manual", {"kind": "manual"})
    assert (
        made["graph"]["nodes"][0] | {"id": "wait", "config": {"seconds": 86_400}}
        == (made["graph"]["nodes"][0])
    )
    assert made["webhookPath"].startswith("/v1/hooks/")
    assert made["webhookSecret"].startswith("whsec_")
    assert made["referenceIssues"] == []
    assert read(await client.get(path_of(made))) == made


async def test_the_keys_of_automations_are_unique(client: Client, space: Space) -> None:
    keys = [(await create(client, space, label="A b"))["key"] for _ in range(3)]
    assert keys == ["a_b", "a_b_2", "a_b_3"]
    assert (await create(client, space, key="mine"))["key"] == "mine"
    taken = await client.post(
        f"{space.path}/automations", json={"label": "x", "key": "mine", "graph": DAY}
    )
    assert refusal(taken) == (409, "conflict")
    assert (await row_counts(space))["item"] == 4


async def test_twenty_of_one_label_at_once(client: Client, space: Space) -> None:
    made = await asyncio.gather(*(create(client, space, label="Same") for _ in range(20)))
    assert len({one["key"] for one in made}) == 20


async def test_the_list_is_paged_newest_first(client: Client, space: Space) -> None:
    made = [(await create(client, space))["id"] for _ in range(5)]
    found: list[str] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        page = read(await client.get(f"{space.path}/automations", params=query))
        found += [one["id"] for one in page["automations"]]
        assert "graph" not in page["automations"][0]
        assert "webhookSecret" not in page["automations"][0]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert found == made[::-1]


async def test_the_list_stays_put_while_others_come(client: Client, space: Space) -> None:
    first = [(await create(client, space))["id"] for _ in range(3)]
    page = read(await client.get(f"{space.path}/automations", params={"limit": "2"}))
    await create(client, space)
    rest = read(
        await client.get(
            f"{space.path}/automations", params={"limit": "2", "cursor": page["cursor"]}
        )
    )
    assert [one["id"] for one in rest["automations"]] == [first[0]]


async def test_label_and_switch_act_at_once(client: Client, space: Space) -> None:
    made = await publish(client, space)
    changed = read(await client.patch(path_of(made), json={"label": "Other", "enabled": False}))
    assert (changed["label"], changed["enabled"]) == ("Other", False)
    assert "draftVersionId" not in changed
    assert changed["version"] == 1
    assert changed["updatedAt"] >= made["updatedAt"]


async def test_a_graph_goes_to_the_draft(client: Client, space: Space) -> None:
    made = await publish(client, space, graph=numbered(1))
    opened = read(await client.patch(path_of(made), json={"graph": numbered(2)}))
    assert (opened["version"], opened["publishedVersionId"]) == (2, made["publishedVersionId"])
    assert opened["hasUnpublishedChanges"] is True
    again = read(await client.patch(path_of(made), json={"graph": numbered(1)}))
    assert again["draftVersionId"] == opened["draftVersionId"]
    assert (again["version"], again["hasUnpublishedChanges"]) == (2, False)


async def test_a_trigger_goes_to_the_draft(client: Client, space: Space) -> None:
    made = await publish(client, space)
    config = {"kind": "schedule", "cron": "0 9 * * 1", "timezone": "Europe/Berlin"}
    opened = read(await client.patch(path_of(made), json={"triggerConfig": config}))
    assert (opened["trigger"], opened["version"]) == ("schedule", 2)
    assert opened["triggerConfig"] == opened["triggerConfig"] | config
    assert opened["referenceIssues"] == []


async def test_a_draft_may_have_issues(client: Client, space: Space) -> None:
    made = await create(client, space, graph=BROKEN)
    issues = {(issue["nodeId"], issue["message"]) for issue in made["referenceIssues"]}
    assert ("a", 'An edge leads to the node "nowhere", which does not exist.') in issues
    assert ("b", "config.output: is required") in issues


@pytest.mark.parametrize(
    "change",
    [{"label": "Other"}, {"enabled": True}, {"graph": numbered(2)}],
    ids=["label", "enabled", "graph"],
)
async def test_an_automation_changed_since_it_was_read_is_not_updated(
    client: Client, space: Space, change: Json
) -> None:
    made = await create(client, space, graph=numbered(1))
    stale = {"If-Match": made["updatedAt"]}
    changed = read(await client.patch(path_of(made), json=change, headers=stale))
    assert changed["updatedAt"] > made["updatedAt"]
    refused = await client.patch(path_of(made), json={"label": "Late"}, headers=stale)
    assert refusal(refused) == (409, "conflict")
    assert read(await client.get(path_of(made))) == changed
    fresh = {"If-Match": f'"{changed["updatedAt"]}"'}
    read(await client.patch(path_of(made), json={"label": "In time"}, headers=fresh))
    unreadable = await client.patch(path_of(made), json={}, headers={"If-Match": "new"})
    assert refusal(unreadable) == (400, "validation_error")


async def test_an_outdated_expectation_is_a_conflict(client: Client, space: Space) -> None:
    made = await create(client, space, graph=numbered(1))
    await publish_now(client, made)
    opened = read(await client.patch(path_of(made), json={"graph": numbered(2)}))
    before = await row_counts(space)
    outdated = {"expectedDraftVersionId": made["draftVersionId"]}
    for answer in (
        await client.patch(path_of(made), json={"graph": numbered(3), **outdated}),
        await client.patch(path_of(made), json={"label": "Other", **outdated}),
        await client.post(f"{path_of(made)}/publish", json=outdated),
    ):
        assert refusal(answer) == (409, "conflict")
        assert "Read the automation again" in answer.json()["message"]
    assert (await row_counts(space), read(await client.get(path_of(made)))) == (before, opened)
    right = {"expectedDraftVersionId": opened["draftVersionId"]}
    changed = read(await client.patch(path_of(made), json={"graph": numbered(3), **right}))
    assert changed["draftVersionId"] == opened["draftVersionId"]
    published = read(await client.post(f"{path_of(made)}/publish", json=right))
    assert published["publishedVersionId"] == opened["draftVersionId"]


async def publish_now(client: Client, made: Json, **body: Any) -> Json:
    published: Json = read(await client.post(f"{path_of(made)}/publish", json=body))
    return published


async def test_publish_puts_the_earlier_version_away(client: Client, space: Space) -> None:
    made = await create(client, space, graph=numbered(1))
    first = await publish_now(client, made, note="The first")
    assert first["publishedVersionId"] == made["draftVersionId"]
    assert "draftVersionId" not in first
    assert (first["hasUnpublishedChanges"], first["version"]) == (False, 1)
    await client.patch(path_of(made), json={"graph": numbered(2)})
    await publish_now(client, made)
    versions = read(await client.get(f"{path_of(made)}/versions"))["versions"]
    assert [(one["version"], one["status"], one.get("note")) for one in versions] == [
        (2, "published", None),
        (1, "archived", "The first"),
    ]
    assert refusal(await client.post(f"{path_of(made)}/publish", json={})) == (409, "conflict")
    back = await publish_now(client, made, versionId=first["publishedVersionId"])
    assert (back["version"], back["graph"]["nodes"][0]["config"]) == (1, {"output": {"number": 1}})


async def test_publishing_lists_every_issue(client: Client, space: Space) -> None:
    made = await create(client, space, graph=BROKEN)
    before = await row_counts(space)
    refused = await client.post(f"{path_of(made)}/publish", json={})
    assert refusal(refused) == (400, "validation_error")
    body = refused.json()
    assert body["message"].startswith(f"The automation has {len(body['details'])} issue(s): ")
    told = {(detail["path"], detail["message"]) for detail in body["details"]}
    assert told == {
        (f"graph.{issue['nodeId']}", issue["message"]) for issue in made["referenceIssues"]
    }
    assert await row_counts(space) == before
    assert read(await client.get(path_of(made))) == made


async def test_publish_says_where_the_trigger_is_wrong(client: Client, space: Space) -> None:
    schedule = {"kind": "schedule", "cron": "61 * * * *", "timezone": "Europe"}
    made = await create(client, space, triggerConfig=schedule)
    refused = (await client.post(f"{path_of(made)}/publish", json={})).json()
    told = [(detail["path"], detail["message"]) for detail in refused["details"]]
    assert [path for path, _ in told] == ["triggerConfig.cron", "triggerConfig.timezone"]
    assert [f"{path}: {message}" for path, message in told] == [
        issue["message"] for issue in made["referenceIssues"]
    ]
    assert refused["message"].startswith("The automation has 2 issue(s): triggerConfig.cron: ")


async def test_validating_a_graph_saves_nothing(client: Client, space: Space) -> None:
    made = await create(client, space)
    before = await row_counts(space)
    path = f"{path_of(made)}/validate"
    assert read(await client.post(path, json={})) == {"valid": True, "referenceIssues": []}
    wrong = read(await client.post(path, json={"graph": BROKEN}))
    assert (wrong["valid"], len(wrong["referenceIssues"])) == (False, 2)
    schedule = {"kind": "schedule", "cron": "99 * * * *"}
    wrong = read(await client.post(path, json={"triggerConfig": schedule}))
    assert any("cron" in issue["message"].lower() for issue in wrong["referenceIssues"])
    assert await row_counts(space) == before


async def test_a_draft_is_discarded(client: Client, space: Space) -> None:
    made = await create(client, space, graph=numbered(1))
    await publish_now(client, made)
    none = await client.post(f"{path_of(made)}/discard-draft")
    assert refusal(none) == (409, "conflict")
    await client.patch(path_of(made), json={"graph": numbered(2)})
    left = read(await client.post(f"{path_of(made)}/discard-draft"))
    assert (left.get("draftVersionId"), left["version"]) == (None, 1)
    assert left["graph"]["nodes"][0]["config"] == {"output": {"number": 1}}
    reopened = read(await client.patch(path_of(made), json={"graph": numbered(3)}))
    assert reopened["version"] == 3


@pytest.mark.parametrize("role", [Role.VIEWER, Role.COMMENTER])
async def test_viewers_read_an_automation_without_its_webhook(
    client: Client, space: Space, role: Role
) -> None:
    made = await publish(client, space)
    _, token = await space.member(role)
    reader = client.with_token(token)
    seen = read(await reader.get(path_of(made)))
    assert seen == {key: value for key, value in made.items() if not key.startswith("webhook")}
    assert read(await reader.get(f"{space.path}/automations"))["automations"][0]["id"] == made["id"]
    before = await row_counts(space)
    for method, place, body in CHANGES:
        path = place.replace("AUTOMATION", path_of(made)).replace("VERSION", made["versionId"])
        refused = await reader.request(method, path, json=body)
        assert refusal(refused) == (403, "denied"), (method, path)
    assert await row_counts(space) == before


CHANGES: list[tuple[str, str, Json | None]] = [
    ("PATCH", "AUTOMATION", {"label": "x"}),
    ("POST", "AUTOMATION/publish", {}),
    ("POST", "AUTOMATION/discard-draft", None),
    ("POST", "AUTOMATION/versions/VERSION/restore", None),
    ("POST", "AUTOMATION/run", {}),
    ("POST", "AUTOMATION/test-run", {}),
    ("POST", "AUTOMATION/run-from-node", {"nodeId": "wait"}),
    ("POST", "AUTOMATION/runs/VERSION/cancel", None),
]


async def test_the_error_for_a_missing_scope_names_the_scope(client: Client, space: Space) -> None:
    made = await publish(client, space)
    reading = client.with_token(await space.key([Scope.AUTOMATIONS_READ]))
    assert read(await reading.get(path_of(made)))["id"] == made["id"]
    writing = client.with_token(await space.key([Scope.AUTOMATIONS_WRITE]))
    for method, place, body in CHANGES:
        path = place.replace("AUTOMATION", path_of(made)).replace("VERSION", made["versionId"])
        refused = await reading.request(method, path, json=body)
        assert refusal(refused) == (403, "denied")
        assert "automations:write" in refused.json()["message"]
    for place in ("", "/versions", "/runs"):
        refused = await writing.get(f"{path_of(made)}{place}")
        assert refusal(refused) == (403, "denied")
        assert "automations:read" in refused.json()["message"]
    bare = client.with_token(await space.key([]))
    refused = await bare.post(f"{space.path}/automations", json={"label": "x", "graph": DAY})
    assert refusal(refused) == (403, "denied")
    assert "automations:write" in refused.json()["message"]


async def test_foreign_ids_answer_as_unknown_ones(
    client: Client, space: Space, foreign: Space
) -> None:
    theirs = await publish(client.with_token(foreign.token), foreign)
    before = (await row_counts(space), await row_counts(foreign))
    reads: list[tuple[str, str, Json | None]] = [
        ("GET", "AUTOMATION", None),
        ("GET", "AUTOMATION/versions", None),
        ("GET", "AUTOMATION/runs", None),
        ("POST", "AUTOMATION/validate", {}),
    ]
    for method, place, body in [*reads, *CHANGES]:
        answers = [
            await client.request(
                method,
                place.replace("AUTOMATION", f"{space.path}/automations/{id_}").replace(
                    "VERSION", theirs["versionId"]
                ),
                json=body,
            )
            for id_ in (theirs["id"], uuid4())
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
    assert (await row_counts(space), await row_counts(foreign)) == before


@pytest.mark.parametrize("place", ["versions", "runs"])
async def test_foreign_ids_below_an_automation_answer_as_unknown_ones(
    client: Client, space: Space, foreign: Space, place: str
) -> None:
    theirs = await publish(client.with_token(foreign.token), foreign)
    ours = await publish(client, space)
    answers = [
        await client.get(f"{path_of(ours)}/{place}/{id_}") for id_ in (theirs["versionId"], uuid4())
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


async def test_a_foreign_parent_answers_as_an_unknown_one(
    client: Client, space: Space, foreign: Space
) -> None:
    theirs = await publish(client.with_token(foreign.token), foreign)
    before = (await row_counts(space), await row_counts(foreign))
    body = {"label": "x", "graph": DAY}
    answers = [
        await client.post(f"{space.path}/automations", json={**body, "parentItemId": str(id_)})
        for id_ in (theirs["itemId"], uuid4())
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert (await row_counts(space), await row_counts(foreign)) == before


async def test_a_foreign_failure_automation_is_an_issue_as_an_unknown_one(
    client: Client, space: Space, foreign: Space
) -> None:
    theirs = await publish(client.with_token(foreign.token), foreign)
    before = await row_counts(foreign)
    told = [
        (await create(client, space, graph={**DAY, "failureAutomationId": str(id_)}))[
            "referenceIssues"
        ]
        for id_ in (theirs["id"], uuid4())
    ]
    assert told[0] == told[1] != []
    assert (await row_counts(space))["automation"] == len(told)
    assert await row_counts(foreign) == before


async def test_a_graph_with_an_email_is_warned_of_before_it_is_published(
    client: Client, space: Space
) -> None:
    """The platform of this test has no mail server."""
    config = {"to": ["ada@example.com"], "subject": "Hello", "body": "Hello"}
    graph = {"nodes": [{"id": "tell", "kind": "send_email", "config": config}], "edges": []}
    made = await create(client, space, graph=graph)
    checked = read(await client.post(f"{path_of(made)}/validate", json={"graph": graph}))
    assert checked["valid"]
    for issues in (checked["referenceIssues"], made["referenceIssues"]):
        (issue,) = issues
        assert (issue["nodeId"], issue["severity"]) == ("tell", "warning")
        assert "No mail server is configured" in issue["message"]
    published = read(await client.post(f"{path_of(made)}/publish", json={}))
    assert published["publishedVersionId"]


async def test_an_action_that_sends_an_email_is_a_warning_without_a_mail_server(
    client: Client, space: Space
) -> None:
    letter = {"to": ["ada@example.com"], "subject": "Hello", "body": "Hello"}
    steps = {"steps": [{"id": "one", "kind": "send_email", "config": letter}]}
    ids = []
    for number, (kind, config) in enumerate(
        [("send_email", letter), ("sequence", steps), ("transform", {"output": {}})]
    ):
        body = {"label": f"Action {number}", "kind": kind, "config": config}
        ids.append(read(await client.post(f"{space.path}/actions", json=body), 201)["id"])
    nodes = [
        {"id": f"n{number}", "kind": "action", "actionId": id_} for number, id_ in enumerate(ids)
    ]
    made = await create(client, space, graph={"nodes": nodes, "edges": []})
    found = [(one["nodeId"], one["severity"]) for one in made["referenceIssues"]]
    assert found == [("n0", "warning"), ("n1", "warning")]
