"""Accepting and cancelling runs. The answer is final when its transaction commits (design 3)."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, update

from models.access.rules import Actor
from models.automation_runs import runnable
from models.automation_runs.acceptance import RunRequest, accept
from models.automation_runs.execution import close_nodes, skip_nodes
from models.automation_runs.queries import detail, load_run, run_metadata
from models.automation_runs.rules import OPEN_RUN, RunSource, RunStatus
from models.automation_runs.shapes import (
    AutomationRunDetail,
    RunFromNode,
    RunNow,
    RunScope,
    TestRun,
)
from models.automation_runs.tables import automation_run
from models.automations.rules.kinds import shorten
from models.automations.rules.payloads import check_payload
from models.automations.rules.plan import Plan
from models.base import Id, JsonObject
from runtime import outbox
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.families import Family

PAYLOAD_LIMIT = 1024 * 1024
"""Bytes of a run's payload as JSON (decisions C3)."""

MAX_REPLAYS = 20
"""Runs behind a replay of replays whose outputs it can still reuse."""


async def run_now(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: RunNow
) -> AutomationRunDetail:
    """A queued run of the published version. Raises RunError unless published and enabled."""
    version = await runnable.published(work, actor, automation_id)
    payload = _bounded(body.trigger_payload or {})
    check_payload(version.trigger_config, payload)
    return await _accept(work, actor, version, RunRequest(RunSource.MANUAL, payload))


async def test_run(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: TestRun
) -> AutomationRunDetail:
    """A queued test run of the draft, else the published version, or the one the body names.

    Raises RunError when there is no version, ValidationError when its graph has issues.
    """
    if body.automation_version_id is not None:
        version = await runnable.named(work, actor, automation_id, body.automation_version_id)
    else:
        version = await runnable.newest(work, actor, automation_id)
    plan, graph = await runnable.compiled(work, actor, automation_id, version)
    stop_at = body.stop_at_node_id
    if stop_at is not None:
        _require_nodes(plan, [("stopAtNodeId", stop_at)])
    _require_nodes(plan, [(f"mocks.{node_id}", node_id) for node_id in body.mocks])
    options: JsonObject = {"mocks": body.mocks, "simulate": body.simulate}
    if stop_at is not None:
        options["stopAtNodeId"] = stop_at
    payload = _bounded(_test_payload(body, graph.get("testPayloads") or []))
    return await _accept(work, actor, version, RunRequest(RunSource.TEST, payload, options))


async def run_from_node(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: RunFromNode
) -> AutomationRunDetail:
    """A queued run that starts at one node; what lies before it is reused, not repeated (D3)."""
    if body.automation_version_id is not None:
        version = await runnable.named(work, actor, automation_id, body.automation_version_id)
    else:
        version = await runnable.published(work, actor, automation_id)
    plan, _ = await runnable.compiled(work, actor, automation_id, version)
    _require_nodes(plan, [("nodeId", body.node_id), *_named_nodes(body)])
    replayed = await _replayed(work, actor, automation_id, body.replay_of_run_id)
    payload = body.trigger_payload
    if payload is None:
        payload = replayed.trigger_payload if replayed is not None else {}
    request = RunRequest(
        RunSource.FROM_NODE,
        _bounded(payload),
        _from_node_options(body, replayed),
        start_node_id=body.node_id,
        replay_of_run_id=body.replay_of_run_id,
    )
    run_id = await accept(work, actor, version, request)
    kept = plan.restricted(body.node_id).nodes_by_id()
    reused = [(node.id, "", node.kind) for node in plan.nodes if node.id not in kept]
    await skip_nodes(work, actor.workspace_id, run_id, reused, outcome="reused")
    return await detail(work, actor, automation_id, run_id)


async def cancel(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id
) -> AutomationRunDetail:
    """Make an open run cancelled for ever; a finished one is returned unchanged.

    The row's lock makes this final: a node starts before it or not at all.
    """
    run = await load_run(work, actor, automation_id, run_id, lock=True)
    # Waiting for the lock takes time: no node that started meanwhile may seem to start after this.
    work.now = utc_now()
    if run.status in OPEN_RUN:
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == run_id)
            .values(status=RunStatus.CANCELLED, completed_at=work.now)
        )
        await close_nodes(work, run_id)
        if not await outbox.withdraw_start(work, run_id):
            await outbox.append(
                work,
                intent=outbox.Intent.CANCEL,
                family=Family.AUTOMATION_RUN,
                workspace_id=actor.workspace_id,
                subject_id=run_id,
            )
    return await detail(work, actor, automation_id, run_id)


async def _accept(
    work: UnitOfWork, actor: Actor, version: Any, request: RunRequest
) -> AutomationRunDetail:
    run_id = await accept(work, actor, version, request)
    return AutomationRunDetail(
        id=run_id,
        automation_id=version.automation_id,
        automation_version_id=version.version_id,
        workspace_id=actor.workspace_id,
        status=RunStatus.QUEUED,
        source=request.source,
        created_at=work.now,
        started_at=None,
        completed_at=None,
        trigger_payload=request.payload,
        output=None,
        error=None,
        start_node_id=request.start_node_id,
        replay_of_run_id=request.replay_of_run_id,
        metadata=run_metadata(run_id, [], version.node_count),
        node_runs=[],
    )


async def _replayed(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id | None
) -> Row[Any] | None:
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


def _from_node_options(body: RunFromNode, replayed: Row[Any] | None) -> JsonObject:
    if isinstance(body.scope, str) and body.scope != "":
        raise ValidationError.at("scope", "The run has no such loop iteration.")
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
