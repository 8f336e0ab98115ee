"""Resuming nodes over HTTP: rights, refusals, and the signals to Temporal."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cli.supervisor.development import DevelopmentIssuer
from models.automation.waits.links import NodeAddress, resume_path
from models.core.access.rules import Role, Scope
from runtime.database import UnitOfWork
from runtime.temporal import outbox
from runtime.temporal.outbox import Intent
from tests.support.automations import read, refusal, row_counts
from tests.support.client import Client
from tests.support.parked import approval, run_of
from tests.support.spaces import Space

Json = dict[str, Any]

APPROVE = {"decision": "approved"}
REJECT = {"decision": "rejected"}


EVENT: Json = {"nodes": [{"id": "hear", "kind": "wait_event", "config": {"eventKey": "paid"}}]}

Signals = Callable[[Space], list[Json]]


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> Signals:
    """What a workspace has written to be signalled; a relay may have delivered it meanwhile."""
    written: list[Json] = []
    append_all = outbox.append_all

    async def noted(work: UnitOfWork, intents: Sequence[Any]) -> None:
        written.extend(intents)
        await append_all(work, intents)

    monkeypatch.setattr(outbox, "append_all", noted)

    def of(space: Space) -> list[Json]:
        return [
            one["request"]
            for one in written
            if (one["workspace_id"], one["intent"]) == (space.id, Intent.SIGNAL)
        ]

    return of


async def test_an_assignee_without_scopes_decides(
    client: Client, space: Space, signals: Signals, issuer: DevelopmentIssuer
) -> None:
    user_id, token = await space.member(Role.GUEST)
    path = await run_of(client, space, approval(assignees=[str(user_id)]))
    by_key = await client.with_token(token).post(f"{path}/nodes/ask/resume", json=APPROVE)
    assert refusal(by_key) == (403, "denied")
    assert "automations:write" in by_key.text
    guest = client.with_token(await space.session(user_id, issuer))
    run = read(await guest.post(f"{path}/nodes/ask/resume", json={**APPROVE, "comment": "Ok."}))
    # Who may not read the automation sees the node and nothing else.
    assert (run["status"], run["triggerPayload"], run.get("output")) == ("waiting", {}, None)
    (node,) = run["nodeRuns"]
    assert (node["nodeId"], node["metadata"]["wait"]["resolution"]) == ("ask", "approved")
    assert refusal(await guest.get(path)) == (404, "not_found")
    shown = read(await client.get(path))
    (decision,) = shown["nodeRuns"][0]["metadata"]["wait"]["decisions"]
    assert (decision["userId"], decision["comment"]) == (str(user_id), "Ok.")
    assert signals(space) == [
        {
            "workflowId": run["metadata"]["temporalWorkflowId"],
            "signal": "resolve_node",
            "arguments": ["ask", ""],
        }
    ]


async def test_a_member_without_assignment_needs_the_scope_and_edit_access_to_resume(
    client: Client, space: Space
) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    path = await run_of(client, space, approval(assignees=[str(user_id)], allowSelf=True))
    resume = f"{path}/nodes/ask/resume"
    _, viewer = await space.member(Role.VIEWER)
    before = await row_counts(space)
    answer = await client.with_token(viewer).post(resume, json=APPROVE)
    assert refusal(answer) == (403, "denied")
    assert "automations:write" in answer.text
    lacking = await space.key([one for one in Scope if one is not Scope.AUTOMATIONS_WRITE])
    assert refusal(await client.with_token(lacking).post(resume, json=APPROVE)) == (403, "denied")
    assert await row_counts(space) == before
    _, editor = await space.member(Role.EDITOR)
    run = read(await client.with_token(editor).post(resume, json=APPROVE))
    assert run["nodeRuns"][0]["metadata"]["wait"]["resolution"] == "approved"


async def test_the_member_who_started_a_run_does_not_decide_it(
    client: Client, space: Space, signals: Signals
) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    path = await run_of(client, space, approval(assignees=[str(user_id)]))
    answer = await client.post(f"{path}/nodes/ask/resume", json=APPROVE)
    assert refusal(answer) == (403, "denied")
    assert signals(space) == []


async def test_a_node_of_another_workspace_is_not_resumed(
    client: Client, space: Space, foreign: Space
) -> None:
    config = {"assignees": [str(space.user_id)], "allowSelf": True}
    path = await run_of(client, space, approval(**config))
    theirs = client.with_token(foreign.token)
    path_of_theirs = await run_of(theirs, foreign, approval(assignees=[str(foreign.user_id)]))
    automation, run_id = path.split("/runs/")
    foreign_automation, foreign_run = path_of_theirs.split("/runs/")
    foreign_id = foreign_automation.rpartition("/")[2]
    unknown = uuid.uuid4()
    for other in (
        f"{automation}/runs/{foreign_run}/nodes/ask",
        f"{automation}/runs/{unknown}/nodes/ask",
        f"{space.path}/automations/{foreign_id}/runs/{run_id}/nodes/ask",
        f"{space.path}/automations/{foreign_id}/runs/{foreign_run}/nodes/ask",
        f"{space.path}/automations/{unknown}/runs/{run_id}/nodes/ask",
        f"{path}/nodes/other",
        f"{path_of_theirs}/nodes/ask",
    ):
        answer = await client.post(f"{other}/resume", json=APPROVE)
        assert refusal(answer) == (404, "not_found"), other
    answer = await client.post(f"{path}/nodes/ask/resume", json={**APPROVE, "scopeKey": "l:0"})
    assert refusal(answer) == (404, "not_found")


async def test_a_wrong_state_is_a_conflict(client: Client, space: Space, signals: Signals) -> None:
    config = {"assignees": [str(space.user_id)], "allowSelf": True}
    path = await run_of(client, space, approval(**config))
    resume = f"{path}/nodes/ask/resume"
    read(await client.post(resume, json=APPROVE))
    read(await client.post(resume, json=APPROVE))
    answer = await client.post(resume, json={"decision": "rejected"})
    assert refusal(answer) == (409, "conflict")
    assert "approved" in answer.json()["message"]
    assert len(signals(space)) == 1
    path = await run_of(client, space, approval(**config))
    read(await client.post(f"{path}/cancel"))
    assert refusal(await client.post(f"{path}/nodes/ask/resume", json=APPROVE)) == (409, "conflict")
    made = {"nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}]}
    path = await run_of(client, space, made, park=False)
    assert refusal(await client.post(f"{path}/nodes/a/resume", json={})) == (409, "conflict")


async def test_the_first_that_comes_early_counts(client: Client, space: Space) -> None:
    path = await run_of(client, space, EVENT, park=False)
    resume = f"{path}/nodes/hear/resume"
    read(await client.post(resume, json={"data": {"x": 1}}))
    assert refusal(await client.post(resume, json={"data": {"x": 2}})) == (409, "conflict")
    read(await client.post(resume, json={"data": {"x": 1}}))
    url = resume_path(space.keys, NodeAddress(uuid.UUID(path.rpartition("/")[2]), "hear"))
    anybody = client.with_token(None)
    assert refusal(await anybody.post(url, json={"x": 2})) == (409, "conflict")


async def test_one_of_many_urls_called_early_at_once_counts(client: Client, space: Space) -> None:
    path = await run_of(client, space, EVENT, park=False)
    url = resume_path(space.keys, NodeAddress(uuid.UUID(path.rpartition("/")[2]), "hear"))
    anybody = client.with_token(None)
    answers = await asyncio.gather(*(anybody.post(url, json={"n": n}) for n in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 9]
    (first,) = [n for n, answer in enumerate(answers) if answer.status_code == 200]
    assert read(await anybody.post(url, json={"n": first})) == {"resumed": 0}


async def test_data_that_a_filter_refuses_is_refused_early(client: Client, space: Space) -> None:
    config = {"filter": "data.size > 10"}
    graph = {"nodes": [{"id": "hear", "kind": "wait_event", "config": config}]}
    resume = f"{await run_of(client, space, graph, park=False)}/nodes/hear/resume"
    answer = await client.post(resume, json={"data": {"size": 3}})
    assert refusal(answer) == (400, "validation_error")
    read(await client.post(resume, json={"data": {"size": 11}}))


async def test_each_member_decides_once_before_the_node_waits(client: Client, space: Space) -> None:
    _, token = await space.member(Role.EDITOR)
    other = client.with_token(token)
    message = {"type": "template", "value": "About {{run.id}}"}
    config = {"role": "editor", "required": 2, "allowSelf": True, "message": message}
    path = await run_of(client, space, approval(**config), park=False)
    resume = f"{path}/nodes/ask/resume"
    read(await client.post(resume, json=APPROVE))
    assert refusal(await client.post(resume, json=REJECT)) == (409, "conflict")
    read(await client.post(resume, json=APPROVE))
    read(await other.post(resume, json=APPROVE))
    # Two have approved, and that is all it takes.
    _, third = await space.member(Role.EDITOR)
    assert refusal(await client.with_token(third).post(resume, json=REJECT)) == (409, "conflict")


async def test_a_response_that_cannot_count_is_refused_before_the_node_waits(
    client: Client, space: Space
) -> None:
    form = [{"key": "amount", "label": "Amount", "kind": "number", "required": True}]
    assignee = {"type": "expression", "value": "[run.id]"}
    path = await run_of(client, space, approval(assignees=assignee, form=form), park=False)
    resume = f"{path}/nodes/ask/resume"
    assert refusal(await client.post(resume, json=APPROVE)) == (403, "denied")
    _, token = await space.member(Role.EDITOR)
    other = client.with_token(token)
    for data in ({}, {"amount": "3"}):
        answer = await other.post(resume, json={**APPROVE, "data": data})
        assert refusal(answer) == (400, "validation_error")
        assert [detail["path"] for detail in answer.json()["details"]] == ["data.amount"]
    read(await other.post(resume, json={**APPROVE, "data": {"amount": 3}}))


async def test_a_response_that_depends_on_the_run_is_checked_when_the_node_waits(
    client: Client, space: Space
) -> None:
    by_self = {"type": "expression", "value": "run.source == 'test'"}
    path = await run_of(client, space, approval(role="viewer", allowSelf=by_self), park=False)
    for body in (APPROVE, REJECT):
        read(await client.post(f"{path}/nodes/ask/resume", json=body))


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, ["decision"]),
        ({"decision": "perhaps"}, ["decision"]),
        ({**APPROVE, "data": {}}, ["data.amount"]),
        ({**APPROVE, "data": {"amount": "3"}}, ["data.amount"]),
        ({**APPROVE, "data": {"amount": 3, "other": 1}}, ["data.other"]),
        ({**APPROVE, "data": [3]}, ["data"]),
        ({**APPROVE, "unknown": 1}, ["unknown"]),
    ],
)
async def test_the_error_of_a_bad_resume_body_names_its_place(
    client: Client, space: Space, signals: Signals, body: Json, paths: list[str]
) -> None:
    form = [{"key": "amount", "label": "Amount", "kind": "number", "required": True}]
    config = {"assignees": [str(space.user_id)], "allowSelf": True, "form": form}
    path = await run_of(client, space, approval(**config))
    answer = await client.post(f"{path}/nodes/ask/resume", json=body)
    assert refusal(answer) == (400, "validation_error")
    assert [detail["path"] for detail in answer.json()["details"]] == paths
    assert signals(space) == []


async def test_a_repeated_call_has_the_first_answer(
    client: Client, space: Space, signals: Signals
) -> None:
    path = await run_of(client, space, EVENT)
    headers = {"Idempotency-Key": "once"}
    sent: dict[str, Any] = {"json": {"data": {"n": 1}}, "headers": headers}
    first = await client.post(f"{path}/nodes/hear/resume", **sent)
    again = await client.post(f"{path}/nodes/hear/resume", **sent)
    assert (first.status_code, first.content) == (200, again.content)
    assert len(signals(space)) == 1


async def test_a_url_resumes_without_an_account(
    client: Client, space: Space, signals: Signals
) -> None:
    path = await run_of(client, space, EVENT)
    (node,) = read(await client.get(path))["nodeRuns"]
    url = node["metadata"]["wait"]["resumeUrl"]
    _, viewer = await space.member(Role.VIEWER)
    (seen,) = read(await client.with_token(viewer).get(path))["nodeRuns"]
    assert "resumeUrl" not in seen["metadata"]["wait"]
    reader = await space.key([Scope.AUTOMATIONS_READ])
    (seen,) = read(await client.with_token(reader).get(path))["nodeRuns"]
    assert "resumeUrl" not in seen["metadata"]["wait"]
    anybody = client.with_token(None)
    assert read(await anybody.post(url, json={"amount": 3})) == {"resumed": 1}
    assert read(await anybody.post(url, json={"amount": 3})) == {"resumed": 1}
    assert refusal(await anybody.post(url, json={"amount": 4})) == (409, "conflict")
    assert len(signals(space)) == 1


async def test_a_url_may_be_called_early_and_empty(
    client: Client, space: Space, signals: Signals
) -> None:
    path = await run_of(client, space, EVENT, park=False)
    run_id = uuid.UUID(path.rpartition("/")[2])
    url = resume_path(space.keys, NodeAddress(run_id, "hear"))
    assert read(await client.with_token(None).post(url)) == {"resumed": 0}
    assert signals(space) == []


async def test_a_token_that_is_not_ours_names_nothing(client: Client, space: Space) -> None:
    path = await run_of(client, space, approval(assignees=[str(space.user_id)]))
    run_id = uuid.UUID(path.rpartition("/")[2])
    anybody = client.with_token(None)
    for url in (
        resume_path(space.keys, NodeAddress(run_id, "ask")),
        resume_path(space.keys, NodeAddress(run_id, "none")),
        resume_path(space.keys, NodeAddress(uuid.uuid4(), "ask")),
        "/v1/resume/nonsense",
        f"/v1/resume/{'A' * 64}",
    ):
        assert refusal(await anybody.post(url, json={})) == (404, "not_found")


async def test_an_event_resumes_all_that_wait_for_it(
    client: Client, space: Space, signals: Signals, foreign: Space
) -> None:
    paths = [await run_of(client, space, EVENT) for _ in range(3)]
    theirs = client.with_token(foreign.token)
    await run_of(theirs, foreign, EVENT)
    events = f"{space.path}/automation-events"
    other = {"eventKey": "other", "data": {}}
    assert read(await client.post(events, json=other)) == {"resumed": 0}
    body = {"eventKey": "paid", "data": {"amount": 3}}
    assert read(await client.post(events, json=body)) == {"resumed": 3}
    assert read(await client.post(events, json=body)) == {"resumed": 0}
    told = {fact["workflowId"].rpartition("/")[2] for fact in signals(space)}
    assert told == {path.rpartition("/")[2] for path in paths}
    assert signals(foreign) == []
    answer = await client.post(events, json={"eventKey": ""})
    assert refusal(answer) == (400, "validation_error")


async def test_publishing_an_event_needs_the_scope(client: Client, space: Space) -> None:
    key = await space.key([one for one in Scope if one is not Scope.AUTOMATIONS_WRITE])
    answer = await client.with_token(key).post(
        f"{space.path}/automation-events", json={"eventKey": "paid"}
    )
    assert refusal(answer) == (403, "denied")


async def test_a_run_and_the_list_of_its_node_runs_show_the_assignees(
    client: Client, space: Space
) -> None:
    path = await run_of(client, space, approval(role="admin", allowEditors=False))
    (listed,) = read(await client.get(f"{path}/node-runs"))["nodeRuns"]
    (shown,) = read(await client.get(path))["nodeRuns"]
    wait = listed["metadata"]["wait"]
    assert shown["metadata"]["wait"] == wait
    assert (wait["role"], wait["allowEditors"]) == ("admin", False)
    answer = await client.post(f"{path}/nodes/ask/resume", json=APPROVE)
    assert answer.status_code == 403, answer.text
