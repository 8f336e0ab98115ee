"""Runs over HTTP: start, replay, list, read, cancel; what is refused changes nothing.

No worker need be there: graphs that wait a day give runs that stay open either way.
"""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.support.automations import (
    BROKEN,
    create,
    path_of,
    publish,
    read,
    refusal,
    row_counts,
)
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]
STARTS: list[tuple[str, Json]] = [
    ("run", {"triggerPayload": {"n": 1}}),
    ("test-run", {"payload": {"n": 1}}),
    ("run-from-node", {"nodeId": "wait", "triggerPayload": {"n": 1}}),
]
OPEN = {"queued", "running", "waiting"}


@pytest.mark.parametrize(("operation", "body"), STARTS)
async def test_the_answer_is_the_queued_run(
    client: Client, space: Space, operation: str, body: Json
) -> None:
    made = await publish(client, space)
    run = read(await client.post(f"{path_of(made)}/{operation}", json=body))
    assert run.keys() - {"startNodeId"} == {
        "id", "automationId", "automationVersionId", "workspaceId", "status", "source",
        "createdAt", "triggerPayload", "metadata", "nodeRuns",
    }  # fmt: skip
    assert (run["status"], run["triggerPayload"]) == ("queued", {"n": 1})
    source = {"run": "manual", "test-run": "test", "run-from-node": "from_node"}[operation]
    assert run["source"] == source
    assert run.get("startNodeId") == ("wait" if operation == "run-from-node" else None)
    assert run["automationVersionId"] == made["publishedVersionId"]
    (first,) = run["nodeRuns"]
    places = ("runId", "nodeId", "nodeKind", "scopeKey", "status", "attempt")
    assert [first[name] for name in places] == [run["id"], "wait", "delay", "", "queued", 0]
    workflow_id = f"automation-run/{run['id']}"
    assert run["metadata"]["temporalWorkflowId"] == workflow_id
    assert run["metadata"]["temporal"]["workflowId"] == workflow_id
    assert run["metadata"]["progress"] == {"done": 0, "total": 1}
    seen = read(await client.get(f"{path_of(made)}/runs/{run['id']}"))
    assert seen["status"] in OPEN
    assert seen["triggerPayload"] == {"n": 1}
    assert [one["id"] for one in seen["nodeRuns"]] == [first["id"]]


async def test_the_body_of_a_start_may_be_left_out(client: Client, space: Space) -> None:
    made = await publish(client, space)
    for operation in ("run", "test-run"):
        run = read(await client.post(f"{path_of(made)}/{operation}"))
        assert run["triggerPayload"] == {}


async def test_the_error_of_an_automation_that_cannot_run_says_what_to_do(
    client: Client, space: Space
) -> None:
    draft = await create(client, space, enabled=True)
    disabled = await publish(client, space)
    await client.patch(path_of(disabled), json={"enabled": False})
    before = await row_counts(space)
    for made, words in ((draft, "Publish its draft"), (disabled, "Enable it")):
        for operation, body in (("run", {}), ("run-from-node", {"nodeId": "wait"})):
            refused = await client.post(f"{path_of(made)}/{operation}", json=body)
            assert refusal(refused) == (409, "run_error")
            assert refused.json()["_tag"] == "ApiRunError"
            assert words in refused.json()["message"]
    assert await row_counts(space) == before
    for made in (draft, disabled):
        assert read(await client.post(f"{path_of(made)}/test-run", json={}))["status"] == "queued"


async def test_a_broken_draft_cannot_be_tested(client: Client, space: Space) -> None:
    made = await create(client, space, graph=BROKEN)
    before = await row_counts(space)
    refused = await client.post(f"{path_of(made)}/test-run", json={})
    assert refusal(refused) == (400, "validation_error")
    assert len(refused.json()["details"]) == 2
    assert await row_counts(space) == before


async def test_a_replay_is_of_a_run_of_this_automation(client: Client, space: Space) -> None:
    made = await publish(client, space)
    other = await publish(client, space)
    run = read(await client.post(f"{path_of(other)}/run", json={}))
    answers = [
        await client.post(
            f"{path_of(made)}/run-from-node", json={"nodeId": "wait", "replayOfRunId": str(id_)}
        )
        for id_ in (run["id"], uuid4())
    ]
    assert {refusal(answer) for answer in answers} == {(404, "not_found")}
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({}, "triggerPayload"),
        ({"n": "1"}, "triggerPayload.n"),
        ({"n": 1, "m": 2}, "triggerPayload"),
    ],
)
async def test_a_payload_is_held_against_the_input_schema(
    client: Client, space: Space, payload: Json, path: str
) -> None:
    schema = {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }
    config = {"kind": "manual", "inputSchema": schema}
    made = await publish(client, space, triggerConfig=config)
    before = await row_counts(space)
    refused = await client.post(f"{path_of(made)}/run", json={"triggerPayload": payload})
    assert refusal(refused) == (400, "validation_error")
    assert refused.json()["details"][0]["path"] == path
    assert await row_counts(space) == before
    assert read(await client.post(f"{path_of(made)}/run", json={"triggerPayload": {"n": 1}}))


async def test_a_refused_payload_is_not_sent_back(client: Client, space: Space) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    made = await publish(client, space, triggerConfig={"kind": "manual", "inputSchema": schema})
    body = {"triggerPayload": {"n": "x" * 100_000}}
    refused = await client.post(f"{path_of(made)}/run", json=body)
    assert refusal(refused) == (400, "validation_error")
    assert len(refused.content) < 2_000


async def test_a_payload_is_counted_in_bytes(client: Client, space: Space) -> None:
    made = await publish(client, space)
    text = "ж" * 400_000
    body = f'{{"triggerPayload": {{"text": "{text}"}}}}'.encode()
    headers = {"Content-Type": "application/json"}
    run = read(await client.post(f"{path_of(made)}/run", content=body, headers=headers))
    assert run["triggerPayload"] == {"text": text}


@pytest.mark.parametrize(("operation", "body"), STARTS)
async def test_a_repeated_start_is_one_run(
    client: Client, space: Space, operation: str, body: Json
) -> None:
    made = await publish(client, space)
    headers = {"Idempotency-Key": uuid4().hex}
    path = f"{path_of(made)}/{operation}"
    first = await client.post(path, json=body, headers=headers)
    again = await client.post(path, json=body, headers=headers)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    other = await client.post(path, json={**body, "triggerPayload": {"n": 2}}, headers=headers)
    assert refusal(other) == (422, "conflicting_mutation")
    assert (await row_counts(space))["automation_run"] == 1


async def test_fifty_starts_at_once_with_one_key_are_one_run(client: Client, space: Space) -> None:
    made = await publish(client, space)
    headers = {"Idempotency-Key": uuid4().hex}
    answers = await asyncio.gather(
        *(client.post(f"{path_of(made)}/run", json={}, headers=headers) for _ in range(50))
    )
    bodies = {answer.content for answer in answers if answer.status_code == 200}
    assert len(bodies) == 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    for answer in answers:
        if answer.status_code == 409:
            assert (answer.json()["error"], answer.headers["retry-after"]) == ("in_progress", "2")
    assert (await row_counts(space))["automation_run"] == 1


async def test_fifty_starts_without_a_key_are_fifty_runs(client: Client, space: Space) -> None:
    made = await publish(client, space)
    answers = await asyncio.gather(
        *(client.post(f"{path_of(made)}/run", json={}) for _ in range(50))
    )
    assert len({read(answer)["id"] for answer in answers}) == 50
    assert (await row_counts(space))["automation_run"] == 50


async def test_a_refused_start_stays_refused_under_its_key(client: Client, space: Space) -> None:
    made = await create(client, space, enabled=True)
    headers = {"Idempotency-Key": uuid4().hex}
    refused = await client.post(f"{path_of(made)}/run", json={}, headers=headers)
    assert refusal(refused) == (409, "run_error")
    await client.post(f"{path_of(made)}/publish", json={})
    again = await client.post(f"{path_of(made)}/run", json={}, headers=headers)
    assert (again.status_code, again.content) == (409, refused.content)
    assert read(await client.post(f"{path_of(made)}/run", json={}))


async def test_a_repeated_cancel_gives_the_first_answer(client: Client, space: Space) -> None:
    made = await publish(client, space)
    run = read(await client.post(f"{path_of(made)}/run", json={}))
    headers = {"Idempotency-Key": uuid4().hex}
    path = f"{path_of(made)}/runs/{run['id']}/cancel"
    first = await client.post(path, headers=headers)
    again = await client.post(path, headers=headers)
    without = await client.post(path)
    assert read(first)["status"] == "cancelled"
    assert read(first)["completedAt"] is not None
    assert first.content == again.content == without.content
    seen = await client.get(f"{path_of(made)}/runs/{run['id']}")
    assert seen.content == first.content


async def test_a_run_is_found_under_its_own_automation(
    client: Client, space: Space, foreign: Space
) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    stranger = client.with_token(foreign.token)
    theirs = await publish(stranger, foreign)
    elsewhere = read(await client.post(f"{path_of(other)}/run", json={}))
    abroad = read(await stranger.post(f"{path_of(theirs)}/run", json={}))
    for use in (
        lambda id_: client.get(f"{path_of(made)}/runs/{id_}"),
        lambda id_: client.post(f"{path_of(made)}/runs/{id_}/cancel"),
    ):
        answers = [await use(id_) for id_ in (elsewhere["id"], abroad["id"], uuid4(), "no-id")]
        assert {refusal(answer) for answer in answers} == {(404, "not_found")}
        assert len({answer.content for answer in answers}) == 1
    for maker, id_, path in (
        (client, elsewhere["id"], path_of(other)),
        (stranger, abroad["id"], path_of(theirs)),
    ):
        assert read(await maker.get(f"{path}/runs/{id_}"))["status"] in OPEN


async def test_last_triggered_is_the_newest_run_that_was_no_test(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    await client.post(f"{path_of(made)}/test-run", json={})
    assert "lastTriggeredAt" not in read(await client.get(path_of(made)))
    run = read(await client.post(f"{path_of(made)}/run", json={}))
    assert read(await client.get(path_of(made)))["lastTriggeredAt"] == run["createdAt"]
