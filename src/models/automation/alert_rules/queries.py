"""Alert rules and their firings: tables, retention, reads, and a check of a condition now."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import OperationalError
from sqlmodel import Field, SQLModel

from models.automation.alert_rules import shapes
from models.automation.automation_runs import history
from models.automation.automation_runs.queries import RUN
from models.automation.automation_runs.rules import ENDED_RUN, RunStatus
from models.automation.automations.queries import open_automations
from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id
from models.core.lifecycle.lost_workers import last_sign
from models.core.pagination import PageRequest
from models.core.purging import Retention
from models.core.references import rules as reference_rules
from models.core.repository import Bound, Repository
from models.sources.connections.store import failing, seen_connections
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of


class AlertRule(SQLModel, table=True):
    """A condition under a name, and who is told when it holds.

    It sees what `saved_by_user_id` sees, who wrote or changed it last. What happened before
    `watched_since` is no silence; at `due_at` it is looked at next. It goes with the automation or
    the connection that it names.
    """

    __tablename__ = "alert_rule"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["saved_by_user_id"], ["app_user.id"]),
        same_workspace("automation_id", "automation.id", ondelete="CASCADE"),
        same_workspace("connection_id", "connection.id", ondelete="CASCADE"),
        one_of("kind", shapes.AlertKind),
        one_of("state", shapes.AlertState),
        one_of("disabled_reason", shapes.AlertDisabledReason),
        sa.Index("ix_alert_rule_workspace_id", "workspace_id", "label", "id"),
        partial_index("ix_alert_rule_due", "due_at", where="enabled"),
        partial_index(
            "ix_alert_rule_automation_id", "automation_id", where="automation_id IS NOT NULL"
        ),
        partial_index(
            "ix_alert_rule_connection_id", "connection_id", where="connection_id IS NOT NULL"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    label: str
    kind: str
    condition: dict[str, Any] = Field(sa_type=JSONB)
    automation_id: Id | None = None
    connection_id: Id | None = None
    recipient_user_ids: list[Id] = Field(sa_type=sa.ARRAY(sa.Uuid))
    repeat_minutes: int | None = None
    enabled: bool
    disabled_reason: str | None = None
    state: str
    problem: str | None = None
    saved_by_user_id: Id
    watched_since: datetime = Field(sa_type=Timestamp)
    pending_since: datetime | None = Field(default=None, sa_type=Timestamp)
    due_at: datetime = Field(sa_type=Timestamp)
    checked_at: datetime | None = Field(default=None, sa_type=Timestamp)
    told_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class AlertFiring(SQLModel, table=True):
    """A time for which the condition of a rule held; without `resolved_at` it still does."""

    __tablename__ = "alert_firing"
    __table_args__ = (
        same_workspace("alert_rule_id", "alert_rule.id", ondelete="CASCADE"),
        one_of("resolution", shapes.Resolution),
        sa.Index("ix_alert_firing_alert_rule_id", "alert_rule_id", "fired_at", "id"),
        partial_index(
            "ix_alert_firing_open", "alert_rule_id", where="resolved_at IS NULL", unique=True
        ),
        partial_index("ix_alert_firing_resolved", "resolved_at", where="resolved_at IS NOT NULL"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    alert_rule_id: Id
    message: str
    value: int | None = None
    run_id: Id | None = None
    fired_at: datetime = Field(sa_type=Timestamp)
    resolved_at: datetime | None = Field(default=None, sa_type=Timestamp)
    resolution: str | None = None


alert_rule = table_of(AlertRule)
alert_firing = table_of(AlertFiring)


purge_firings = Retention(alert_firing, alert_firing.c.resolved_at)
"""Firings that are over."""


class TooSlowError(ConflictError):
    """The check of a rule was cancelled."""

    def __init__(self) -> None:
        super().__init__("The check took too long. Choose an automation or fewer filters.")


_rule = alert_rule.c
_firing = alert_firing.c

visible = WorkspaceOf(alert_rule.c.id)
"""The workspace of a rule; what it names may still be closed to the caller."""


class _ShownRule(Protocol):
    """A rule with its firing, if it fires."""

    id: Id
    label: str
    kind: str
    state: str
    disabled_reason: str | None
    fired_at: datetime | None
    message: str | None


async def list_rules(
    work: UnitOfWork,
    actor: Actor,
    page: PageRequest,
    state: shapes.AlertState | None = None,
) -> shapes.AlertRuleList:
    """The alert rules that the actor sees, by name."""
    statement = _shown(actor)
    if state is not None:
        statement = statement.where(_rule.state == state.value)
    rows = await page.ascending(work, statement, _rule.label, _rule.id, of=_ShownRule)
    return shapes.AlertRuleList.of(rows, _shape)


async def get_rule(work: UnitOfWork, actor: Actor, rule_id: Id) -> shapes.AlertRuleShape:
    """One alert rule. Raises NotFoundError."""
    row = await work.one(_shown(actor).where(_rule.id == rule_id), "alert rule", of=_ShownRule)
    return _shape(row)


async def list_firings(
    work: UnitOfWork, actor: Actor, rule_id: Id, page: PageRequest
) -> shapes.AlertFiringList:
    """The firings of a rule that the actor sees, the newest first. Raises NotFoundError."""
    await RULES.find(work, actor, rule_id)
    told = (_firing.id, _firing.fired_at, _firing.resolved_at, _firing.resolution)
    seen = open_automations(actor, Level.VIEW)
    statement = sa.select(*told, *_findings(actor, seen)).where(
        _firing.workspace_id == actor.workspace_id, _firing.alert_rule_id == rule_id
    )
    rows = await page.descending(work, statement, _firing.fired_at, _firing.id, of=AlertFiring)
    return shapes.AlertFiringList.of(rows)


async def test_rule(work: UnitOfWork, actor: Actor, rule_id: Id) -> shapes.AlertTest:
    """The condition of a rule as the actor sees it now; notifies no one. Raises NotFoundError."""
    row = await RULES.find(work, actor, rule_id)
    context = CheckContext(actor, row.watched_since, row.pending_since)
    result = await check_condition(work, context, shapes.read_condition(row.condition))
    return shapes.AlertTest.model_validate(result)


def _sees(
    actor: Actor, automations: sa.Select[Any] | None = None
) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions on rules that name no automation and no connection closed to the actor.

    `automations` selects the ids that are open to the actor, where the statement has it already.
    """
    seen = open_automations(actor, Level.VIEW) if automations is None else automations
    return (
        sa.or_(_rule.automation_id.is_(None), _rule.automation_id.in_(seen)),
        sa.or_(_rule.connection_id.is_(None), _rule.connection_id.in_(seen_connections(actor))),
    )


RULES = Repository(
    "alert rule", alert_rule, AlertRule, _sees, Bound(alert_rule, 100, "alert rules")
)


def _shown(actor: Actor) -> sa.Select[Any]:
    its_firing = sa.and_(_firing.alert_rule_id == _rule.id, _firing.resolved_at.is_(None))
    seen = open_automations(actor, Level.VIEW)
    message, *_ = _findings(actor, seen)
    rules = sa.select(alert_rule, _firing.fired_at, message)
    return rules.outerjoin(alert_firing, its_firing).where(
        _rule.workspace_id == actor.workspace_id, *_sees(actor, seen)
    )


def _findings(actor: Actor, automations: sa.Select[Any]) -> Sequence[sa.ColumnElement[Any]]:
    """Message, value and run of a firing; less where none of `automations` has the run.

    A rule over the workspace counts runs that its saver sees, and others may not see.
    """
    hidden = sa.exists().where(
        RUN.id == _firing.run_id,
        RUN.workspace_id == actor.workspace_id,
        RUN.automation_id.not_in(automations),
    )
    return (
        sa.case((hidden, shapes.UNSEEN_RUN), else_=_firing.message).label("message"),
        sa.case((hidden, None), else_=_firing.value).label("value"),
        sa.case((hidden, None), else_=_firing.run_id).label("run_id"),
    )


def _shape(row: _ShownRule) -> shapes.AlertRuleShape:
    names = shapes.AlertRuleShape.model_fields.keys() - {
        "kind",
        "state",
        "disabled_reason",
        "firing_since",
    }
    reason = row.disabled_reason
    return shapes.AlertRuleShape(
        **{name: getattr(row, name) for name in names},
        kind=shapes.AlertKind(row.kind),
        state=shapes.AlertState(row.state),
        disabled_reason=None if reason is None else shapes.AlertDisabledReason(reason),
        firing_since=row.fired_at,
    )


LONGEST_CHECK = "1s"
"""The time that the check of one rule may take."""


class CheckContext(NamedTuple):
    """The actor whose rights count, and since when the rule is watched and would hold."""

    actor: Actor
    since: datetime
    pending_since: datetime | None = None


async def check_condition(
    work: UnitOfWork, context: CheckContext, condition: shapes.AlertCondition
) -> shapes.CheckResult:
    """Check whether a condition holds now, for what the actor sees. Raises TooSlowError."""
    before = await work.scalar(sa.select(sa.func.current_setting("statement_timeout")))
    await work.execute(sa.select(sa.func.set_config("statement_timeout", LONGEST_CHECK, True)))
    try:
        result = await _CHECKS[type(condition)](work, context, condition)
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise
        raise TooSlowError from error
    await work.execute(sa.select(sa.func.set_config("statement_timeout", before, True)))
    return result


async def _failures(
    work: UnitOfWork, context: CheckContext, condition: shapes.FailuresCondition
) -> shapes.CheckResult:
    query = condition.query
    since = work.now_after(-60 * condition.minutes)
    failed = await history.failed_since(
        work, context.actor, query.automation_id, query.filter(work.now), since, condition.runs
    )
    holds = len(failed) >= condition.runs
    number = shapes.counted(len(failed), "run")
    window = shapes.spoken(condition.minutes)
    message = f"{number}{' or more' if holds else ''} failed within {window}."
    newest = max(failed, key=lambda run: run.moment, default=None)
    return shapes.CheckResult(holds, message, len(failed), None if newest is None else newest.id)


async def _silence(
    work: UnitOfWork, context: CheckContext, condition: shapes.SilenceCondition
) -> shapes.CheckResult:
    query, since = condition.query, work.now_after(-60 * condition.minutes)
    assert query.automation_id is not None, "the shape demands it"
    statuses = (RunStatus.SUCCEEDED,) if condition.outcome == "succeeded" else ENDED_RUN
    run = await history.ended_since(
        work, context.actor, query.automation_id, query.filter(work.now), since, statuses
    )
    if run is not None:
        length = shapes.spoken(shapes.minutes_since(run.moment, work.now))
        return shapes.CheckResult(False, f"A run {condition.outcome} {length} ago.", run_id=run.id)
    message = f"No run has {condition.outcome} for {shapes.spoken(condition.minutes)}."
    if context.since > since:
        return shapes.CheckResult(False, f"{message} The rule is newer than that.")
    return shapes.CheckResult(True, message)


async def _duration(
    work: UnitOfWork, context: CheckContext, condition: shapes.DurationCondition
) -> shapes.CheckResult:
    query, before = condition.query, work.now_after(-60 * condition.minutes)
    run = await history.longest_active(
        work, context.actor, query.automation_id, query.filter(work.now), before
    )
    if run is None:
        return shapes.CheckResult(
            False, f"No run is open for more than {shapes.spoken(condition.minutes)}."
        )
    return _overdue(work, run, "open")


async def _queue_age(
    work: UnitOfWork, context: CheckContext, condition: shapes.QueueAgeCondition
) -> shapes.CheckResult:
    query, before = condition.query, work.now_after(-60 * condition.minutes)
    run = await history.oldest_queued(
        work, context.actor, query.automation_id, query.filter(work.now), before
    )
    if run is None:
        return shapes.CheckResult(
            False, f"No run has been queued for {shapes.spoken(condition.minutes)}."
        )
    return _overdue(work, run, "queued")


def _overdue(work: UnitOfWork, run: history.WatchedRun, state: str) -> shapes.CheckResult:
    minutes = shapes.minutes_since(run.moment, work.now)
    message = f"A run has been {state} for {shapes.spoken(minutes)}."
    return shapes.CheckResult(True, message, minutes, run.id)


async def _worker_gone(
    work: UnitOfWork, context: CheckContext, condition: shapes.WorkerGoneCondition
) -> shapes.CheckResult:
    # A worker that ended in order is forgotten at once: then the first check counts.
    last = await last_sign(work) or context.pending_since or work.now
    minutes = shapes.minutes_since(last, work.now)
    if minutes < condition.minutes:
        message = f"A worker was last seen {shapes.spoken(minutes)} ago."
        return shapes.CheckResult(False, message, minutes, pending_since=last)
    message = f"No worker has been running for {shapes.spoken(minutes)}."
    return shapes.CheckResult(True, message, minutes, pending_since=last)


async def _connection_failing(
    work: UnitOfWork, context: CheckContext, condition: shapes.ConnectionFailingCondition
) -> shapes.CheckResult:
    row = await failing(work, context.actor, condition.connection_id)
    if row is None:
        return shapes.CheckResult(False, "The last call through the connection succeeded.", 0)
    minutes = shapes.minutes_since(row.failing_since, work.now)
    holds = row.failures >= condition.failures and minutes >= condition.minutes
    calls = shapes.counted(row.failures, "call")
    message = f"{calls} in a row failed within {shapes.spoken(minutes)}: {row.message}"
    return shapes.CheckResult(holds, message, row.failures)


_CHECKS: Mapping[type, Callable[[UnitOfWork, CheckContext, Any], Awaitable[shapes.CheckResult]]] = {
    shapes.FailuresCondition: _failures,
    shapes.SilenceCondition: _silence,
    shapes.DurationCondition: _duration,
    shapes.QueueAgeCondition: _queue_age,
    shapes.WorkerGoneCondition: _worker_gone,
    shapes.ConnectionFailingCondition: _connection_failing,
}


async def rule_definitions(
    work: UnitOfWork, actor: Actor, sought: reference_rules.Sought
) -> Sequence[reference_rules.Definition]:
    """The alert rules that name an automation, a connection or a member."""
    if sought.kind not in (
        reference_rules.SubjectKind.AUTOMATION,
        reference_rules.SubjectKind.CONNECTION,
        reference_rules.SubjectKind.MEMBER,
    ):
        return []
    id_ = Id(sought.subject.id)
    condition = {
        reference_rules.SubjectKind.AUTOMATION: _rule.automation_id == id_,
        reference_rules.SubjectKind.CONNECTION: _rule.connection_id == id_,
        reference_rules.SubjectKind.MEMBER: sa.or_(
            _rule.saved_by_user_id == id_, sa.literal(id_) == sa.any_(_rule.recipient_user_ids)
        ),
    }[sought.kind]
    seen = sa.and_(*_sees(actor, open_automations(actor, Level.VIEW)))
    rows = await work.rows(
        sa.select(alert_rule, seen.label("seen"))
        .where(_rule.workspace_id == actor.workspace_id, condition)
        .order_by(_rule.label, _rule.id),
        of=_WatchedRule,
    )
    return [
        reference_rules.Definition(
            kind="alert_rule",
            id=row.id,
            label=row.label,
            scope=Scope.AUTOMATIONS_READ,
            hidden=not row.seen,
            references=list(_rule_references(row)),
        )
        for row in rows
    ]


class _WatchedRule(Protocol):
    """A rule, and whether the caller sees what it names."""

    id: Id
    label: str
    automation_id: Id | None
    connection_id: Id | None
    saved_by_user_id: Id
    recipient_user_ids: Sequence[Id]
    seen: bool


def _rule_references(row: _WatchedRule) -> Iterator[reference_rules.Reference]:
    """A rule is deleted with the automation or the connection that it names."""
    for name, kind in (
        ("automation", reference_rules.SubjectKind.AUTOMATION),
        ("connection", reference_rules.SubjectKind.CONNECTION),
    ):
        named = getattr(row, f"{name}_id")
        yield from reference_rules.cleared(
            reference_rules.named_at(kind, str(named), "condition", f"{name}Id")
        )
    yield from reference_rules.named_at(
        reference_rules.SubjectKind.MEMBER, str(row.saved_by_user_id), "savedByUserId"
    )
    recipients = [str(one) for one in row.recipient_user_ids]
    yield from reference_rules.named_at(
        reference_rules.SubjectKind.MEMBER, recipients, "recipientUserIds"
    )
