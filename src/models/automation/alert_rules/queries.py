"""Reading alert rules and their firings. Every query names the workspace."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, and_, case, exists, or_, select

from models.automation.alert_rules.checks import CheckContext, check
from models.automation.alert_rules.conditions import AlertKind, read_condition
from models.automation.alert_rules.rules import UNSEEN_RUN, AlertDisabledReason, AlertState
from models.automation.alert_rules.shapes import (
    AlertFiringList,
    AlertFiringShape,
    AlertRuleList,
    AlertRuleShape,
    AlertTest,
)
from models.automation.alert_rules.tables import (
    AlertFiring,
    AlertRule,
    alert_firing,
    alert_rule,
)
from models.automation.automation_runs.joins import RUN
from models.automation.automations.joins import open_automations
from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.core.pagination import PageRequest
from models.sources.connections.queries import seen_connections
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

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
    work: UnitOfWork, actor: Actor, page: PageRequest, state: AlertState | None = None
) -> AlertRuleList:
    """The alert rules that the actor sees, by name."""
    statement = _shown(actor)
    if state is not None:
        statement = statement.where(_rule.state == state.value)
    rows = await page.ascending(work, statement, _rule.label, _rule.id, of=_ShownRule)
    return AlertRuleList(alert_rules=[_shape(row) for row in rows.items], cursor=rows.cursor)


async def get_rule(work: UnitOfWork, actor: Actor, rule_id: Id) -> AlertRuleShape:
    """One alert rule. Raises NotFoundError."""
    row = await work.first(_shown(actor).where(_rule.id == rule_id), of=_ShownRule)
    if row is None:
        raise NotFoundError("alert rule")
    return _shape(row)


async def list_firings(
    work: UnitOfWork, actor: Actor, rule_id: Id, page: PageRequest
) -> AlertFiringList:
    """The firings of a rule that the actor sees, the newest first. Raises NotFoundError."""
    await load(work, actor, rule_id)
    told = (_firing.id, _firing.fired_at, _firing.resolved_at, _firing.resolution)
    seen = open_automations(actor, Level.VIEW)
    statement = select(*told, *_findings(actor, seen)).where(
        _firing.workspace_id == actor.workspace_id, _firing.alert_rule_id == rule_id
    )
    rows = await page.descending(work, statement, _firing.fired_at, _firing.id, of=AlertFiring)
    return AlertFiringList(
        firings=[AlertFiringShape.model_validate(row) for row in rows.items], cursor=rows.cursor
    )


async def test_rule(work: UnitOfWork, actor: Actor, rule_id: Id) -> AlertTest:
    """The condition of a rule as the actor sees it now; nobody is told. Raises NotFoundError."""
    row = await load(work, actor, rule_id)
    context = CheckContext(actor, row.watched_since, row.pending_since)
    result = await check(work, context, read_condition(row.condition))
    return AlertTest.model_validate(result)


async def load(work: UnitOfWork, actor: Actor, rule_id: Id, *, lock: bool = False) -> AlertRule:
    """The row of a rule that the actor sees. Raises NotFoundError."""
    statement = visible_rules(actor, select(alert_rule)).where(_rule.id == rule_id)
    if lock:
        statement = statement.with_for_update(of=alert_rule)
    row = await work.first(statement, of=AlertRule)
    if row is None:
        raise NotFoundError("alert rule")
    return row


def visible_rules(
    actor: Actor, rules: Select[Any], automations: Select[Any] | None = None
) -> Select[Any]:
    """The rules that name no automation and no connection that is closed to the actor.

    `automations` selects the ids that are open to the actor, where the statement has it already.
    """
    seen = open_automations(actor, Level.VIEW) if automations is None else automations
    return rules.where(
        _rule.workspace_id == actor.workspace_id,
        or_(_rule.automation_id.is_(None), _rule.automation_id.in_(seen)),
        or_(_rule.connection_id.is_(None), _rule.connection_id.in_(seen_connections(actor))),
    )


def _shown(actor: Actor) -> Select[Any]:
    its_firing = and_(_firing.alert_rule_id == _rule.id, _firing.resolved_at.is_(None))
    seen = open_automations(actor, Level.VIEW)
    message, *_ = _findings(actor, seen)
    rules = select(alert_rule, _firing.fired_at, message)
    return visible_rules(actor, rules.outerjoin(alert_firing, its_firing), seen)


def _findings(actor: Actor, automations: Select[Any]) -> Sequence[ColumnElement[Any]]:
    """Message, value and run of a firing; less where none of `automations` has the run.

    A rule over the workspace counts runs that its saver sees, and others may not see.
    """
    hidden = exists().where(
        RUN.id == _firing.run_id,
        RUN.workspace_id == actor.workspace_id,
        RUN.automation_id.not_in(automations),
    )
    return (
        case((hidden, UNSEEN_RUN), else_=_firing.message).label("message"),
        case((hidden, None), else_=_firing.value).label("value"),
        case((hidden, None), else_=_firing.run_id).label("run_id"),
    )


def _shape(row: _ShownRule) -> AlertRuleShape:
    names = AlertRuleShape.model_fields.keys() - {
        "kind",
        "state",
        "disabled_reason",
        "firing_since",
    }
    reason = row.disabled_reason
    return AlertRuleShape(
        **{name: getattr(row, name) for name in names},
        kind=AlertKind(row.kind),
        state=AlertState(row.state),
        disabled_reason=None if reason is None else AlertDisabledReason(reason),
        firing_since=row.fired_at,
    )
