"""Runs of a whole workspace, many cancelled at once, run again, and runs of very many nodes."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, select, update

from models.automation.automation_runs.tables import automation_run, node_run, node_run_attempt
from models.core.access.rules import Role
from runtime.clock import utc_now, wire_timestamp
from runtime.derived_ids import derived_id
from tests.support.automations import create, path_of, publish, read, refusal, row_counts
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def run(client: Client, made: Json, **body: Any) -> Json:
    answer: Json = read(await client.post(f"{path_of(made)}/run", json=body))
    return answer


async def ids(client: Client, path: str, **query: str) -> list[str]:
    """The ids on every page of a list, in its order."""
    found: list[str] = []
    while True:
        page = read(await client.get(path, params={"limit": "2", **query}))
        found += [one["id"] for one in page["runs"]]
        if page["cursor"] is None:
            return found
        query["cursor"] = page["cursor"]


async def change(space: Space, run_id: str, **values: Any) -> None:
    async with space.database.transaction() as work:
        await work.execute(
            update(automation_run).where(automation_run.c.id == UUID(run_id)).values(**values)
        )


async def test_the_runs_of_a_workspace_are_listed(
    client: Client, space: Space, foreign: Space
) -> None:
    first, second = [await publish(client, space) for _ in range(2)]
    theirs = await publish(client.with_token(foreign.token), foreign)
    await run(client.with_token(foreign.token), theirs)
    runs = [(await run(client, made))["id"] for made in (first, second, first, second)]
    await client.post(f"{path_of(first)}/runs/{runs[0]}/cancel")
    test = read(await client.post(f"{path_of(second)}/test-run", json={}))["id"]
    path = f"{space.path}/automation-runs"
    assert await ids(client, path) == [test, *runs[::-1]]
    assert await ids(client, path, automationId=first["id"]) == [runs[2], runs[0]]
    assert await ids(client, path, status="cancelled") == [runs[0]]
    assert await ids(client, path, source="test") == [test]
    shown = read(await client.get(path))["runs"][0]
    assert "nodeRuns" not in shown
    assert shown["metadata"]["temporal"]["workflowId"] == f"automation-run/{test}"


async def test_a_list_of_runs_is_bounded_by_time(client: Client, space: Space) -> None:
    made = await publish(client, space)
    runs = [(await run(client, made))["id"] for _ in range(3)]
    now = utc_now()
    moments = [now - timedelta(days=days) for days in (3, 2, 1)]
    for run_id, moment in zip(runs, moments, strict=True):
        await change(space, run_id, created_at=moment)
    path = f"{space.path}/automation-runs"
    since, until = wire_timestamp(moments[1]), wire_timestamp(moments[2])
    assert await ids(client, path, since=since, until=until) == [runs[1]]
    assert await ids(client, path, since=since) == [runs[2], runs[1]]
    refused = await client.get(path, params={"since": "yesterday"})
    assert refusal(refused) == (400, "validation_error")
    assert refused.json()["details"][0]["path"] == "since"


async def test_derived_ids_do_not_disturb_the_order(client: Client, space: Space) -> None:
    made = await publish(client, space)
    fresh = await run(client, made)
    now = utc_now()
    derived = [derived_id("order", made["id"], number) for number in range(6)]
    async with space.database.transaction() as work:
        like = await work.first(
            select(automation_run).where(automation_run.c.id == UUID(fresh["id"]))
        )
        assert like is not None
        for number, run_id in enumerate(derived, start=1):
            values = {**like._mapping, "id": run_id, "created_at": now + timedelta(seconds=number)}
            await work.execute(insert(automation_run).values(values))
    wanted = [*[str(run_id) for run_id in derived[::-1]], fresh["id"]]
    assert await ids(client, f"{path_of(made)}/runs") == wanted
    assert await ids(client, f"{space.path}/automation-runs") == wanted
    triggered = read(await client.get(path_of(made)))["lastTriggeredAt"]
    assert triggered == wire_timestamp(now + timedelta(seconds=6))


async def test_runs_of_automations_that_a_caller_does_not_see_are_not_listed(
    client: Client, space: Space
) -> None:
    open_one, hidden = [await publish(client, space) for _ in range(2)]
    seen = (await run(client, open_one))["id"]
    await run(client, hidden)
    body = {"accessMode": "restricted", "grants": []}
    read(await client.put(f"/v1/items/{hidden['itemId']}/access", json=body))
    _, token = await space.member(Role.EDITOR)
    member = client.with_token(token)
    path = f"{space.path}/automation-runs"
    assert await ids(member, path) == [seen]
    answers = [
        await member.get(path, params={"automationId": str(id_)}) for id_ in (hidden["id"], uuid4())
    ]
    assert {refusal(answer) for answer in answers} == {(404, "not_found")}
    assert answers[0].content == answers[1].content


async def test_open_runs_are_cancelled_by_filter(client: Client, space: Space) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    kept = (await run(client, other))["id"]
    runs = [(await run(client, made))["id"] for _ in range(4)]
    test = read(await client.post(f"{path_of(made)}/test-run", json={}))["id"]
    path = f"{path_of(made)}/runs/cancel"
    some = read(await client.post(path, json={"source": "manual", "limit": 3}))
    assert some == {"cancelled": 3, "runIds": runs[:3], "remaining": 1}
    before = wire_timestamp(utc_now() - timedelta(days=1))
    none = read(await client.post(path, json={"createdBefore": before}))
    assert none == {"cancelled": 0, "runIds": [], "remaining": 0}
    rest = read(await client.post(path, json={}))
    assert (rest["cancelled"], set(rest["runIds"])) == (2, {runs[3], test})
    assert await ids(client, f"{path_of(made)}/runs", status="cancelled") == [test, *runs[::-1]]
    assert (await ids(client, f"{path_of(other)}/runs")) == [kept]
    assert read(await client.get(f"{path_of(other)}/runs/{kept}"))["status"] != "cancelled"
    # No relay had claimed the starts: they are removed, and Temporal never gets the runs.
    assert (await row_counts(space))["outbox"] == 1


async def test_the_open_runs_of_a_workspace_are_cancelled_by_filter(
    client: Client, space: Space, foreign: Space
) -> None:
    first, second = [await publish(client, space) for _ in range(2)]
    theirs = await publish(client.with_token(foreign.token), foreign)
    await run(client.with_token(foreign.token), theirs)
    runs = [(await run(client, made))["id"] for made in (first, second, first)]
    test = read(await client.post(f"{path_of(second)}/test-run", json={}))["id"]
    path = f"{space.path}/automation-runs"
    some = read(await client.post(f"{path}/cancel", json={"source": "manual", "limit": 2}))
    assert some == {"cancelled": 2, "runIds": runs[:2], "remaining": 1}
    rest = read(await client.post(f"{path}/cancel", json={}))
    assert (rest["cancelled"], set(rest["runIds"]), rest["remaining"]) == (2, {runs[2], test}, 0)
    assert await ids(client, path, status="cancelled") == [test, *runs[::-1]]
    other = client.with_token(foreign.token)
    assert await ids(other, f"{foreign.path}/automation-runs", status="cancelled") == []


async def test_bulk_cancel_cancels_only_runs_that_the_caller_may_edit(
    client: Client, space: Space
) -> None:
    made, shown, hidden, lent = [await publish(client, space) for _ in range(4)]
    runs = [(await run(client, one))["id"] for one in (made, shown, hidden, lent)]
    member_id, token = await space.member(Role.EDITOR)
    for one, levels in ((shown, ["view"]), (hidden, []), (lent, ["edit"])):
        grants = [{"userId": str(member_id), "level": level} for level in levels]
        body = {"accessMode": "restricted", "grants": grants}
        read(await client.put(f"/v1/items/{one['itemId']}/access", json=body))
    path = f"{space.path}/automation-runs/cancel"
    _, viewer = await space.member(Role.VIEWER)
    refused = await client.with_token(viewer).post(path, json={})
    assert refusal(refused) == (403, "denied")
    done = read(await client.with_token(token).post(path, json={}))
    assert (done["runIds"], done["remaining"]) == ([runs[0], runs[3]], 0)
    rest = read(await client.post(path, json={}))
    assert (rest["runIds"], rest["remaining"]) == (runs[1:3], 0)


async def test_bulk_cancel_includes_runs_of_automations_in_the_trash(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    left = (await run(client, made))["id"]
    read(await client.delete(path_of(made)))
    path = f"{space.path}/automation-runs/cancel"
    _, token = await space.member(Role.EDITOR)
    none = read(await client.with_token(token).post(path, json={}))
    assert none == {"cancelled": 0, "runIds": [], "remaining": 0}
    assert read(await client.post(path, json={}))["runIds"] == [left]


@pytest.mark.parametrize("everywhere", [False, True], ids=["automation", "workspace"])
@pytest.mark.parametrize(
    "body", [{"limit": 0}, {"limit": 501}, {"status": "failed"}, {"createdBefore": "x"}, {"a": 1}]
)
async def test_bulk_cancel_with_an_invalid_filter_cancels_nothing(
    client: Client, space: Space, body: Json, everywhere: bool
) -> None:
    made = await publish(client, space)
    await run(client, made)
    runs = f"{space.path}/automation-runs" if everywhere else f"{path_of(made)}/runs"
    refused = await client.post(f"{runs}/cancel", json=body)
    assert refusal(refused) == (400, "validation_error")
    assert await ids(client, f"{path_of(made)}/runs", status="cancelled") == []


async def test_a_run_is_run_again_when_it_has_ended(client: Client, space: Space) -> None:
    made = await publish(client, space)
    first = await run(client, made, triggerPayload={"n": 1})
    path = f"{path_of(made)}/runs/{first['id']}/retry"
    assert refusal(await client.post(path, json={})) == (409, "run_error")
    again = read(await client.post(path, json={"cancelFirst": True, "from": "start"}))
    assert (again["status"], again["source"]) == ("queued", "replay")
    assert (again["replayOfRunId"], again["triggerPayload"]) == (first["id"], {"n": 1})
    assert read(await client.get(f"{path_of(made)}/runs/{first['id']}"))["status"] == "cancelled"
    refused = await client.post(path, json={"version": "draft"})
    assert refusal(refused) == (409, "run_error")
    assert "draft" in refused.json()["message"]
    await client.patch(path_of(made), json={"enabled": False})
    for version in ("original", "published"):
        retried = read(await client.post(path, json={"version": version}))
        assert retried["automationVersionId"] == made["publishedVersionId"]


async def test_a_run_of_another_automation_is_not_found(client: Client, space: Space) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    theirs = await run(client, other)
    for use in (
        lambda id_: client.post(f"{path_of(made)}/runs/{id_}/retry", json={}),
        lambda id_: client.get(f"{path_of(made)}/runs/{id_}/node-runs"),
    ):
        answers = [await use(id_) for id_ in (theirs["id"], uuid4())]
        assert {refusal(answer) for answer in answers} == {(404, "not_found")}
        assert answers[0].content == answers[1].content


async def test_a_run_that_concurrency_skips_is_refused(client: Client, space: Space) -> None:
    config = {"kind": "manual", "concurrency": {"limit": 1, "policy": "skip"}}
    made = await publish(client, space, triggerConfig=config)
    await run(client, made)
    before = await row_counts(space)
    refused = await client.post(f"{path_of(made)}/run", json={})
    assert refusal(refused) == (409, "run_error")
    assert "concurrency limit" in refused.json()["message"]
    assert await row_counts(space) == before


async def test_a_run_in_line_says_so(client: Client, space: Space) -> None:
    config = {"kind": "manual", "concurrency": {"limit": 1, "keyExpression": "trigger.k"}}
    made = await publish(client, space, triggerConfig=config)
    first, second = [await run(client, made, triggerPayload={"k": "a"}) for _ in range(2)]
    assert first["metadata"]["concurrencyKey"] == second["metadata"]["concurrencyKey"] == '"a"'
    assert first["metadata"].get("admittedAt") is not None
    assert second["metadata"].get("admittedAt") is None
    refused = await client.post(f"{path_of(made)}/run", json={})
    assert refusal(refused) == (409, "run_error")


async def test_a_key_that_never_works_is_not_published(client: Client, space: Space) -> None:
    config = {"kind": "manual", "concurrency": {"limit": 1, "keyExpression": "nodes.a"}}
    made = await create(client, space, triggerConfig=config)
    refused = await client.post(f"{path_of(made)}/publish", json={})
    assert refusal(refused) == (400, "validation_error")
    assert "keyExpression" in refused.json()["message"]


LOOP: Json = {
    "nodes": [
        {"id": "each", "kind": "for_each", "config": {"items": [1, 2, 3]}},
        {"id": "wait", "kind": "delay", "config": {"seconds": 86_400}},
    ],
    "edges": [{"from": "each", "to": "wait", "outcome": "item"}],
}

MANY = 10_000


async def with_many_nodes(space: Space, run_id: str) -> None:
    """Iterations of a loop by the thousand: one failed, one open, each with a large output."""
    now = utc_now()
    rows: list[Json] = [
        {
            "run_id": UUID(run_id),
            "node_id": "wait",
            "scope_key": f"each:{number}",
            "workspace_id": space.id,
            "node_kind": "transform",
            "status": "succeeded",
            "attempt": 1,
            "output": {"text": "x" * 200},
            "error": None,
            "error_code": None,
            "started_at": now + timedelta(milliseconds=number),
            "completed_at": now + timedelta(milliseconds=number),
        }
        for number in range(MANY)
    ]
    rows[7_000] |= {"status": "failed", "error": "It broke.", "error_code": "timeout", "attempt": 2}
    rows[8_000] |= {"status": "running", "completed_at": None}
    rows.append({**rows[0], "node_id": "each", "scope_key": "", "node_kind": "for_each"})
    failed = rows[7_000]
    async with space.database.transaction() as work:
        await work.execute(insert(node_run), rows)
        await work.execute(
            insert(node_run_attempt).values(
                **{name: failed[name] for name in ("run_id", "node_id", "scope_key")},
                attempt=1,
                workspace_id=space.id,
                error="It was late.",
                error_code="timeout",
                started_at=now,
                completed_at=now,
            )
        )


async def test_a_run_of_very_many_nodes_is_answered_in_part(client: Client, space: Space) -> None:
    made = await publish(client, space, graph=LOOP)
    run_id = (await run(client, made))["id"]
    await with_many_nodes(space, run_id)
    answer = await client.get(f"{path_of(made)}/runs/{run_id}")
    assert len(answer.content) < 1_000_000
    shown = read(answer)
    assert len(shown["nodeRuns"]) == 1_000
    assert shown["metadata"]["trimmed"] is True
    assert shown["metadata"]["progress"] == {"done": MANY, "total": MANY + 1}
    places = {(one["nodeId"], one["scopeKey"]) for one in shown["nodeRuns"]}
    assert {("each", ""), ("wait", "each:7000"), ("wait", "each:8000")} <= places
    began = [one["startedAt"] for one in shown["nodeRuns"]]
    assert began == sorted(began)


@pytest.mark.long
async def test_all_node_runs_are_paged(client: Client, space: Space) -> None:
    made = await publish(client, space, graph=LOOP)
    run_id = (await run(client, made))["id"]
    await with_many_nodes(space, run_id)
    path = f"{path_of(made)}/runs/{run_id}/node-runs"
    seen: list[str] = []
    query = {"limit": "100", "nodeId": "wait"}
    while True:
        page = read(await client.get(path, params=query))
        seen += [one["scopeKey"] for one in page["nodeRuns"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert seen == [f"each:{number}" for number in range(MANY)]
    (failed,) = read(await client.get(path, params={"status": "failed"}))["nodeRuns"]
    assert (failed["scopeKey"], failed["metadata"]) == ("each:7000", {"errorCode": "timeout"})
    assert [one["error"] for one in failed["attempts"]] == ["It was late."]
    (root,) = read(await client.get(path, params={"scopeKey": ""}))["nodeRuns"]
    assert (root["nodeId"], root["attempts"]) == ("each", [])


async def test_a_node_that_runs_again_says_why(client: Client, space: Space) -> None:
    made = await publish(client, space)
    run_id = (await run(client, made))["id"]
    of_run = {"run_id": UUID(run_id), "scope_key": "", "workspace_id": space.id}
    state = {
        "node_kind": "http_request",
        "status": "running",
        "attempt": 1,
        "started_at": utc_now(),
    }
    async with space.database.transaction() as work:
        for node_id, errors in (("first", []), ("again", ["It was late.", "It was gone."])):
            node = {**of_run, "node_id": node_id}
            await work.execute(insert(node_run).values(**node, **state))
            for attempt, error in enumerate(errors, start=1):
                values = {"attempt": attempt, "error": error, "error_code": "timeout"}
                moments = {"started_at": utc_now(), "completed_at": utc_now()}
                await work.execute(insert(node_run_attempt).values(**node, **values, **moments))
    shown = read(await client.get(f"{path_of(made)}/runs/{run_id}"))["nodeRuns"]
    said = {one["nodeId"]: one["metadata"].get("lastError") for one in shown}
    assert said.items() >= {"first": None, "again": "It was gone."}.items()


async def test_an_iteration_is_one_of_the_run_that_is_replayed(
    client: Client, space: Space
) -> None:
    made = await publish(client, space, graph=LOOP)
    earlier = (await run(client, made))["id"]
    async with space.database.transaction() as work:
        await work.execute(
            insert(node_run).values(
                run_id=UUID(earlier),
                node_id="wait",
                scope_key="each:1",
                workspace_id=space.id,
                node_kind="delay",
                status="failed",
                attempt=1,
            )
        )
    path = f"{path_of(made)}/run-from-node"
    wanted = {"nodeId": "wait", "scope": "each:1", "replayOfRunId": earlier}
    assert read(await client.post(path, json=wanted))["startNodeId"] == "wait"
    for bad in (
        {**wanted, "scope": "each:2"},
        {**wanted, "scope": "other:1"},
        {**wanted, "scope": "each:1/each:1"},
        {**wanted, "nodeId": "each"},
        {"nodeId": "wait", "scope": "each:1"},
    ):
        refused = await client.post(path, json=bad)
        assert refusal(refused) == (400, "validation_error"), bad
        assert refused.json()["details"][0]["path"] == "scope"
