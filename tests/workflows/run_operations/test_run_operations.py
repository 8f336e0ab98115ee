"""Operations over runs, carried out by production workers."""

from collections import Counter
from uuid import UUID

import pytest
from sqlalchemy import select, update

from models.automation.automation_runs.tables import automation_run
from models.automation.run_operations import commands
from models.automation.run_operations.queries import RunOperationShape, run_operation
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine, graph, node
from tests.support.patience import found_when
from tests.support.run_operations import accept, detail, ended, failed_runs, replays, results
from tests.support.run_rows import states
from tests.support.waits import event, waiting

pytestmark = pytest.mark.takes(seconds=20)

QUICK = graph(node("a", "transform", output={"ok": True}))
DAY = graph(node("pause", "delay", seconds=86_400))


def counts(shown: RunOperationShape) -> tuple[str, int | None, int, int, int]:
    return shown.status, shown.total, shown.succeeded, shown.skipped, shown.failed


async def statuses(engine: Engine, automation_id: UUID) -> Counter[str]:
    async with engine.database.transaction() as work:
        run = automation_run.c
        rows = await work.rows(select(run.status).where(run.automation_id == automation_id))
    return Counter(row.status for row in rows)


@pytest.mark.long
async def test_failed_runs_run_again_once_each(engine: Engine) -> None:
    automation = await engine.publish(QUICK)
    runs = await failed_runs(engine, automation.id, 600)
    wanted = {"automationId": str(automation.id), "status": "failed"}
    operation_id = await accept(engine, "retry", filter=wanted)
    assert counts(await ended(engine, operation_id)) == ("succeeded", 600, 600, 0, 0)

    async def all_done() -> Counter[str]:
        return await statuses(engine, automation.id)

    await found_when(all_done, lambda found: found["succeeded"] == 600)
    retried = await replays(engine)
    assert {run_id: retried[run_id] for run_id in runs} == dict.fromkeys(runs, 1)


@pytest.mark.long
async def test_two_operations_side_by_side_retry_each_run_once(engine: Engine) -> None:
    automation = await engine.publish(DAY)
    runs = await failed_runs(engine, automation.id, 600)
    named = [str(run_id) for run_id in runs]
    first = await accept(engine, "retry", runIds=named)
    second = await accept(engine, "retry", runIds=named[::-1])
    shown = [await ended(engine, one) for one in (first, second)]
    assert [one.total for one in shown] == [600, 600]
    assert sum(one.succeeded for one in shown) == 600
    assert sum(one.skipped for one in shown) == 600
    retried = await replays(engine)
    assert {run_id: retried[run_id] for run_id in runs} == dict.fromkeys(runs, 1)
    both = [await accept(engine, "cancel", filter={"status": "waiting"}) for _ in range(2)]
    for one in both:
        await ended(engine, one)


@pytest.mark.long
async def test_a_retry_repeats_what_failed_and_reuses_the_rest(
    engine: Engine, serve: Serve
) -> None:
    well, ill = await serve(reply()), await serve(reply(500), reply())
    content = graph(
        node("first", "http_request", method="POST", url=well.url),
        node("then", "http_request", method="POST", url=ill.url),
        edges=[("first", "then")],
    )
    run = await engine.run(content)
    assert run.status == "failed"
    operation_id = await accept(engine, "retry", runIds=[str(run.id)])
    assert counts(await ended(engine, operation_id)) == ("succeeded", 1, 1, 0, 0)
    (new,) = (await results(engine, operation_id)).results
    assert new.new_run_id is not None
    again = await engine.ended(run.automation_id, new.new_run_id)
    assert states(again) == {"first": "skipped", "then": "succeeded"}
    assert (len(well.requests), len(ill.requests)) == (1, 2)


@pytest.mark.long
async def test_a_paused_operation_continues_in_another_execution(engine: Engine) -> None:
    automation = await engine.publish(QUICK)
    runs = await failed_runs(engine, automation.id, 3)
    operation_id = await accept(engine, "retry", runIds=[str(run_id) for run_id in runs], rate=0.01)

    async def read() -> RunOperationShape:
        return await detail(engine, operation_id)

    await found_when(read, lambda one: one.done == 1)
    async with engine.database.transaction() as work:
        await commands.pause_operation(work, engine.actor, operation_id)
    first = engine.client.get_workflow_handle(WorkflowKind.RUN_OPERATION.workflow_id(operation_id))
    # Its timer of a minute is no reason to stay.
    assert await first.result() == "paused"
    assert counts(await read())[0] == "paused"
    async with engine.database.transaction() as work:
        this = run_operation.c.id == operation_id
        await work.execute(update(run_operation).where(this).values(rate=None, paced_until=None))
        await commands.resume_operation(work, engine.actor, operation_id)
    assert counts(await ended(engine, operation_id)) == ("succeeded", 3, 3, 0, 0)
    second = WorkflowKind.RUN_OPERATION.workflow_id(operation_id, "1")
    assert await engine.client.get_workflow_handle(second).result() == "succeeded"


@pytest.mark.long
async def test_a_cancel_ends_the_execution_and_what_is_done_stays(engine: Engine) -> None:
    automation = await engine.publish(DAY)
    runs = [await engine.start(automation.id) for _ in range(3)]
    named = [str(run_id) for run_id in runs]
    operation_id = await accept(engine, "cancel", runIds=named, rate=0.01)

    async def read() -> RunOperationShape:
        return await detail(engine, operation_id)

    await found_when(read, lambda one: one.done == 1)
    async with engine.database.transaction() as work:
        await commands.cancel_operation(work, engine.actor, operation_id)
    handle = engine.client.get_workflow_handle(WorkflowKind.RUN_OPERATION.workflow_id(operation_id))

    async def is_over() -> bool:
        return (await handle.describe()).close_time is not None

    await found_when(is_over, bool)
    assert counts(await read()) == ("cancelled", 3, 1, 0, 0)
    assert (await statuses(engine, automation.id))["cancelled"] == 1
    async with engine.database.transaction() as work:
        await commands.cancel_operation(work, engine.actor, operation_id)
    rest = await accept(engine, "cancel", filter={"automationId": str(automation.id)})
    assert counts(await ended(engine, rest)) == ("succeeded", 2, 2, 0, 0)


@pytest.mark.long
async def test_waiting_runs_are_given_an_event(engine: Engine) -> None:
    content = event(eventKey="bulk", filter="data.n > 1")
    places = [await waiting(engine, content) for _ in range(3)]
    other = await engine.start((await engine.publish(DAY)).id)
    named = [str(place[1]) for place in places]
    refused = await accept(engine, "resume", runIds=named, resume={"data": {"n": 1}})
    assert counts(await ended(engine, refused)) == ("succeeded", 3, 0, 0, 3)
    elsewhere = await accept(
        engine, "resume", runIds=[*named, str(other)], resume={"nodeId": "x", "data": {"n": 2}}
    )
    assert counts(await ended(engine, elsewhere)) == ("succeeded", 4, 0, 4, 0)
    operation_id = await accept(engine, "resume", runIds=named, resume={"data": {"n": 2}})
    assert counts(await ended(engine, operation_id)) == ("succeeded", 3, 3, 0, 0)
    for place in places:
        run = await engine.ended(*place)
        assert run.output == {"then": {"got": {"n": 2}}}
