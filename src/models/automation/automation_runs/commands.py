"""Accepting and cancelling runs. The answer is final when its transaction commits (design 3)."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select

from models.automation.automation_runs.acceptance import RunRequest, accept
from models.automation.automation_runs.cancellation import cancel_runs
from models.automation.automation_runs.execution import skip_nodes
from models.automation.automation_runs.plans import executed_plan
from models.automation.automation_runs.queries import (
    accepted_detail,
    detail,
    load_run,
)
from models.automation.automation_runs.rules import MAX_REPLAYS, RunSource
from models.automation.automation_runs.shapes import (
    AutomationRunDetail,
    RunFromNode,
    RunNow,
    RunScope,
    TestRun,
)
from models.automation.automation_runs.tables import AutomationRun, node_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.attributes import Attributes
from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.triggers.payloads import check_payload
from models.automation.automations.runnable_versions import RunnableVersion
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.errors import ValidationError

PAYLOAD_LIMIT = 1024 * 1024
"""Bytes of a run's payload as JSON (decisions C3)."""


async def run_now(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: RunNow, run_id: Id | None = None
) -> AutomationRunDetail:
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
    body: TestRun,
    run_id: Id | None = None,  # noqa: PT028  # no test
) -> AutomationRunDetail:
    """A queued test run of the draft, else the published version, or the one the body names.

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
    payload = _bounded(_test_payload(body, graph.get("testPayloads") or []))
    request = RunRequest(RunSource.TEST, payload, options, run_id=run_id)
    return await _accept(work, actor, version, request)


async def run_from_node(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: RunFromNode, run_id: Id | None = None
) -> AutomationRunDetail:
    """A queued run that starts at one node; what lies before it is reused, not repeated (D3)."""
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
    return await detail(work, actor, automation_id, run_id)


async def cancel(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id
) -> AutomationRunDetail:
    """Make an open run cancelled for ever, and the runs it waits for; a finished one is returned
    unchanged.

    The rows' locks make this final: a node starts before it or not at all.
    """
    await load_run(work, actor, automation_id, run_id)
    await cancel_runs(work, actor.workspace_id, [run_id])
    return await detail(work, actor, automation_id, run_id)


async def _accept(
    work: UnitOfWork, actor: Actor, version: RunnableVersion, request: RunRequest
) -> AutomationRunDetail:
    accepted = await accept(work, actor, version, request)
    if accepted.run is None or accepted.run.concurrency_key is not None or accepted.rests:
        return await detail(work, actor, version.automation_id, accepted.run_id)
    return await accepted_detail(work, accepted.run, accepted.node_count)


async def _replayed(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id | None
) -> AutomationRun | None:
    if run_id is None:
        return None
    return await load_run(work, actor, automation_id, run_id)


def _named_nodes(body: RunFromNode) -> list[tuple[str, str]]:
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
        raise ValidationError.at("scope", "An iteration is one of the run in replayOfRunId.")
    earlier = [uuid.UUID(run_id) for run_id in replayed.options.get("replays", ())]
    inside = node_run.c.scope_key.startswith(f"{scope_key}/", autoescape=True)
    node_id = await work.scalar(
        select(node_run.c.node_id)
        .where(
            node_run.c.workspace_id == replayed.workspace_id,
            node_run.c.run_id.in_([replayed.id, *earlier]),
            (node_run.c.scope_key == scope_key) | inside,
        )
        .limit(1)
    )
    if node_id is None:
        raise ValidationError.at("scope", "The run has no such loop iteration.")


def _executed(plan: Plan, node_id: str, options: JsonObject) -> Plan:
    try:
        return executed_plan(plan, node_id, options)
    except KeyError:
        raise ValidationError.at("scope", "The node is not in this loop iteration.") from None


def _from_node_options(body: RunFromNode, replayed: AutomationRun | None) -> JsonObject:
    options: JsonObject = {}
    if isinstance(body.scope, RunScope):
        options["scope"] = body.scope.model_dump(exclude_unset=True)
    if isinstance(body.nodes, dict):
        options["pinned"] = body.nodes
    if isinstance(body.nodes, list):
        options["only"] = body.nodes
    if replayed is not None:
        earlier = replayed.options.get("replays", [])
        options["replays"] = [str(replayed.id), *earlier][:MAX_REPLAYS]
    return options


def _test_payload(body: TestRun, test_payloads: list[JsonObject]) -> JsonObject:
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
        raise ValidationError.at("triggerPayload", "It is larger than 1 MiB.")
    return payload
