"""Each kind of condition fires when it holds, and is over when it does not, on real rows."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from models.automation.alert_rules.queries import alert_rule
from models.automation.automation_runs.tables import automation_run
from models.core.base import Id
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import (
    create_connection,
    delete_connection,
    failing_connection,
    note_failure,
    note_success,
)
from models.workspace.system import beat, leave, worker_process
from runtime.clock import utc_now
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import Queue
from tests.support.ageing import make_automation, run_row
from tests.support.alerts import alert_events, alerts, evaluated, firings, make_rule, state_of
from tests.support.incidents import failed_run, succeeded_run
from tests.support.spaces import Space


def ago(minutes: float) -> Any:
    return utc_now() - timedelta(minutes=minutes)


async def watched_for(space: Space, minutes: float) -> None:
    """Let the rules of the workspace have watched for so long."""
    async with space.database.transaction() as work:
        await work.execute(
            update(alert_rule)
            .where(alert_rule.c.workspace_id == space.id)
            .values(watched_since=ago(minutes))
        )


async def open_run(space: Space, version: Any, **values: Any) -> Id:
    row = run_row(space, version, **{"status": "running", "completed_at": None, **values})
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
    return Id(str(row["id"]))


async def states(space: Space, rule_id: Id, *steps: Any) -> list[str]:
    """The state of a rule at first, and after each of these steps."""
    seen = []
    for step in (None, *steps):
        if step is not None:
            await step
        await evaluated(space)
        seen.append((await state_of(space, rule_id)).state.value)
    return seen


async def test_a_number_of_failures_in_a_time_meets_the_condition(space: Space) -> None:
    version, other = await make_automation(space), await make_automation(space)
    query = {"automationId": version.automation_id, "attribute": "shop:north"}
    condition = {"kind": "failures", "runs": 3, "minutes": 10, "query": query}
    rule = await make_rule(space, condition)
    mine: dict[str, Any] = {"attributes": {"shop": "north"}}
    for values in (mine, mine, {}, {**mine, "source": "test"}):
        await failed_run(space, version, **values)
    await failed_run(space, version, options={"test": True}, **mine)
    await failed_run(space, version, at=ago(11), **mine)
    await failed_run(space, other, **mine)
    await succeeded_run(space, version, **mine)
    seen = await states(space, rule.id, failed_run(space, version, **mine))
    assert seen == ["ok", "firing"]
    shown = await state_of(space, rule.id)
    assert shown.message == "3 runs or more failed within 10 minutes."
    assert await alerts(space) == ["Watch it"]
    async with space.database.transaction() as work:
        await work.execute(
            update(automation_run)
            .where(automation_run.c.workspace_id == space.id)
            .values(completed_at=ago(30))
        )
    assert await states(space, rule.id) == ["ok"]
    assert await alerts(space) == ["Watch it", "Resolved: Watch it"]
    (firing,) = await firings(space)
    assert (firing.resolution, firing.value) == ("over", 3)
    assert [event.type for event in await alert_events(space)] == ["alert.fired", "alert.resolved"]


async def test_a_search_among_failures_uses_the_filter_of_lists(space: Space) -> None:
    version = await make_automation(space)
    query = {"errorCode": "upstream_error", "failedNodeId": "pay", "text": "DECLINED"}
    rule = await make_rule(space, {"kind": "failures", "runs": 1, "minutes": 5, "query": query})
    await failed_run(space, version, "Declined.", node="elsewhere")
    await failed_run(space, version, "It fell.", node="pay")
    hit = failed_run(space, version, "It was declined.", node="pay")
    assert await states(space, rule.id, hit) == ["ok", "firing"]


@pytest.mark.parametrize(
    ("outcome", "last", "state"),
    [
        ("ended", failed_run, "ok"),
        ("ended", succeeded_run, "ok"),
        ("succeeded", failed_run, "firing"),
        ("succeeded", succeeded_run, "ok"),
    ],
)
async def test_nothing_has_run_since(space: Space, outcome: str, last: Any, state: str) -> None:
    version = await make_automation(space)
    query = {"automationId": version.automation_id}
    silence = {"kind": "silence", "minutes": 60, "outcome": outcome, "query": query}
    rule = await make_rule(space, silence)
    await succeeded_run(space, version, at=ago(61))
    await succeeded_run(space, version, source="test")
    await open_run(space, version)
    assert await states(space, rule.id) == ["ok"], "it has not watched for so long"
    await watched_for(space, 61)
    assert await states(space, rule.id) == ["firing"]
    await last(space, version)
    assert await states(space, rule.id) == [state]


async def test_a_run_takes_longer_than(space: Space) -> None:
    version = await make_automation(space)
    rule = await make_rule(space, {"kind": "duration", "minutes": 30})
    await open_run(space, version, created_at=ago(90), started_at=ago(29))
    await open_run(space, version, created_at=ago(90), started_at=None, status="queued")
    await succeeded_run(space, version, at=ago(90), started_at=ago(90), completed_at=utc_now())
    late = {"created_at": ago(40), "started_at": ago(31)}
    assert await states(space, rule.id) == ["ok"]
    run_id = await open_run(space, version, **late, status="waiting")
    assert await states(space, rule.id) == ["firing"]
    assert (await firings(space))[0].run_id == run_id
    async with space.database.transaction() as work:
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == run_id)
            .values(status="succeeded", completed_at=utc_now())
        )
    assert await states(space, rule.id) == ["ok"]


async def test_a_queued_run_is_older_than(space: Space) -> None:
    version, other = await make_automation(space), await make_automation(space)
    query = {"automationId": version.automation_id}
    rule = await make_rule(space, {"kind": "queue_age", "minutes": 10, "query": query})
    queued: dict[str, Any] = {"status": "queued", "created_at": ago(11)}
    await open_run(space, other, **queued)
    await open_run(space, version, status="queued", created_at=ago(9))
    await open_run(space, version, status="queued", created_at=ago(60), source="test")
    assert await states(space, rule.id, open_run(space, version, **queued)) == ["ok", "firing"]
    assert (await state_of(space, rule.id)).message == "A run has been queued for 11 minutes."


async def test_no_worker_has_been_there_since(space: Space, monkeypatch: Any) -> None:
    """Other tests have workers: here only one counts."""
    worker_id = new_id()

    async def own_sign(work: Any) -> Any:
        seen = select(worker_process.c.seen_at).where(worker_process.c.id == worker_id)
        return await work.scalar(seen)

    monkeypatch.setattr("models.core.lifecycle.lost_workers._FIND_SIGN", [own_sign])
    rule = await make_rule(space, {"kind": "worker_gone", "minutes": 5})
    async with space.database.transaction() as work:
        await beat(work, worker_id, "here", 1, [Queue.AUTOMATION])
    assert await states(space, rule.id) == ["ok"]
    async with space.database.transaction() as work:
        this = worker_process.c.id == worker_id
        await work.execute(update(worker_process).where(this).values(seen_at=ago(6)))
    assert await states(space, rule.id) == ["firing"]
    async with space.database.transaction() as work:
        await beat(work, worker_id, "here", 1, [Queue.AUTOMATION])
    assert await states(space, rule.id) == ["ok"]
    async with space.database.transaction() as work:
        await leave(work, worker_id)
    assert await states(space, rule.id) == ["ok"], "it ended in order a moment ago"
    async with space.database.transaction() as work:
        gone = (alert_rule.c.id == rule.id, alert_rule.c.pending_since.is_not(None))
        changed = await work.execute(update(alert_rule).where(*gone).values(pending_since=ago(6)))
        assert changed.rowcount == 1
    assert await states(space, rule.id) == ["firing"]


async def test_a_connection_fails(space: Space) -> None:
    body = CreateConnection.model_validate({"provider": "demo", "label": "Prices", "shared": True})
    async with space.database.transaction() as work:
        made = await create_connection(work, space.actor, space.keys, body)
    condition = {"kind": "connection_failing", "connectionId": made.id, "minutes": 10}
    rule = await make_rule(space, condition)

    async def fails(times: int) -> None:
        for _ in range(times):
            async with space.database.transaction() as work:
                await note_failure(work, space.id, made.id, "It answers 503.")

    async def since(minutes: float) -> None:
        async with space.database.transaction() as work:
            this = failing_connection.c.connection_id == made.id
            values = {"failing_since": ago(minutes)}
            await work.execute(update(failing_connection).where(this).values(values))

    assert await states(space, rule.id, fails(2), since(11), fails(1)) == [
        "ok",
        "ok",
        "ok",
        "firing",
    ]
    message = (await state_of(space, rule.id)).message
    assert message == "3 calls in a row failed within 11 minutes: It answers 503."
    async with space.database.transaction() as work:
        await note_success(work, space.id, made.id)
    assert await states(space, rule.id) == ["ok"]
    async with space.database.transaction() as work:
        await delete_connection(work, space.actor, made.id)
        assert not await work.rows(select(alert_rule).where(alert_rule.c.id == rule.id))
        await note_failure(work, space.id, made.id, "It is gone.")


async def test_no_rule_sees_what_happens_in_another_workspace(space: Space, foreign: Space) -> None:
    theirs = await make_automation(foreign)
    rules = [
        await make_rule(space, condition)
        for condition in (
            {"kind": "failures", "runs": 1, "minutes": 5},
            {"kind": "duration", "minutes": 5},
            {"kind": "queue_age", "minutes": 5},
        )
    ]
    await failed_run(foreign, theirs)
    await open_run(foreign, theirs, started_at=ago(60))
    await open_run(foreign, theirs, status="queued", created_at=ago(60))
    await evaluated(space)
    assert {(await state_of(space, rule.id)).state for rule in rules} == {"ok"}
    async with space.database.transaction() as work:
        of_it = automation_run.c.workspace_id == foreign.id
        await work.execute(delete(automation_run).where(of_it, automation_run.c.status == "queued"))
