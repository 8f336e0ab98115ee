"""Reading waits, and the nodes that wait for what the actor may give.

Every query of these nodes names the workspace (architecture.md#workspace-in-every-query).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.automation_runs.queries import RUN, WaitingNode, run_of
from models.automation.automation_runs.rules import OPEN_RUN, RunRow
from models.automation.automation_runs.shapes import NodeRunShape
from models.automation.automations.graphs import stored_graph
from models.automation.automations.queries import AUTOMATION, automation_of, open_automations
from models.automation.automations.rules.graph.configs import ApprovalConfig
from models.automation.automations.rules.graph.kinds import MAX_REMINDERS, NodeKind
from models.automation.automations.rules.graph.wait_configs import ApprovalField
from models.automation.automations.rules.planner.plan import Plan
from models.automation.waits.links import NodeAddress
from models.automation.waits.rules import RESUMABLE, is_asked, shown_decisions
from models.automation.waits.store import RunWait, read_responses, run_wait
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from models.core.references.rules import Definition, Sought, SubjectKind, in_node, named_at
from runtime.database import UnitOfWork


async def asks(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, node_id: str, scope_key: str
) -> bool:
    """Tell whether a node that waits asks this actor to decide."""
    row = await work.first(
        sa.select(run_wait.c.kind, run_wait.c.terms)
        .join(*run_of(run_wait.c.run_id))
        .where(
            run_wait.c.workspace_id == actor.workspace_id,
            RUN.automation_id == automation_id,
            run_wait.c.run_id == run_id,
            run_wait.c.node_id == node_id,
            run_wait.c.scope_key == scope_key,
            run_wait.c.kind == NodeKind.APPROVAL,
            run_wait.c.workflow_id.is_not(None),
        )
    )
    return row is not None and is_asked(ApprovalConfig.model_validate(row.terms), actor)


@dataclass(frozen=True, slots=True)
class RunGraph:
    """The executed graph of a run: its plan, and its nodes by id as they were saved."""

    plan: Plan
    nodes: dict[str, JsonObject]

    def parameters(self, node_id: str) -> JsonObject:
        """A node's config overlaid with its input, bindings unresolved."""
        node = self.nodes[node_id]
        return {**node.get("config", {}), **node.get("input", {})}


async def graph_of(work: UnitOfWork, run: RunRow) -> RunGraph:
    """The graph that a run executes."""
    row = await stored_graph(work, run.automation_id, run.graph_checksum)
    assert row is not None, "what was accepted is kept as long as its run"
    assert row.plan is not None, "and was compiled"
    nodes = {node["id"]: node for node in row.graph["nodes"]}
    return RunGraph(Plan.from_json(row.plan), nodes)


async def show_waits(work: UnitOfWork, actor: Actor, nodes: Sequence[NodeRunShape]) -> None:
    """Add `metadata.wait` to the node runs of one run that wait, or waited, for a response."""
    waiting = [node for node in nodes if node.node_kind in RESUMABLE]
    if not waiting:
        return
    columns = run_wait.c
    # Responses to a node that waits for an event may be large, and are not shown.
    responses = sa.case(
        (columns.kind == NodeKind.APPROVAL, columns.responses),
        else_=sa.literal([], columns.responses.type),
    )
    rows = await work.rows(
        sa.select(
            *(
                columns.node_id,
                columns.scope_key,
                columns.kind,
                columns.event_key,
                columns.terms,
                columns.outcome,
            ),
            responses.label("responses"),
        ).where(
            columns.workspace_id == actor.workspace_id,
            columns.run_id == waiting[0].run_id,
            sa.tuple_(columns.node_id, columns.scope_key).in_(
                [(node.node_id, node.scope_key) for node in waiting]
            ),
            columns.workflow_id.is_not(None),
        ),
        of=RunWait,
    )
    waits = {(row.node_id, row.scope_key): _shown(row) for row in rows}
    for node in waiting:
        if (wait := waits.get((node.node_id, node.scope_key))) is not None:
            node.metadata["wait"] = wait


async def due_waits(
    work: UnitOfWork, workspace_id: Id, nodes: Sequence[WaitingNode], since: datetime
) -> list[datetime]:
    """The moments at which nodes that wait were resolved, or people were to be reminded."""
    places = [
        (node.run_id, node.node_id, node.scope_key) for node in nodes if node.node_kind in RESUMABLE
    ]
    columns = run_wait.c
    rows = await work.rows(
        sa.select(columns.created_at, columns.resolved_at, columns.terms).where(
            columns.workspace_id == workspace_id,
            sa.tuple_(columns.run_id, columns.node_id, columns.scope_key).in_(places),
        )
    )
    due = [row.resolved_at for row in rows if row.resolved_at is not None]
    for row in rows:
        if row.resolved_at is None and (seconds := row.terms.get("reminderSeconds")):
            told = max(0, (since - row.created_at) // timedelta(seconds=seconds))
            reminder = row.created_at + (told + 1) * timedelta(seconds=seconds)
            due += [reminder] if told < MAX_REMINDERS and reminder <= work.now else []
    return due


def _shown(row: RunWait) -> JsonObject:
    if row.kind == NodeKind.WAIT_EVENT:
        by_url = row.terms.get("resumeUrl", True)
        return _present({"eventKey": row.event_key, "byUrl": by_url, "resolution": row.outcome})
    wait = {
        **{name: row.terms.get(name) for name in ("assignees", "role", "form")},
        "required": row.terms.get("required", 1),
        "allowEditors": row.terms.get("allowEditors", True),
        "decisions": [_present(one) for one in shown_decisions(read_responses(row))],
        "resolution": row.outcome,
    }
    return _present(wait)


def _present(found: JsonObject) -> JsonObject:
    """The keys that have a value; on the wire the rest is absent."""
    return {key: one for key, one in found.items() if one is not None}


_wait = run_wait.c
_terms = _wait.terms


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A node that waits for a decision, as people are asked."""

    run_id: Id
    automation_id: Id
    automation_label: str
    node_id: str
    scope_key: str
    title: str
    message: str
    questions: Sequence[ApprovalField]
    since: datetime


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """A node that waits for an event."""

    node_id: str
    scope_key: str
    event_key: str | None
    filter: str | None
    """The CEL that lets data through."""
    since: datetime


class _Row(Protocol):
    run_id: Id
    automation_id: Id
    label: str
    node_id: str
    scope_key: str
    terms: JsonObject
    created_at: datetime


async def pending_approvals(
    work: UnitOfWork, actor: Actor, limit: int, run_id: Id | None = None
) -> list[PendingApproval]:
    """The approvals that ask the actor, the oldest first.

    Of one run also the approvals that the actor may decide as an editor. The command that takes the
    decision has the last word.
    """
    mine = _asks(actor)
    if run_id is not None:
        mine = sa.and_(_wait.run_id == run_id, sa.or_(mine, _open_to_editor(actor)))
    rows = await work.rows(_pending_of(actor, mine).limit(limit), of=_Row)
    return [_pending(row) for row in rows]


async def pending_approval(
    work: UnitOfWork, actor: Actor, address: NodeAddress
) -> PendingApproval | None:
    """The approval at a node, if it asks the actor and still waits."""
    this = (
        _wait.run_id == address.run_id,
        _wait.node_id == address.node_id,
        _wait.scope_key == address.scope_key,
    )
    row = await work.first(_pending_of(actor, sa.and_(*this, _asks(actor))), of=_Row)
    return None if row is None else _pending(row)


async def pending_events(
    work: UnitOfWork, actor: Actor, limit: int, run_id: Id
) -> list[PendingEvent]:
    """The events that nodes of a run wait for, the oldest first, for who may edit the automation.

    The command that takes the event has the last word.
    """
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        return []
    rows = await work.rows(
        sa.select(_wait.node_id, _wait.scope_key, _wait.event_key, _terms, _wait.created_at)
        .join(*run_of(_wait.run_id))
        .where(
            _wait.workspace_id == actor.workspace_id,
            _wait.run_id == run_id,
            _wait.kind == NodeKind.WAIT_EVENT,
            _wait.outcome.is_(None),
            _wait.workflow_id.is_not(None),
            RUN.status.in_(OPEN_RUN),
            RUN.automation_id.in_(open_automations(actor, Level.EDIT)),
        )
        .order_by(_wait.created_at, _wait.node_id, _wait.scope_key)
        .limit(limit)
    )
    return [
        PendingEvent(
            node_id=row.node_id,
            scope_key=row.scope_key,
            event_key=row.event_key,
            filter=row.terms.get("filter"),
            since=row.created_at,
        )
        for row in rows
    ]


def _pending_of(actor: Actor, mine: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(
            _wait.run_id,
            RUN.automation_id,
            AUTOMATION.label,
            _wait.node_id,
            _wait.scope_key,
            _wait.terms,
            _wait.created_at,
        )
        .select_from(run_wait)
        .join(*(run := run_of(_wait.run_id)))
        .join(*automation_of(run[0]))
        .where(
            _wait.workspace_id == actor.workspace_id,
            _wait.kind == NodeKind.APPROVAL,
            _wait.outcome.is_(None),
            _wait.workflow_id.is_not(None),
            RUN.status.in_(OPEN_RUN),
            mine,
            _is_undecided(actor),
            _takes_starter(actor),
        )
        .order_by(_wait.created_at, _wait.run_id, _wait.node_id, _wait.scope_key)
    )


def _asks(actor: Actor) -> sa.ColumnElement[bool]:
    """The same as `rules.is_asked`, for a statement."""
    return sa.or_(
        _terms["assignees"].contains([str(actor.user_id)]),
        _terms["role"].astext == actor.role.value,
    )


def _open_to_editor(actor: Actor) -> sa.ColumnElement[bool]:
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        return sa.false()
    takes_editors = sa.func.coalesce(_terms["allowEditors"].as_boolean(), True)
    return sa.and_(takes_editors, RUN.automation_id.in_(open_automations(actor, Level.EDIT)))


def _is_undecided(actor: Actor) -> sa.ColumnElement[bool]:
    decided: list[dict[str, Any]] = [{"user_id": str(actor.user_id)}]
    return ~_wait.responses.contains(decided)


def _takes_starter(actor: Actor) -> sa.ColumnElement[bool]:
    return sa.or_(
        RUN.created_by_user_id.is_distinct_from(actor.user_id),
        sa.func.coalesce(_terms["allowSelf"].as_boolean(), False),
    )


def _pending(row: _Row) -> PendingApproval:
    return PendingApproval(
        run_id=row.run_id,
        automation_id=row.automation_id,
        automation_label=row.label,
        node_id=row.node_id,
        scope_key=row.scope_key,
        title=row.terms.get("title") or row.node_id.replace("_", " "),
        message=row.terms.get("message") or "",
        questions=[ApprovalField.model_validate(one) for one in row.terms.get("form") or []],
        since=row.created_at,
    )


async def wait_definitions(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Definition]:
    """The open approvals that ask a member, each as its run."""
    if sought.kind is not SubjectKind.MEMBER:
        return []
    run = run_of(run_wait.c.run_id)
    rows = await work.rows(
        sa.select(run_wait.c.run_id, run_wait.c.node_id, AUTOMATION.label, AUTOMATION.item_id)
        .join(*run)
        .join(*automation_of(run[0]))
        .where(
            run_wait.c.workspace_id == actor.workspace_id,
            run_wait.c.kind == NodeKind.APPROVAL,
            run_wait.c.outcome.is_(None),
            _terms["assignees"].contains([sought.subject.id]),
            RUN.status.in_(OPEN_RUN),
        )
        .order_by(run_wait.c.created_at, run_wait.c.run_id)
    )
    return [
        Definition(
            kind="automation_run",
            id=row.run_id,
            label=row.label,
            scope=Scope.AUTOMATIONS_READ,
            item_id=row.item_id,
            state="waiting",
            references=list(
                in_node(named_at(sought.kind, [sought.subject.id], "assignees"), row.node_id)
            ),
        )
        for row in rows
    ]
