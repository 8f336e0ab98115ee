"""Accepting and cancelling runs. The answer is final when its transaction commits (design 3)."""

import json
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Row, func, insert, select, update

from models.access.rules import Actor
from models.automation_runs.execution import close_nodes, skip_nodes
from models.automation_runs.queries import detail, load_run, run_metadata
from models.automation_runs.rules import OPEN_RUN, RunSource, RunStatus
from models.automation_runs.shapes import AutomationRunDetail, RunFromNode, RunNow, TestRun
from models.automation_runs.tables import automation_run
from models.automations import graphs
from models.automations.queries import read_graph
from models.automations.rules.payloads import check_payload
from models.automations.rules.plan import Plan
from models.automations.tables import automation, automation_graph, automation_version
from models.automations.versions import foreign_version, issues_error
from models.base import Id, JsonObject
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, RunError, ValidationError
from runtime.families import Family
from runtime.ids import new_id

PAYLOAD_LIMIT = 1024 * 1024
"""Bytes of a run's payload as JSON (decisions C3)."""

UNPUBLISHED = "The automation has no published version. Publish its draft, then run it."
DISABLED = "The automation is disabled. Enable it, then run it."

_PRIORITY = {RunSource.TEST: 2, RunSource.MANUAL: 2, RunSource.FROM_NODE: 2}
"""Temporal priorities: what a person waits for goes before what a trigger started (D1)."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A run about to be accepted."""

    source: RunSource
    payload: JsonObject
    options: JsonObject = field(default_factory=dict)
    start_node_id: str | None = None
    replay_of_run_id: Id | None = None


async def run_now(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: RunNow
) -> AutomationRunDetail:
    """A queued run of the published version. Raises RunError unless published and enabled."""
    version = await _published(work, actor, automation_id)
    payload = _bounded(body.trigger_payload or {})
    check_payload(version.trigger_config, payload)
    return await _accept(work, actor, version, _Request(RunSource.MANUAL, payload))


async def test_run(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: TestRun
) -> AutomationRunDetail:
    """A queued test run of the draft, else the published version, or the one the body names.

    Raises RunError when there is no version, ValidationError when its graph has issues.
    """
    if body.automation_version_id is not None:
        version = await _named(work, actor, automation_id, body.automation_version_id)
    else:
        newest = func.coalesce(automation.c.draft_version_id, automation.c.published_version_id)
        version = await _version(work, actor, automation_id, newest)
        if version.version_id is None:
            raise RunError("The automation has no version yet. Give it a graph, then test it.")
    plan, graph = await _compiled(work, actor, automation_id, version)
    stop_at = body.stop_at_node_id
    if stop_at is not None and stop_at not in plan.nodes_by_id():
        raise ValidationError.at("stopAtNodeId", f'The version has no node "{stop_at}".')
    options: JsonObject = {"mocks": body.mocks, "simulate": body.simulate}
    if stop_at is not None:
        options["stopAtNodeId"] = stop_at
    payload = _bounded(_test_payload(body, graph.get("testPayloads") or []))
    return await _accept(work, actor, version, _Request(RunSource.TEST, payload, options))


async def run_from_node(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: RunFromNode
) -> AutomationRunDetail:
    """A queued run that starts at one node; what lies before it is reused, not repeated (D3)."""
    if body.automation_version_id is not None:
        version = await _named(work, actor, automation_id, body.automation_version_id)
    else:
        version = await _published(work, actor, automation_id)
    plan, _ = await _compiled(work, actor, automation_id, version)
    nodes = plan.nodes_by_id()
    if body.node_id not in nodes:
        raise ValidationError.at("nodeId", f'The version has no node "{body.node_id}".')
    only = body.nodes if isinstance(body.nodes, list) else None
    for index, node_id in enumerate(only or []):
        if node_id not in nodes:
            raise ValidationError.at(f"nodes.{index}", f'The version has no node "{node_id}".')
    replayed = await _replayed(work, actor, automation_id, body.replay_of_run_id)
    payload = body.trigger_payload
    if payload is None:
        payload = replayed.trigger_payload if replayed is not None else {}
    request = _Request(
        RunSource.FROM_NODE,
        _bounded(payload),
        _from_node_options(body, only),
        start_node_id=body.node_id,
        replay_of_run_id=body.replay_of_run_id,
    )
    run_id = await _insert(work, actor, version, request)
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
    work: UnitOfWork, actor: Actor, version: Row[Any], request: _Request
) -> AutomationRunDetail:
    run_id = await _insert(work, actor, version, request)
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


async def _insert(work: UnitOfWork, actor: Actor, version: Row[Any], request: _Request) -> Id:
    run_id = new_id()
    await work.execute(
        insert(automation_run).values(
            id=run_id,
            workspace_id=actor.workspace_id,
            automation_id=version.automation_id,
            automation_version_id=version.version_id,
            graph_checksum=version.checksum,
            status=RunStatus.QUEUED,
            source=request.source,
            trigger_payload=request.payload,
            options=request.options,
            start_node_id=request.start_node_id,
            replay_of_run_id=request.replay_of_run_id,
            created_by_user_id=actor.user_id,
            created_at=work.now,
        )
    )
    await outbox.append(
        work,
        intent=outbox.Intent.START,
        family=Family.AUTOMATION_RUN,
        workspace_id=actor.workspace_id,
        subject_id=run_id,
        facts={
            "summary": summary(version.label, version.version, request.source),
            "resourceId": str(version.automation_id),
            "source": request.source,
            "priority": _PRIORITY[request.source],
        },
    )
    return run_id


def summary(label: str, version: int, source: RunSource) -> str:
    """What an operator reads on the run in the Temporal UI; at most 200 bytes (ecosystem 2.3)."""
    tail = f" · v{version} · {source}"
    room = 200 - len(tail.encode())
    return label.encode()[:room].decode(errors="ignore") + tail


async def _published(work: UnitOfWork, actor: Actor, automation_id: Id) -> Row[Any]:
    row = await _version(work, actor, automation_id, automation.c.published_version_id)
    if row.version_id is None:
        raise RunError(UNPUBLISHED)
    if not row.enabled:
        raise RunError(DISABLED)
    return row


async def _named(work: UnitOfWork, actor: Actor, automation_id: Id, version_id: Id) -> Row[Any]:
    own = (
        select(automation_version.c.id)
        .where(
            automation_version.c.id == version_id,
            automation_version.c.automation_id == automation_id,
        )
        .scalar_subquery()
    )
    row = await _version(work, actor, automation_id, own)
    if row.version_id is None:
        raise foreign_version()
    return row


async def _version(
    work: UnitOfWork, actor: Actor, automation_id: Id, version_id: ColumnElement[Any]
) -> Row[Any]:
    """The automation with one of its versions; `version_id` is null when there is none such."""
    row = await work.first(
        select(
            automation.c.id.label("automation_id"),
            automation.c.label,
            automation.c.enabled,
            automation_version.c.id.label("version_id"),
            automation_version.c.version,
            automation_version.c.checksum,
            automation_graph.c.trigger_config,
            func.jsonb_array_length(automation_graph.c.graph["nodes"]).label("node_count"),
        )
        .outerjoin(automation_version, automation_version.c.id == version_id)
        .outerjoin(
            automation_graph,
            (automation_graph.c.automation_id == automation_version.c.automation_id)
            & (automation_graph.c.checksum == automation_version.c.checksum),
        )
        .where(automation.c.workspace_id == actor.workspace_id, automation.c.id == automation_id)
    )
    if row is None:
        raise NotFoundError("automation")
    return row


async def _compiled(
    work: UnitOfWork, actor: Actor, automation_id: Id, version: Row[Any]
) -> tuple[Plan, JsonObject]:
    """The plan and content of a version that compiles today. Raises ValidationError."""
    content: JsonObject = await work.scalar(
        select(automation_graph.c.graph).where(
            automation_graph.c.automation_id == automation_id,
            automation_graph.c.checksum == version.checksum,
        )
    )
    graph = read_graph(content)
    compiled = await graphs.compile_in(
        work, actor.workspace_id, automation_id, version.trigger_config, graph
    )
    if compiled.plan is None or compiled.issues:
        raise issues_error(compiled)
    await graphs.store(
        work, actor.workspace_id, automation_id, version.trigger_config, graph, compiled
    )
    return compiled.plan, content


async def _replayed(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id | None
) -> Row[Any] | None:
    if run_id is None:
        return None
    return await load_run(work, actor, automation_id, run_id)


def _from_node_options(body: RunFromNode, only: list[str] | None) -> JsonObject:
    if isinstance(body.scope, str) and body.scope != "":
        raise ValidationError.at("scope", "The run has no such loop iteration.")
    options: JsonObject = {}
    if isinstance(body.scope, dict):
        options["scope"] = body.scope
    if isinstance(body.nodes, dict):
        options["pinned"] = body.nodes
    if only is not None:
        options["only"] = only
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
    if len(json.dumps(payload).encode()) > PAYLOAD_LIMIT:
        raise ValidationError.at("triggerPayload", "It is larger than 1 MiB.")
    return payload
