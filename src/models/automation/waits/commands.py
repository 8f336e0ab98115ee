"""Commands that resume waiting nodes: a decision, a resume URL, a published event.

The answer of a command is final when its transaction commits (interface.md#cost-of-nodes).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import sqlalchemy as sa
from pydantic import Field, RootModel

from models.automation.automation_runs.node_queries import node_status
from models.automation.automation_runs.node_writes import NodeKey, hold_run
from models.automation.automation_runs.queries import RUN, detail, load_run, oldest_open, run_of
from models.automation.automation_runs.rules import OPEN_NODE, OPEN_RUN, HeldRun
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.automations.queries import visible
from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind
from models.automation.automations.rules.graph.wait_configs import EventKey
from models.automation.waits import rules, store
from models.automation.waits.links import NodeAddress
from models.automation.waits.queries import RunGraph, asks, graph_of, show_waits
from models.automation.waits.store import RunWait, automation_event, run_wait
from models.core.access.rules import Actor, Level, PrincipalType, Scope
from models.core.base import Id, Input, JsonObject, Shape, example
from runtime.clock import utc_now, wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, PlatformError, ValidationError
from runtime.ids import new_id
from runtime.processes.bounded_processes import evaluate_bounded

MAX_SCOPE = 500


class ResumeNode(Input):
    """Body of resume: a decision for an approval, data for a node that waits for an event."""

    model_config = example({"decision": "approved", "comment": "Go ahead."})

    decision: Literal["approved", "rejected"] | None = None
    comment: Annotated[str, Field(max_length=10_000)] | None = None
    data: JsonObject | None = None
    scope_key: Annotated[str, Field(max_length=MAX_SCOPE)] = ""


class ResumeData(RootModel[JsonObject]):
    """Body of a call to a resume URL: the data itself."""

    root: JsonObject = Field(default_factory=dict)


class PublishEvent(Input):
    """Body of an event: every node that waits for its key continues with its data."""

    model_config = example({"eventKey": "order-1042", "data": {"paid": True}})

    event_key: EventKey
    data: JsonObject = Field(default_factory=dict)


class Resumed(Shape):
    """The number of `resumed` nodes; one that does not wait yet continues when it would."""

    resumed: int


DATA_LIMIT = 256 * 1024
"""Bytes of the data that a node is resumed with, as JSON: it becomes the node's output."""

MAX_EARLY = 100
"""Responses kept for a node that does not wait yet."""


async def resume(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    run_id: Id,
    node_id: str,
    body: ResumeNode,
) -> AutomationRunDetail:
    """Decide an approval, or give a node the event it waits for; the run with its node runs.

    Who is asked may decide by a session whatever else they may do, and is then shown what they may
    see; others need automations:write and edit access, and a node that lets them. A key needs
    automations:write whoever it is bound to: it decides for no one it was not made to decide for.
    The same decision again changes nothing.
    """
    if actor.principal.type is not PrincipalType.SESSION:
        _require_scope(actor)
    is_assignee = await asks(work, actor, automation_id, run_id, node_id, body.scope_key)
    if not is_assignee:
        await _require_edit(work, actor, automation_id)
    run = await load_run(work, actor, automation_id, run_id, lock=True)
    # The lock may have taken time to get: the response counts from now.
    work.now = utc_now()
    response = rules.Response(
        str(actor.user_id), wire_timestamp(work.now), body.decision, body.comment, body.data
    )
    await _respond(work, run, NodeAddress(run_id, node_id, body.scope_key), response, actor)
    shown = await detail(work, actor, automation_id, run_id)
    await show_waits(work, actor, shown.node_runs)
    if is_assignee and not await _may_read(work, actor, automation_id):
        return _only(shown, node_id, body.scope_key)
    return shown


async def resume_by_url(work: UnitOfWork, address: NodeAddress, data: JsonObject) -> int:
    """Give a node its event. Returns the number of nodes that continue: 0 if it does not wait yet.

    Raises NotFoundError when the node has no resume URL. Before it waits this is refused only if it
    is certain.
    """
    run = await hold_run(work, address.run_id)
    if run is None or not _has_url(await graph_of(work, run), address.node_id):
        raise NotFoundError("resume URL")
    work.now = utc_now()
    return await _respond(
        work, run, address, rules.Response(None, wire_timestamp(work.now), data=data)
    )


async def publish_event(work: UnitOfWork, actor: Actor, body: PublishEvent) -> int:
    """Resume every node of the workspace that waits for the event. Returns their number.

    The event is kept for the runs that are open now: one of their nodes may begin to wait for it
    later.
    """
    check_size(body.data)
    await store.lock_event_key(work, actor.workspace_id, body.event_key)
    response = rules.Response(
        user_id=None if actor.person is None else str(actor.person),
        at=wire_timestamp(work.now),
        data=body.data,
        event_id=str(new_id()),
    )
    await _store(work, actor, body, response)
    by_resolution: dict[str, rules.Resolution] = {}
    waits = await _waits_for(work, actor.workspace_id, body.event_key)
    passed = await evaluate_bounded(
        lambda: [wait for wait in waits if _passes(wait, response, by_resolution)]
    )
    if passed:
        await store.end_waits(work, passed, by_resolution[EdgeOutcome.ALWAYS], response)
    return len(passed)


async def _respond(
    work: UnitOfWork,
    run: HeldRun,
    address: NodeAddress,
    response: rules.Response,
    actor: Actor | None = None,
) -> int:
    """Apply a response to a node of a locked run. Returns the number of nodes that continue."""
    check_size(response.data or {})
    key = NodeKey(run.workspace_id, run.id, address.node_id, address.scope_key, "")
    wait = await store.lock_wait(work, key)
    if wait is not None and any(response.repeats(one) for one in store.read_responses(wait)):
        return int(wait.outcome is not None)
    if run.status not in OPEN_RUN:
        raise rules.NotResumableError("The run has ended; none of its nodes is waiting.")
    if wait is None or wait.workflow_id is None:
        await _keep_early(work, run, address, wait, response)
        return 0
    if wait.outcome is not None:
        raise rules.NotResumableError(f"The node is already resolved: {wait.outcome}.")
    if actor is not None and wait.kind == NodeKind.APPROVAL:
        rules.check_decider(wait.terms, actor)
    earlier = store.read_responses(wait)
    resolution = await evaluate_bounded(
        lambda: rules.resolve(wait.kind, wait.terms, run.created_by_user_id, earlier, response)
    )
    await store.update_wait(work, key, responses=store.stored_responses([*earlier, response]))
    if resolution is None:
        return 0
    await store.end_waits(work, [wait], resolution, response)
    return 1


async def _keep_early(
    work: UnitOfWork,
    run: HeldRun,
    address: NodeAddress,
    wait: RunWait | None,
    response: rules.Response,
) -> None:
    """Keep a response to a node that does not wait yet, unless it certainly does not count.

    It is checked again when the node begins to wait: only then are its bindings resolved.
    """
    graph = await graph_of(work, run)
    kind = graph.nodes.get(address.node_id, {}).get("kind")
    if kind is None or not rules.is_scope_of(graph.plan, address.node_id, address.scope_key):
        raise NotFoundError("node")
    if kind not in rules.RESUMABLE:
        raise rules.NotResumableError(f"A node of the kind {kind} can't be resumed.")
    status = await node_status(work, run, address.node_id, address.scope_key)
    if status is not None and status not in OPEN_NODE:
        raise rules.NotResumableError("The node has already ended.")
    earlier = [] if wait is None else store.read_responses(wait)
    parameters, starter = graph.parameters(address.node_id), run.created_by_user_id
    if kind == NodeKind.APPROVAL and not rules.takes_editors(parameters):
        # Whom it asks is known when it waits; until then only editors may say anything.
        raise rules.OnlyAskedError
    await evaluate_bounded(lambda: rules.check_early(kind, parameters, starter, earlier, response))
    key = NodeKey(run.workspace_id, run.id, address.node_id, address.scope_key, kind)
    if wait is None:
        await store.insert_wait(work, key, responses=store.stored_responses([response]))
        return
    if len(earlier) >= MAX_EARLY:
        raise rules.NotResumableError(
            "Too many responses are stored for this node, which is not waiting yet."
        )
    await store.update_wait(work, key, responses=store.stored_responses([*earlier, response]))


def _has_url(graph: RunGraph, node_id: str) -> bool:
    """True when a URL may resume the node, as far as that is certain before it waits."""
    waits = graph.nodes.get(node_id, {}).get("kind") == NodeKind.WAIT_EVENT
    return waits and graph.parameters(node_id).get("resumeUrl") is not False


async def _require_edit(work: UnitOfWork, actor: Actor, automation_id: Id) -> None:
    """Raises DeniedError, and NotFoundError for an automation the actor does not see."""
    _require_scope(actor)
    level = await visible.level(work, actor, automation_id)
    if level < Level.VIEW:
        raise NotFoundError("automation")
    if level < Level.EDIT:
        raise DeniedError("You need edit access to the automation.")


def _require_scope(actor: Actor) -> None:
    """Raises DeniedError."""
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        raise DeniedError(f"The credential lacks the scope {Scope.AUTOMATIONS_WRITE}.")


async def _may_read(work: UnitOfWork, actor: Actor, automation_id: Id) -> bool:
    level = await visible.level(work, actor, automation_id)
    return Scope.AUTOMATIONS_READ in actor.scopes and level >= Level.VIEW


def _only(run: AutomationRunDetail, node_id: str, scope_key: str) -> AutomationRunDetail:
    """The run as an assignee sees it who may only decide one of its nodes."""
    own = [one for one in run.node_runs if (one.node_id, one.scope_key) == (node_id, scope_key)]
    hidden: JsonObject = {"trigger_payload": {}, "output": None, "error": None}
    return run.model_copy(update={**hidden, "node_runs": own})


def check_size(data: JsonObject, path: str = "data") -> None:
    """Raises ValidationError for data that is too large to be the output of a node."""
    if len(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")) > DATA_LIMIT:
        raise ValidationError.at(path, f"It is larger than {DATA_LIMIT // 1024} KiB.")


async def _store(
    work: UnitOfWork, actor: Actor, body: PublishEvent, response: rules.Response
) -> None:
    """Keep the event if a run is open, and delete events older than every open run."""
    event = automation_event.c
    oldest = await oldest_open(work, actor.workspace_id)
    await work.execute(
        sa.delete(automation_event).where(
            event.workspace_id == actor.workspace_id, event.created_at < (oldest or work.now)
        )
    )
    if oldest is not None:
        await work.execute(
            sa.insert(automation_event).values(
                id=response.event_id,
                workspace_id=actor.workspace_id,
                event_key=body.event_key,
                data=body.data,
                user_id=actor.person,
                created_at=work.now,
            )
        )


async def _waits_for(work: UnitOfWork, workspace_id: Id, event_key: str) -> Sequence[RunWait]:
    """The nodes of open runs that wait for an event, locked in one order everywhere."""
    wait = run_wait.c
    return await work.rows(
        sa.select(run_wait)
        .join(*run_of(wait.run_id))
        .where(
            wait.workspace_id == workspace_id,
            wait.event_key == event_key,
            wait.outcome.is_(None),
            RUN.status.in_(OPEN_RUN),
        )
        .order_by(wait.run_id, wait.node_id, wait.scope_key)
        .with_for_update(of=run_wait),
        of=RunWait,
    )


def _passes(wait: RunWait, response: rules.Response, found: dict[str, rules.Resolution]) -> bool:
    """True when a wait lets the event through; the resolution is the same for all that do."""
    try:
        resolution = rules.resolve(wait.kind, wait.terms, None, (), response)
    except ValidationError:
        return False
    if resolution is not None:
        found[resolution.outcome] = resolution
    return resolution is not None


_wait = run_wait.c


async def give_event(
    work: UnitOfWork,
    actor: Actor,
    run_ids: Sequence[Id],
    node_id: str | None,
    data: JsonObject,
) -> Mapping[Id, PlatformError | None]:
    """Resume the nodes of open runs that wait for an event, all of them or the one named.

    By run: None when one of its nodes continues, else the refusal of the last. Runs without such a
    node are not there.
    """
    response = rules.Response(str(actor.user_id), wire_timestamp(work.now), data=data)
    waits = await _waiting(work, actor.workspace_id, run_ids, node_id)
    ends = await evaluate_bounded(lambda: [_end_of(wait, response) for wait in waits])
    answers: dict[Id, PlatformError | None] = {}
    passed = []
    for wait, end in zip(waits, ends, strict=True):
        if isinstance(end, rules.Resolution):
            answers[wait.run_id] = None
            passed.append(wait)
        else:
            answers.setdefault(wait.run_id, end)
    if passed:
        # All that let the event through end with the same: its data.
        resolution = next(end for end in ends if isinstance(end, rules.Resolution))
        await store.end_waits(work, passed, resolution, response)
    return answers


def _end_of(wait: RunWait, response: rules.Response) -> rules.Resolution | PlatformError | None:
    try:
        return rules.resolve(wait.kind, wait.terms, None, (), response)
    except PlatformError as error:
        return error


async def _waiting(
    work: UnitOfWork, workspace_id: Id, run_ids: Sequence[Id], node_id: str | None
) -> Sequence[RunWait]:
    """The nodes that wait for an event, locked in one order everywhere."""
    of_node = () if node_id is None else (_wait.node_id == node_id,)
    return await work.rows(
        sa.select(run_wait)
        .join(*run_of(_wait.run_id))
        .where(
            _wait.workspace_id == workspace_id,
            _wait.run_id == sa.any_(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid))),
            _wait.kind == NodeKind.WAIT_EVENT,
            _wait.workflow_id.is_not(None),
            _wait.outcome.is_(None),
            RUN.status.in_(OPEN_RUN),
            *of_node,
        )
        .order_by(_wait.run_id, _wait.node_id, _wait.scope_key)
        .with_for_update(of=run_wait),
        of=RunWait,
    )
