"""Runs asked for now, as tests, from a node, in batches or by schedules, and cancelled."""

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from models.automation.automation_runs import queries, shapes, slots
from models.automation.automation_runs.acceptance import RunRequest, accept, accept_live, key_of
from models.automation.automation_runs.execution import skip_nodes
from models.automation.automation_runs.open_runs import cancel_runs
from models.automation.automation_runs.rules import MAX_REPLAYS, OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.run_header import automation_actor, executed_plan
from models.automation.automation_runs.tables import AutomationRun, automation_run, node_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.attributes import Attributes
from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.triggers.configs import check_payload, read_trigger
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.automations.schedules import AUTOMATION_SCHEDULES, NO_SCHEDULE
from models.automation.automations.shapes import Backfill, Backfilled
from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, Received
from models.automation.inbox.store import keep
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionError
from models.core.schedules import timetables
from models.core.schedules.commands import scheduled, set_next_run
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError, RunError, ValidationError
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.temporal.workflow_kinds import WorkflowKind

PAYLOAD_LIMIT = 1024 * 1024
"""Bytes of a run's payload as JSON (interface.md#limits)."""


async def run_now(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: shapes.RunNow, run_id: Id | None = None
) -> shapes.AutomationRunDetail:
    """A queued run of the published version. Raises RunError unless published and enabled.

    A run that has the id already is that of an earlier call, here as below.
    """
    version = await runnable_versions.published(work, actor, automation_id)
    request = manual_request(version, body.trigger_payload or {}, body.attributes)
    return await _accept(work, actor, version, replace(request, run_id=run_id))


def manual_request(
    version: RunnableVersion, payload: JsonObject, attributes: Attributes
) -> RunRequest:
    """A person's request. Raises ValidationError for a payload that the trigger does not take."""
    check_payload(version.trigger_config, _bounded(payload))
    return RunRequest(RunSource.MANUAL, payload, attributes=attributes)


async def test_run(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    body: shapes.TestRun,
    run_id: Id | None = None,  # noqa: PT028  # no test
    redacted: Sequence[str] = (),  # noqa: PT028  # no test
) -> shapes.AutomationRunDetail:
    """A queued test run of the draft, else the published version, or the one the body names.

    `redacted` are the paths of its payload that lack the values that came.

    Raises RunError when there is no version, ValidationError when its graph has issues.
    """
    if body.automation_version_id is not None:
        version = await runnable_versions.named(
            work, actor, automation_id, body.automation_version_id
        )
    else:
        version = await runnable_versions.newest(work, actor, automation_id)
    plan, graph = await runnable_versions.compiled(work, actor, automation_id, version)
    stop_at = body.stop_at_node_id
    if stop_at is not None:
        _require_nodes(plan, [("stopAtNodeId", stop_at)])
    _require_nodes(plan, [(f"mocks.{node_id}", node_id) for node_id in body.mocks])
    options: JsonObject = {
        "mocks": body.mocks,
        "simulate": body.simulate,
        "triggerFailureAutomation": body.trigger_failure_automation,
    }
    if stop_at is not None:
        options["stopAtNodeId"] = stop_at
    if redacted:
        options[shapes.REDACTED_PATHS] = [*redacted]
    payload = _bounded(_test_payload(body, graph.get("testPayloads") or []))
    request = RunRequest(RunSource.TEST, payload, options, run_id=run_id)
    return await _accept(work, actor, version, request)


async def run_from_node(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    body: shapes.RunFromNode,
    run_id: Id | None = None,
) -> shapes.AutomationRunDetail:
    """A queued run that starts at one node; what lies before it is reused, not repeated.

    See interface.md#runs-from-a-node.
    """
    if body.automation_version_id is not None:
        version = await runnable_versions.named(
            work, actor, automation_id, body.automation_version_id
        )
    else:
        version = await runnable_versions.published(work, actor, automation_id)
    plan, _ = await runnable_versions.compiled(work, actor, automation_id, version)
    _require_nodes(plan, [("nodeId", body.node_id), *_named_nodes(body)])
    replayed = await _replayed(work, actor, automation_id, body.replay_of_run_id)
    payload = body.trigger_payload
    if payload is None:
        payload = replayed.trigger_payload if replayed is not None else {}
    options = _from_node_options(body, replayed)
    if isinstance(body.scope, str) and body.scope:
        await _require_iteration(work, replayed, body.scope)
        options["scopeKey"] = body.scope
    executed = _executed(plan, body.node_id, options)
    request = RunRequest(
        RunSource.FROM_NODE,
        _bounded(payload),
        options,
        attributes=(replayed and replayed.attributes) or {},
        start_node_id=body.node_id,
        replay_of_run_id=body.replay_of_run_id,
        run_id=run_id,
    )
    run_id = (await accept(work, actor, version, request)).run_id
    kept = executed.nodes_by_id()
    reused = [(node.id, "", node.kind) for node in plan.nodes if node.id not in kept]
    await skip_nodes(work, actor.workspace_id, run_id, reused, outcome="reused")
    return await queries.detail(work, actor, automation_id, run_id)


async def cancel(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id
) -> shapes.AutomationRunDetail:
    """Make an open run cancelled for ever, and the runs it waits for; a finished one is returned
    unchanged.

    The rows' locks make this final: a node starts before it or not at all.
    """
    await queries.load_run(work, actor, automation_id, run_id)
    await cancel_runs(work, actor.workspace_id, [run_id])
    return await queries.detail(work, actor, automation_id, run_id)


async def _accept(
    work: UnitOfWork, actor: Actor, version: RunnableVersion, request: RunRequest
) -> shapes.AutomationRunDetail:
    accepted = await accept(work, actor, version, request)
    if accepted.run is None or accepted.run.concurrency_key is not None or accepted.paused:
        return await queries.detail(work, actor, version.automation_id, accepted.run_id)
    return await queries.accepted_detail(work, accepted.run, accepted.node_count)


async def _replayed(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id | None
) -> AutomationRun | None:
    if run_id is None:
        return None
    return await queries.load_run(work, actor, automation_id, run_id)


def _named_nodes(body: shapes.RunFromNode) -> list[tuple[str, str]]:
    """The nodes that `nodes` pins or restricts to, each with its place in the body."""
    if isinstance(body.nodes, list):
        return [(f"nodes.{index}", node_id) for index, node_id in enumerate(body.nodes)]
    return [(f"nodes.{node_id}", node_id) for node_id in body.nodes or {}]


def _require_nodes(plan: Plan, named: Sequence[tuple[str, str]]) -> None:
    """Raises ValidationError for names that are no nodes of the plan."""
    known = plan.nodes_by_id()
    for path, node_id in named:
        if node_id not in known:
            raise ValidationError.at(path, f'The version has no node "{shorten(node_id)}".')


async def _require_iteration(
    work: UnitOfWork, replayed: AutomationRun | None, scope_key: str
) -> None:
    """Raises ValidationError unless the replayed run, or one it replays, had the iteration."""
    if replayed is None:
        raise ValidationError.at("scope", "Choose an iteration of the run in replayOfRunId.")
    earlier = [uuid.UUID(run_id) for run_id in replayed.options.get("replays", ())]
    inside = node_run.c.scope_key.startswith(f"{scope_key}/", autoescape=True)
    node_id = await work.scalar(
        sa.select(node_run.c.node_id)
        .where(
            node_run.c.workspace_id == replayed.workspace_id,
            node_run.c.run_id.in_([replayed.id, *earlier]),
            (node_run.c.scope_key == scope_key) | inside,
        )
        .limit(1)
    )
    if node_id is None:
        raise ValidationError.at("scope", "Loop iteration not found in the run.")


def _executed(plan: Plan, node_id: str, options: JsonObject) -> Plan:
    try:
        return executed_plan(plan, node_id, options)
    except KeyError:
        raise ValidationError.at("scope", "The node is not in this loop iteration.") from None


def _from_node_options(body: shapes.RunFromNode, replayed: AutomationRun | None) -> JsonObject:
    options: JsonObject = {}
    if isinstance(body.scope, shapes.RunScope):
        options["scope"] = body.scope.model_dump(exclude_unset=True)
    if isinstance(body.nodes, dict):
        options["pinned"] = body.nodes
    if isinstance(body.nodes, list):
        options["only"] = body.nodes
    if replayed is not None:
        earlier = replayed.options.get("replays", [])
        options["replays"] = [str(replayed.id), *earlier][:MAX_REPLAYS]
    return options


def _test_payload(body: shapes.TestRun, test_payloads: list[JsonObject]) -> JsonObject:
    explicit = body.trigger_payload if body.trigger_payload is not None else body.payload
    if explicit is not None:
        return explicit
    if body.test_payload_id is None:
        chosen = test_payloads[:1]
    else:
        chosen = [entry for entry in test_payloads if entry["id"] == body.test_payload_id]
        if not chosen:
            raise ValidationError.at("testPayloadId", "The version has no such test payload.")
    return chosen[0].get("payload") or {} if chosen else {}


def _bounded(payload: JsonObject) -> JsonObject:
    if len(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")) > PAYLOAD_LIMIT:
        raise ValidationError.at("triggerPayload", "Must be at most 1 MiB.")
    return payload


_runs = automation_run.c


async def run_batch(
    work: UnitOfWork, actor: Actor, automation_id: Id, batch_id: Id, body: shapes.RunBatch
) -> shapes.RunsBatched:
    """A queued run of the published version for each payload that it takes, in their order.

    Raises RunError unless published and enabled.
    """
    run_ids = run_ids_of(batch_id)
    version = await runnable_versions.published(work, actor, automation_id)
    await _lock_slots(work, version, body.payloads)
    attributes = body.attributes or [{}] * len(body.payloads)
    results = [
        await _run(work, actor, version, run_id, payload, own)
        for run_id, payload, own in zip(run_ids, body.payloads, attributes, strict=False)
    ]
    accepted = sum(result.accepted for result in results)
    refused = len(results) - accepted
    return shapes.RunsBatched(id=batch_id, accepted=accepted, refused=refused, results=results)


async def get_batch(
    work: UnitOfWork, actor: Actor, automation_id: Id, batch_id: Id
) -> shapes.RunBatchDetail:
    """The runs of a batch as they are now, in their order. Raises NotFoundError without any.

    A batch is no row of its own: the ids of its runs follow from its id.
    """
    run_ids = sa.any_(sa.literal(run_ids_of(batch_id), sa.ARRAY(sa.Uuid)))
    rows = await work.rows(
        sa.select(_runs.id, _runs.status, _runs.created_at)
        .where(
            _runs.workspace_id == actor.workspace_id,
            _runs.automation_id == automation_id,
            _runs.id == run_ids,
        )
        .order_by(_runs.id)
    )
    if not rows:
        raise NotFoundError("batch")
    return shapes.RunBatchDetail(
        id=batch_id,
        created_at=rows[0].created_at,
        accepted=len(rows),
        open=sum(row.status in OPEN_RUN for row in rows),
        statuses=Counter(RunStatus(row.status) for row in rows),
        runs=[shapes.RunOfBatch(run_id=row.id, status=RunStatus(row.status)) for row in rows],
    )


def run_ids_of(batch_id: Id) -> list[Id]:
    """The ids that the runs of a batch may have, in the order of their payloads."""
    return [Id(int=(batch_id.int + number) % 2**128) for number in range(1, shapes.MOST_RUNS + 1)]


async def _run(
    work: UnitOfWork,
    actor: Actor,
    version: RunnableVersion,
    run_id: Id,
    payload: JsonObject,
    attributes: Attributes,
) -> shapes.BatchedRun:
    # Both refuse before they write anything.
    try:
        request = manual_request(version, payload, attributes)
        run = await accept(work, actor, version, replace(request, run_id=run_id))
    except ValidationError as error:
        details = [shapes.PayloadFault(path=one.path, message=one.message) for one in error.details]
        return shapes.BatchedRun(
            accepted=False, error=error.code, message=error.message, details=details or None
        )
    except RunError as error:
        return shapes.BatchedRun(accepted=False, error=error.code, message=error.message)
    return shapes.BatchedRun(accepted=True, run_id=run.run_id, status=RunStatus.QUEUED)


async def _lock_slots(
    work: UnitOfWork, version: RunnableVersion, payloads: Sequence[JsonObject]
) -> None:
    """Take the locks of all keys in one order: two batches would else wait for each other."""
    limits = version.trigger_config.get("concurrency")
    if limits is None:
        return
    keys = set()
    for payload in payloads:
        try:
            keys.add(await evaluate_bounded(partial(key_of, limits, payload)))
        except ExpressionError:
            continue
    for key in sorted(keys):
        await slots.lock(work, version.automation_id, key)


MAX_BACKFILL = 1_000
"""Due times of one backfill."""


@dataclass(frozen=True, slots=True)
class DueRun:
    """An open run of a due time, and the request that starts it in Temporal.

    Its id follows from its automation and its due time, so that no due time has two runs.
    """

    run_id: Id
    workspace_id: Id
    request: JsonObject


async def fire(work: UnitOfWork, automation_id: Id, due: datetime) -> DueRun | None:
    """The run of a due time that has come, which the caller starts and waits for.

    None when there is nothing to wait for: the automation has no schedule any more, is disabled or
    archived, has no slot for it, or the run has ended already.
    """
    schedule = await scheduled(work, AUTOMATION_SCHEDULES, automation_id)
    if schedule is None:
        return None
    await set_next_run(work, AUTOMATION_SCHEDULES, automation_id, schedule.next_after(work.now))
    version = await runnable_versions.live(work, schedule.workspace_id, automation_id)
    came = partial(_due_time, schedule, due)
    if version is None:
        _, reason = await runnable_versions.dormant(work, schedule.workspace_id, automation_id)
        if reason is not None:
            await keep(work, came(), {automation_id: Judgement(EventOutcome(reason))})
        return None
    actor = automation_actor(schedule.workspace_id, automation_id)
    request = _request(version, due, RunSource.SCHEDULE, started_by_caller=True)
    accepted = await accept_live(work, actor, version, request)
    await keep(work, came(request.payload), {automation_id: accepted.judgement})
    run_id = accepted.run_id
    start = await slots.accepted_start_request(work, run_id)
    status = await work.scalar(
        sa.select(automation_run.c.status).where(automation_run.c.id == run_id)
    )
    if status not in OPEN_RUN or start is None:
        return None
    return DueRun(run_id, schedule.workspace_id, dict(start))


def _due_time(
    schedule: timetables.DesiredSchedule, due: datetime, payload: JsonObject | None = None
) -> Received:
    """The event of a due time; the same each time that it fires."""
    return Received(
        derived_id(schedule.subject_id, wire_timestamp(due), "event"),
        schedule.workspace_id,
        EventSource.SCHEDULE,
        schedule.subject_id,
        payload or {"scheduledAt": wire_timestamp(due), "timezone": schedule.timing.timetable.zone},
    )


async def keep_passed_over(
    work: UnitOfWork, schedule: timetables.DesiredSchedule, counts: timetables.PassedOverCounts
) -> None:
    """Keep that due times of a schedule had no run: late ones, and those during an earlier run."""
    before = schedule.passed_over
    late, during = counts.missed - before.missed, counts.skipped - before.skipped
    if late <= 0 and during <= 0:
        # None, or the counts of a schedule that was created anew.
        return
    passed = {"late": max(late, 0), "duringAnEarlierRun": max(during, 0)}
    event_id = derived_id(schedule.subject_id, counts.missed, counts.skipped, "passed over")
    event = Received(
        event_id, schedule.workspace_id, EventSource.SCHEDULE, schedule.subject_id, passed
    )
    await keep(
        work, event, {schedule.subject_id: Judgement(EventOutcome.PASSED_OVER, detail=passed)}
    )


async def backfill(work: UnitOfWork, actor: Actor, automation_id: Id, body: Backfill) -> Backfilled:
    """Accept a run for every due time of a period that has none yet.

    They start like any accepted runs, under the running cap of their workspace; the schedule's
    overlap is not theirs, but `triggerConfig.concurrency` is. Raises RunError unless the automation
    is published with a schedule and enabled, ValidationError for a period that is none, is not over
    or has too many due times.
    """
    version = await runnable_versions.published(work, actor, automation_id)
    trigger = read_trigger(version.trigger_config)
    if not isinstance(trigger, ScheduleTrigger):
        raise RunError(NO_SCHEDULE)
    if body.start >= body.end:
        raise ValidationError.at("from", "Must be before `to`.")
    if body.end > work.now:
        raise ValidationError.at("to", "Must not be in the future.")
    due = trigger.timetable.between(body.start, body.end, MAX_BACKFILL + 1)
    if len(due) > MAX_BACKFILL:
        raise ValidationError.at(
            "from", f"The period has more than {MAX_BACKFILL:,} due times. Choose a shorter period."
        )
    created = 0
    for moment in due:
        request = _request(version, moment, RunSource.BACKFILL)
        created += (await accept_live(work, actor, version, request)).created
    return Backfilled(start=body.start, end=body.end, count=len(due), created=created)


def _request(
    version: RunnableVersion, due: datetime, source: RunSource, *, started_by_caller: bool = False
) -> RunRequest:
    timezone = version.trigger_config["timezone"]
    schedule_id = WorkflowKind.AUTOMATION_SCHEDULE.workflow_id(version.automation_id)
    trigger = read_trigger(version.trigger_config)
    note = (
        timetables.fire_note(trigger.timetable, due)
        if isinstance(trigger, ScheduleTrigger)
        else None
    )
    return RunRequest(
        source,
        {"scheduledAt": wire_timestamp(due), "timezone": timezone},
        options={} if note is None else {shapes.SCHEDULE_NOTE: note},
        run_id=timetables.due_run_id(schedule_id, due),
        started_by_caller=started_by_caller,
    )
