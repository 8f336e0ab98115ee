"""Operations over many runs: previewed, accepted, carried out, paused, undone."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select, update
from temporalio.testing import ActivityEnvironment

from activities.endings import CLOSED
from activities.run_operations import RunOperationActivities
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.run_operations import commands, rules
from models.automation.run_operations.execution import Advance
from models.automation.run_operations.queries import (
    PreviewRunOperation,
    run_operation,
    run_operation_result,
)
from models.core.access.rules import Role
from runtime.clock import utc_now
from runtime.derived_ids import derived_id
from runtime.errors import DeniedError
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.automations import path_of, publish, read, refusal
from tests.support.client import Client
from tests.support.run_operations import carry_out, step
from tests.support.spaces import Space

Json = dict[str, Any]


async def run(client: Client, made: Json, **body: Any) -> str:
    return str(read(await client.post(f"{path_of(made)}/run", json=body))["id"])


async def change(space: Space, run_ids: list[str], **values: Any) -> None:
    async with space.database.transaction() as work:
        these = automation_run.c.id.in_([UUID(run_id) for run_id in run_ids])
        await work.execute(update(automation_run).where(these).values(**values))


async def failed(client: Client, space: Space, made: Json, count: int = 1) -> list[str]:
    """Runs that have failed at their only node."""
    run_ids = [await run(client, made) for _ in range(count)]
    await change(space, run_ids, status="failed", completed_at=utc_now(), error="It broke.")
    return run_ids


def operations(space: Space) -> str:
    return f"{space.path}/run-operations"


async def accept(client: Client, space: Space, action: str, **body: Any) -> Json:
    sent = {"action": action, **body}
    made: Json = read(await client.post(operations(space), json=sent), 202)
    return made


async def carried_out(client: Client, space: Space, action: str, **body: Any) -> Json:
    """The operation when it has ended."""
    made = await accept(client, space, action, **body)
    await carry_out(space.database, made)
    return await get(client, space, made)


async def get(client: Client, space: Space, made: Json) -> Json:
    answer: Json = read(await client.get(f"{operations(space)}/{made['id']}"))
    return answer


async def results(client: Client, space: Space, made: Json, **query: str) -> list[Json]:
    listed: list[Json] = []
    while True:
        path = f"{operations(space)}/{made['id']}/results"
        page = read(await client.get(path, params={"limit": "3", **query}))
        listed += page["results"]
        if page["cursor"] is None:
            return listed
        query["cursor"] = page["cursor"]


def counts(made: Json) -> tuple[Any, ...]:
    names = ("status", "total", "done", "succeeded", "skipped", "failed")
    return tuple(made.get(name) for name in names)


async def replays_of(client: Client, space: Space) -> dict[str, list[str]]:
    """The runs that are retries, by the run they repeat."""
    runs = read(await client.get(f"{space.path}/automation-runs", params={"limit": "100"}))["runs"]
    replays: dict[str, list[str]] = {}
    for one in runs:
        if one["source"] == "replay":
            replays.setdefault(one["replayOfRunId"], []).append(one["id"])
    return replays


async def test_runs_of_a_filter_are_cancelled(client: Client, space: Space) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    runs = [await run(client, made) for _ in range(4)]
    kept = await run(client, other)
    await change(space, runs[:1], status="failed", completed_at=utc_now())
    wanted = {"automationId": made["id"]}
    accepted = await accept(client, space, "cancel", filter=wanted)
    assert counts(accepted) == ("queued", None, 0, 0, 0, 0)
    assert accepted["filter"].keys() == {"automationId", "until"}
    late = await run(client, made)
    await change(space, [late], created_at=utc_now() + timedelta(seconds=1))
    await carry_out(space.database, accepted)
    done = await get(client, space, accepted)
    assert counts(done) == ("succeeded", 3, 3, 3, 0, 0)
    assert done["undoable"]
    listed = await results(client, space, accepted)
    assert [(one["runId"], one["outcome"]) for one in listed] == [
        (run_id, "succeeded") for run_id in runs[1:]
    ]
    for run_id, status in [(runs[0], "failed"), (runs[3], "cancelled"), (late, "queued")]:
        assert read(await client.get(f"{path_of(made)}/runs/{run_id}"))["status"] == status
    assert read(await client.get(f"{path_of(other)}/runs/{kept}"))["status"] == "queued"


async def test_named_runs_are_treated_once_each_in_their_order(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await publish(client, space)
    ended, open_one = (await failed(client, space, made))[0], await run(client, made)
    stranger = client.with_token(foreign.token)
    theirs = await run(stranger, await publish(stranger, foreign))
    unknown = str(uuid4())
    named = [open_one, theirs, ended, unknown, open_one]
    done = await carried_out(client, space, "cancel", runIds=named)
    assert counts(done) == ("succeeded", 4, 4, 1, 3, 0)
    listed = await results(client, space, done)
    assert [one["runId"] for one in listed] == [open_one, theirs, ended, unknown]
    assert [one["outcome"] for one in listed] == ["succeeded", *["skipped"] * 3]
    # A run of another workspace looks like a missing one.
    assert listed[1]["reason"] == listed[3]["reason"] != listed[2]["reason"]
    open_runs = read(await stranger.get(f"{foreign.path}/automation-runs"))["runs"]
    assert [one["status"] for one in open_runs] == ["queued"]
    skipped = await results(client, space, done, outcome="skipped")
    assert skipped == listed[1:]


async def test_failed_runs_are_retried_once_by_operations_over_the_same_runs(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    runs = await failed(client, space, made, 3)
    bodies: list[Json] = [{"filter": {"status": "failed"}}, {"runIds": runs}]
    first, second = [await accept(client, space, "retry", **body) for body in bodies]
    for one in (first, second):
        await carry_out(space.database, one)
    done = await get(client, space, first)
    assert counts(done) == ("succeeded", 3, 3, 3, 0, 0)
    assert counts(await get(client, space, second)) == ("succeeded", 3, 3, 0, 3, 0)
    replays = await replays_of(client, space)
    assert {run_id: len(new) for run_id, new in replays.items()} == dict.fromkeys(runs, 1)
    listed = await results(client, space, first)
    assert [one["newRunId"] for one in listed] == [replays[run_id][0] for run_id in runs]
    new = read(await client.get(f"{path_of(made)}/runs/{listed[0]['newRunId']}"))
    assert new["metadata"]["operationId"] == first["id"]
    assert await results(client, space, second) == [
        {**one, "outcome": "skipped", "reason": "The run was already retried."} for one in listed
    ]
    wanted = {"action": "retry", "filter": {}}
    assert (
        read(await client.post(f"{operations(space)}/preview", json=wanted))["retriedBefore"] == 3
    )
    again = await carried_out(client, space, "retry", runIds=runs, retry={"again": True})
    assert counts(again) == ("succeeded", 3, 3, 3, 0, 0)


async def test_retries_begin_where_they_should_on_the_version_they_should(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    (first,) = await failed(client, space, made)
    read(await client.patch(path_of(made), json={"graph": GREETING}))
    read(await client.post(f"{path_of(made)}/publish", json={}))
    versions = read(await client.get(f"{path_of(made)}/versions"))["versions"]
    newer, older = versions[0]["id"], versions[1]["id"]

    async def version_of_retry(**retry: Any) -> str:
        done = await carried_out(
            client, space, "retry", runIds=[first], retry={"again": True, **retry}
        )
        (one,) = await results(client, space, done)
        run = read(await client.get(f"{path_of(made)}/runs/{one['newRunId']}"))
        return str(run["automationVersionId"])

    assert await version_of_retry() == older
    assert await version_of_retry(**{"from": "start"}) == older
    assert await version_of_retry(version="published") == newer
    assert await version_of_retry(automationVersionId=newer) == newer
    other = await publish(client, space)
    foreign_version = other["publishedVersionId"]
    done = await carried_out(
        client,
        space,
        "retry",
        runIds=[first],
        retry={"again": True, "automationVersionId": foreign_version},
    )
    assert counts(done) == ("succeeded", 1, 1, 0, 0, 1)
    assert (await results(client, space, done))[0]["reason"]


GREETING = {"nodes": [{"id": "greet", "kind": "transform", "config": {"output": {"a": 1}}}]}


async def test_runs_without_anything_to_retry_are_skipped(client: Client, space: Space) -> None:
    made = await publish(client, space)
    open_one, well = [await run(client, made) for _ in range(2)]
    for status in ("running", "succeeded"):
        await change(space, [well], status=status)
    done = await carried_out(client, space, "retry", runIds=[open_one, well])
    assert counts(done) == ("succeeded", 2, 2, 0, 2, 0)
    by_filter = await carried_out(client, space, "retry", filter={})
    assert counts(by_filter) == ("succeeded", 0, 0, 0, 0, 0)
    from_start = await carried_out(client, space, "retry", filter={}, retry={"from": "start"})
    assert counts(from_start) == ("succeeded", 1, 1, 1, 0, 0)


async def test_a_limit_of_runs_at_a_time_refuses_some_and_not_the_others(
    client: Client, space: Space
) -> None:
    trigger = {"kind": "manual", "concurrency": {"limit": 1, "policy": "skip"}}
    limited = await publish(client, space, triggerConfig=trigger)
    free = await publish(client, space)
    runs = [(await failed(client, space, limited))[0]]
    runs += [(await failed(client, space, limited))[0], *(await failed(client, space, free))]
    done = await carried_out(client, space, "retry", runIds=runs)
    assert counts(done) == ("succeeded", 3, 3, 2, 0, 1)
    outcomes = [one["outcome"] for one in await results(client, space, done)]
    assert outcomes == ["succeeded", "failed", "succeeded"]


async def test_a_cancel_that_is_paused_leaves_the_rest_open(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "chunk_of", lambda _: 2)
    made = await publish(client, space)
    runs = [await run(client, made) for _ in range(5)]
    accepted = await accept(client, space, "cancel", runIds=runs)
    path = f"{operations(space)}/{accepted['id']}"
    await step(space.database, accepted["id"])
    paused = read(await client.post(f"{path}/pause"))
    assert counts(paused) == ("paused", 5, 2, 2, 0, 0)
    listed = await client.get(f"{path_of(made)}/runs", params={"status": "cancelled"})
    assert [one["id"] for one in read(listed)["runs"]] == runs[1::-1]
    # Meanwhile another client cancels one of the others.
    read(await client.post(f"{path_of(made)}/runs/{runs[3]}/cancel"))
    read(await client.post(f"{path}/resume"))
    await carry_out(space.database, accepted)
    assert counts(await get(client, space, accepted)) == ("succeeded", 5, 5, 4, 1, 0)


async def test_a_paused_operation_continues_where_it_stopped(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "chunk_of", lambda _: 2)
    made = await publish(client, space)
    runs = await failed(client, space, made, 5)
    accepted = await accept(client, space, "retry", runIds=runs)
    path = f"{operations(space)}/{accepted['id']}"
    assert refusal(await client.post(f"{path}/resume")) == (409, "conflict")
    await step(space.database, accepted["id"])
    paused = read(await client.post(f"{path}/pause"))
    assert counts(paused) == ("paused", 5, 2, 2, 0, 0)
    assert await step(space.database, accepted["id"]) == "closed"
    assert read(await client.post(f"{path}/pause"))["status"] == "paused"
    resumed = read(await client.post(f"{path}/resume"))
    assert counts(resumed) == ("queued", 5, 2, 2, 0, 0)
    await carry_out(space.database, accepted)
    assert counts(await get(client, space, accepted)) == ("succeeded", 5, 5, 5, 0, 0)
    replays = await replays_of(client, space)
    assert {run_id: len(new) for run_id, new in replays.items()} == dict.fromkeys(runs, 1)
    for word in ("pause", "resume"):
        assert refusal(await client.post(f"{path}/{word}")) == (409, "conflict")


async def test_an_execution_from_before_a_pause_does_and_ends_nothing(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    accepted = await accept(client, space, "retry", runIds=await failed(client, space, made))
    path = f"{operations(space)}/{accepted['id']}"
    for word in ("pause", "resume"):
        read(await client.post(f"{path}/{word}"))
    activities, environment = RunOperationActivities(space.database), ActivityEnvironment()
    before = WorkflowKind.RUN_OPERATION.workflow_id(accepted["id"])
    assert await environment.run(activities.advance, before) == CLOSED
    assert await environment.run(activities.end, before, True) == CLOSED
    assert counts(await get(client, space, accepted)) == ("queued", 1, 0, 0, 0, 0)
    now = WorkflowKind.RUN_OPERATION.workflow_id(accepted["id"], "1")
    assert await environment.run(activities.advance, now) == "succeeded"
    assert await environment.run(activities.advance, now) == CLOSED
    assert len(await replays_of(client, space)) == 1


@pytest.mark.parametrize("paused", [False, True])
async def test_a_cancelled_operation_treats_nothing_more(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch, paused: bool
) -> None:
    monkeypatch.setattr(rules, "chunk_of", lambda _: 1)
    made = await publish(client, space)
    runs = await failed(client, space, made, 3)
    accepted = await accept(client, space, "retry", runIds=runs)
    path = f"{operations(space)}/{accepted['id']}"
    await step(space.database, accepted["id"])
    if paused:
        read(await client.post(f"{path}/pause"))
    cancelled = read(await client.post(f"{path}/cancel"))
    assert counts(cancelled) == ("cancelled", 3, 1, 1, 0, 0)
    assert await step(space.database, accepted["id"]) == "closed"
    assert read(await client.post(f"{path}/cancel")) == cancelled
    assert refusal(await client.post(f"{path}/resume")) == (409, "conflict")
    rest = await results(client, space, accepted)
    assert ["outcome" in one for one in rest] == [True, False, False]


async def test_a_rate_limits_the_runs_per_second(client: Client, space: Space) -> None:
    made = await publish(client, space)
    runs = await failed(client, space, made, 5)
    accepted = await accept(client, space, "retry", runIds=runs, rate=2)
    this = run_operation.c.id == UUID(accepted["id"])
    before = utc_now()
    assert await step(space.database, accepted["id"]) == Advance()
    after = utc_now()
    assert counts(await get(client, space, accepted)) == ("running", 5, 2, 2, 0, 0)
    async with space.database.transaction() as work:
        paced_until = await work.scalar(select(run_operation.c.paced_until).where(this))
        assert before + timedelta(seconds=1) <= paced_until <= after + timedelta(seconds=1)
        # However slow the machine is, the next step comes before this moment.
        distant = update(run_operation).where(this).values(paced_until=after + timedelta(hours=1))
        await work.execute(distant)
    waiting = await step(space.database, accepted["id"])
    assert isinstance(waiting, Advance)
    assert 0 < waiting.pause <= timedelta(hours=1).total_seconds()
    assert (await get(client, space, accepted))["done"] == 2
    async with space.database.transaction() as work:
        await work.execute(update(run_operation).where(this).values(paced_until=utc_now()))
    assert await step(space.database, accepted["id"]) == Advance()
    assert (await get(client, space, accepted))["done"] == 4


async def test_an_operation_waits_while_its_workspace_has_many_starts(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await publish(client, space)
    runs = await failed(client, space, made, 2)
    monkeypatch.setattr(outbox, "MOST_WAITING_STARTS", 2)
    accepted = await accept(client, space, "retry", runIds=runs)
    state = await step(space.database, accepted["id"])
    assert isinstance(state, Advance)
    assert state.pause > 0
    assert (await get(client, space, accepted))["done"] == 0
    monkeypatch.setattr(outbox, "MOST_WAITING_STARTS", 3)
    await carry_out(space.database, accepted)
    assert (await get(client, space, accepted))["succeeded"] == 2


async def test_a_selection_is_written_down_part_by_part(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "SELECTED_AT_ONCE", 2)
    made = await publish(client, space)
    runs = await failed(client, space, made, 5)
    accepted = await accept(client, space, "retry", filter={})
    for total in (None, None, 5):
        await step(space.database, accepted["id"])
        assert (await get(client, space, accepted)).get("total") == total
    later = await failed(client, space, made)
    await carry_out(space.database, accepted)
    assert [one["runId"] for one in await results(client, space, accepted)] == runs
    undo = await client.post(f"{operations(space)}/{accepted['id']}/undo", json={})
    await carry_out(space.database, read(undo, 202))
    assert counts(await get(client, space, read(undo, 202))) == ("succeeded", 5, 5, 5, 0, 0)
    monkeypatch.setattr(rules, "MAX_RUNS", 3)
    bounded = await carried_out(client, space, "retry", filter={"status": "failed"})
    assert counts(bounded) == ("succeeded", 3, 3, 0, 3, 0)
    assert later[0] not in [one["runId"] for one in await results(client, space, bounded)]


async def test_runs_are_selected_by_all_that_a_list_filters_by(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "SELECTED_AT_ONCE", 2)
    monkeypatch.setattr(commands, "MOST_SEARCHED", 2)
    made = await publish(client, space)
    orders = ("A-1", "b-2", "a-3", "c-4", "A-5")
    run_ids = [await run(client, made, triggerPayload={"order": order}) for order in orders]
    await change(space, run_ids[4:], status="failed", completed_at=utc_now(), error="It broke.")
    search = {"text": "A-", "period": "hour", "automationId": made["id"]}
    seen = read(
        await client.post(
            f"{operations(space)}/preview", json={"action": "cancel", "filter": search}
        )
    )
    assert (seen["total"], seen["more"]) == (1, True)
    ended = await carried_out(client, space, "cancel", filter=search)
    assert (ended["total"], ended["succeeded"]) == (2, 2)
    listed = await client.get(f"{space.path}/automation-runs", params={"status": "cancelled"})
    assert {one["id"] for one in read(listed)["runs"]} == {run_ids[0], run_ids[2]}


async def test_a_retry_is_undone_by_cancelling_the_runs_it_started(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    runs = await failed(client, space, made, 3)
    accepted = await accept(client, space, "retry", runIds=runs)
    path = f"{operations(space)}/{accepted['id']}"
    assert refusal(await client.post(f"{path}/undo", json={})) == (409, "conflict")
    await carry_out(space.database, accepted)
    undo = read(await client.post(f"{path}/undo", json={}), 202)
    assert (undo["action"], undo["undoes"]) == ("cancel", accepted["id"])
    await carry_out(space.database, undo)
    assert counts(await get(client, space, undo)) == ("succeeded", 3, 3, 3, 0, 0)
    started = [one["newRunId"] for one in await results(client, space, accepted)]
    assert [one["runId"] for one in await results(client, space, undo)] == started
    refused = await client.post(f"{operations(space)}/{undo['id']}/undo", json={})
    assert refusal(refused) == (409, "conflict")


async def test_a_cancel_is_undone_by_retrying_the_runs_it_cancelled(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    runs = [await run(client, made) for _ in range(2)]
    ended = (await failed(client, space, made))[0]
    done = await carried_out(client, space, "cancel", runIds=[*runs, ended])
    path = f"{operations(space)}/{done['id']}/undo"
    undo = read(await client.post(path, json={}), 202)
    await carry_out(space.database, undo)
    assert [one["runId"] for one in await results(client, space, undo)] == runs
    assert set(await replays_of(client, space)) == set(runs)


async def test_a_preview_counts_and_names_what_is_repeated(client: Client, space: Space) -> None:
    made, other = await publish(client, space, label="Orders"), await publish(client, space)
    runs = await failed(client, space, made, 3)
    await run(client, other)
    async with space.database.transaction() as work:
        for run_id, node_id, scope, kind, status in [
            (runs[0], "charge", "", "http_request", "succeeded"),
            (runs[1], "charge", "", "http_request", "succeeded"),
            (runs[2], "charge", "", "http_request", "failed"),
            (runs[0], "mail", "each:0", "send_email", "succeeded"),
            (runs[0], "each", "", "for_each", "failed"),
            (runs[1], "mail", "each:0", "send_email", "succeeded"),
            (runs[1], "each", "", "for_each", "succeeded"),
            (runs[0], "compute", "", "transform", "succeeded"),
        ]:
            row = {
                "run_id": UUID(run_id),
                "node_id": node_id,
                "scope_key": scope,
                "workspace_id": space.id,
                "node_kind": kind,
                "status": status,
                "attempt": 1,
            }
            await work.execute(insert(node_run).values(row))
    path = f"{operations(space)}/preview"
    wanted = {"action": "retry", "filter": {}, "retry": {"from": "start"}}
    shown = read(await client.post(path, json=wanted))
    assert (shown["total"], shown["fitting"], shown["examined"]) == (4, 3, 3)
    assert (shown["more"], shown["statuses"]) == (False, {"failed": 3, "queued": 1})
    assert [(one["automationLabel"], one["version"], one["runs"]) for one in shown["versions"]] == [
        ("Orders", 1, 3)
    ]
    repeats = [(one["nodeId"], one["nodeKind"], one["runs"]) for one in shown["repeats"]]
    assert repeats == [("charge", "http_request", 2), ("mail", "send_email", 2)]
    wanted["retry"] = {"from": "failed"}
    shown = read(await client.post(path, json=wanted))
    # What succeeded is reused, but a loop that failed runs whole again.
    assert [(one["nodeId"], one["runs"]) for one in shown["repeats"]] == [("mail", 1)]
    shown = read(await client.post(path, json={"action": "cancel", "runIds": [runs[0]]}))
    assert (shown["total"], shown["fitting"], shown["repeats"]) == (1, 0, [])
    assert read(await client.get(operations(space)))["runOperations"] == []


async def test_a_preview_says_when_there_are_more_than_it_counts(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    await failed(client, space, made, 4)
    await run(client, made)
    body = PreviewRunOperation.model_validate_json('{"action": "cancel", "filter": {}}')
    async with space.database.transaction() as work:
        shown = await commands.preview_operation(work, space.actor, body, counted=2, examined=1)
    assert (shown.total, shown.more, shown.fitting, shown.examined) == (2, True, 1, 1)
    body = PreviewRunOperation.model_validate_json('{"action": "retry", "filter": {}}')
    async with space.database.transaction() as work:
        shown = await commands.preview_operation(work, space.actor, body, counted=2, examined=3)
    assert (shown.total, shown.more, shown.fitting, shown.examined) == (2, True, 2, 3)


async def test_only_runs_in_reach_are_selected_and_others_see_no_operation(
    client: Client, space: Space
) -> None:
    made, shown, hidden, lent = [await publish(client, space) for _ in range(4)]
    runs = [await run(client, one) for one in (made, shown, hidden, lent)]
    member_id, token = await space.member(Role.EDITOR)
    for one, levels in ((shown, ["view"]), (hidden, []), (lent, ["edit"])):
        grants = [{"userId": str(member_id), "level": level} for level in levels]
        body = {"accessMode": "restricted", "grants": grants}
        read(await client.put(f"/v1/items/{one['itemId']}/access", json=body))
    editor = client.with_token(token)
    path = f"{operations(space)}/preview"
    sent = {"action": "cancel", "filter": {}}
    assert read(await editor.post(path, json=sent))["total"] == 2
    done = await carried_out(editor, space, "cancel", filter={})
    assert [one["runId"] for one in await results(editor, space, done)] == [runs[0], runs[3]]
    named = await carried_out(editor, space, "cancel", runIds=runs[1:3])
    reasons = {one["reason"] for one in await results(editor, space, named)}
    assert counts(named)[3:] == (0, 2, 0)
    assert len(reasons) == 1
    for filtered in (hidden["id"], str(uuid4())):
        sent = {"action": "cancel", "filter": {"automationId": filtered}}
        assert refusal(await editor.post(operations(space), json=sent)) == (404, "not_found")
    _, other = await space.member(Role.EDITOR)
    _, viewer = await space.member(Role.VIEWER)
    second = client.with_token(other)
    assert read(await second.get(operations(space)))["runOperations"] == []
    assert refusal(await second.get(f"{operations(space)}/{done['id']}")) == (404, "not_found")
    sent = {"action": "cancel", "filter": {}}
    for each in (operations(space), path):
        refused = await client.with_token(viewer).post(each, json=sent)
        assert refusal(refused) == (403, "denied")
    listed = read(await client.get(operations(space)))["runOperations"]
    assert [one["id"] for one in listed] == [named["id"], done["id"]]


async def test_an_operation_ends_when_its_member_lost_the_rights(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    runs = await failed(client, space, made, 2)
    member_id, token = await space.member(Role.EDITOR)
    accepted = await accept(client.with_token(token), space, "retry", runIds=runs)
    read(await client.patch(f"{space.path}/members/{member_id}", json={"role": "viewer"}))
    with pytest.raises(DeniedError):
        await step(space.database, accepted["id"])
    assert await replays_of(client, space) == {}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "cancel"},
        {"action": "purge", "filter": {}},
        {"action": "cancel", "filter": {}, "runIds": [str(uuid4())]},
        {"action": "cancel", "runIds": []},
        {"action": "cancel", "runIds": ["x"]},
        {"action": "cancel", "filter": {"state": "failed"}},
        {"action": "cancel", "filter": {}, "retry": {}},
        {"action": "retry", "filter": {}, "retry": {"version": "draft"}},
        {"action": "retry", "filter": {}, "rate": 0},
        {"action": "resume", "filter": {}, "resume": {"data": {"a": "b" * 300_000}}},
    ],
)
async def test_an_invalid_operation_is_refused(client: Client, space: Space, body: Json) -> None:
    assert refusal(await client.post(operations(space), json=body)) == (400, "validation_error")


@pytest.mark.long
async def test_a_hundred_thousand_ids_are_taken(client: Client, space: Space) -> None:
    made = await publish(client, space)
    (last,) = await failed(client, space, made)
    named = [*(str(derived_id("run", number)) for number in range(99_999)), last]
    accepted = await accept(client, space, "retry", runIds=named)
    assert (accepted["total"], accepted["done"]) == (100_000, 0)
    async with space.database.transaction() as work:
        this = run_operation_result.c.operation_id == UUID(accepted["id"])
        count = select(func.count()).select_from(run_operation_result).where(this)
        assert await work.scalar(count) == 100_000
    refused = await client.post(
        operations(space), json={"action": "cancel", "runIds": [*named, str(uuid4())]}
    )
    assert refusal(refused) == (400, "validation_error")


async def test_a_bulk_cancel_is_an_operation_done_at_once(client: Client, space: Space) -> None:
    made = await publish(client, space)
    runs = [await run(client, made) for _ in range(3)]
    path = f"{path_of(made)}/runs/cancel"
    assert read(await client.post(path, json={"limit": 2}))["runIds"] == runs[:2]
    (one,) = read(await client.get(operations(space)))["runOperations"]
    assert counts(one) == ("succeeded", 2, 2, 2, 0, 0)
    assert [each["runId"] for each in await results(client, space, one)] == runs[:2]
