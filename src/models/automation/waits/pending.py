"""Nodes that wait for what the actor may give: a decision, or an event.

Every query names the workspace (promise I6).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, and_, false, func, or_, select

from models.automation.automation_runs.joins import RUN, run_of
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automations.joins import AUTOMATION, automation_of, open_automations
from models.automation.automations.rules.graph.configs.waits import ApprovalField
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.waits.resume_urls import Address
from models.automation.waits.tables import run_wait
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork

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
        mine = and_(_wait.run_id == run_id, or_(mine, _open_to_editor(actor)))
    rows = await work.rows(_pending_of(actor, mine).limit(limit), of=_Row)
    return [_pending(row) for row in rows]


async def pending_approval(
    work: UnitOfWork, actor: Actor, address: Address
) -> PendingApproval | None:
    """The approval at a node, if it asks the actor and still waits."""
    this = (
        _wait.run_id == address.run_id,
        _wait.node_id == address.node_id,
        _wait.scope_key == address.scope_key,
    )
    row = await work.first(_pending_of(actor, and_(*this, _asks(actor))), of=_Row)
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
        select(_wait.node_id, _wait.scope_key, _wait.event_key, _terms, _wait.created_at)
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


def _pending_of(actor: Actor, mine: ColumnElement[bool]) -> Select[Any]:
    return (
        select(
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


def _asks(actor: Actor) -> ColumnElement[bool]:
    """The same as `rules.approvals.is_asked`, for a statement."""
    return or_(
        _terms["assignees"].contains([str(actor.user_id)]),
        _terms["role"].astext == actor.role.value,
    )


def _open_to_editor(actor: Actor) -> ColumnElement[bool]:
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        return false()
    takes_editors = func.coalesce(_terms["allowEditors"].as_boolean(), True)
    return and_(takes_editors, RUN.automation_id.in_(open_automations(actor, Level.EDIT)))


def _is_undecided(actor: Actor) -> ColumnElement[bool]:
    decided: list[dict[str, Any]] = [{"user_id": str(actor.user_id)}]
    return ~_wait.responses.contains(decided)


def _takes_starter(actor: Actor) -> ColumnElement[bool]:
    return or_(
        RUN.created_by_user_id.is_distinct_from(actor.user_id),
        func.coalesce(_terms["allowSelf"].as_boolean(), False),
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
