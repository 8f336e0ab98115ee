"""Evaluating alert rules, behind the runs, in any number of processes; each change is notified
once.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
import structlog

from models.automation.alert_rules import commands, queries, shapes
from models.automation.alert_rules.shapes import read_condition
from models.core.access.rules import Actor, Principal, PrincipalType, Scope
from models.people.members import roles_in
from models.people.workspaces import living_workspaces
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.processes.fault_injection import FaultPoint, inject_fault

log = structlog.get_logger()

MOST_AT_ONCE = 20
"""Rules that one transaction evaluates."""
SECONDS_BETWEEN = 60
SECONDS_AFTER_PROBLEM = 15 * 60
"""A rule that was too slow waits longer: one workspace must not delay the rules of others."""
OVERDUE_SECONDS = 90
"""Rules that no worker has evaluated for so long are evaluated by others."""
BROKEN = "The rule could not be evaluated. Save it again."
_rule = queries.alert_rule.c


async def evaluate_rules(work: UnitOfWork, overdue: float = 0) -> int:
    """Evaluate some rules that have been due for these seconds. Repeat until 0."""
    rows = await work.rows(
        sa.select(queries.alert_rule)
        .where(
            _rule.enabled,
            _rule.due_at <= work.now_after(-overdue),
            _rule.workspace_id.in_(living_workspaces()),
        )
        .order_by(_rule.due_at)
        .limit(MOST_AT_ONCE)
        # Another process evaluates a locked rule at this moment.
        .with_for_update(skip_locked=True),
        of=queries.AlertRule,
    )
    for row in rows:
        await _evaluate(work, row)
    if rows:
        inject_fault(FaultPoint.AFTER_ALERTS_BEFORE_COMMIT, rows[0].id)
    return len(rows)


async def evaluate_overdue(work: UnitOfWork) -> int:
    """Evaluate some rules that no worker evaluates, as when there is none. Repeat until 0."""
    return await evaluate_rules(work, OVERDUE_SECONDS)


async def _evaluate(work: UnitOfWork, row: queries.AlertRule) -> None:
    actor = await _saver(work, row)
    if isinstance(actor, shapes.AlertDisabledReason):
        await commands.disable(work, row, actor)
        return
    due_at = work.now_after(SECONDS_BETWEEN)
    values: dict[str, Any] = {"checked_at": work.now, "due_at": due_at, "problem": None}
    try:
        async with work.savepoint():
            context = queries.CheckContext(actor, row.watched_since, row.pending_since)
            result = await queries.check_condition(work, context, read_condition(row.condition))
    except queries.TooSlowError as error:
        values |= {"problem": error.message, "due_at": work.now_after(SECONDS_AFTER_PROBLEM)}
    except Exception:
        log.exception("an alert rule could not be evaluated", alert_rule_id=str(row.id))
        values |= {"problem": BROKEN, "due_at": work.now_after(SECONDS_AFTER_PROBLEM)}
    else:
        values |= await _follow(work, row, result)
    await work.execute(sa.update(queries.alert_rule).where(_rule.id == row.id).values(values))


async def _saver(work: UnitOfWork, row: queries.AlertRule) -> Actor | shapes.AlertDisabledReason:
    """The last editor of a rule with their present rights, or why it may not continue."""
    user_id = row.saved_by_user_id
    role = (await roles_in(work, row.workspace_id, [user_id])).get(user_id)
    if role is None:
        return shapes.AlertDisabledReason.SAVER_LEFT
    principal = Principal(type=PrincipalType.SYSTEM, id=row.id, user_id=user_id)
    scopes = principal.usable_scopes(role)
    actor = Actor(principal=principal, workspace_id=row.workspace_id, role=role, scopes=scopes)
    if Scope.AUTOMATIONS_READ not in scopes or not await commands.sees_subject(work, actor, row):
        return shapes.AlertDisabledReason.RIGHTS_LOST
    return actor


async def _follow(
    work: UnitOfWork, row: queries.AlertRule, result: shapes.CheckResult
) -> Mapping[str, Any]:
    """Tell the change that a check brings; the columns of the rule that follow from it."""
    state = shapes.AlertState(row.state)
    repeat = None if row.repeat_minutes is None else timedelta(minutes=row.repeat_minutes)
    change = shapes.change_of(state, result.holds, row.told_at, repeat, work.now)
    values: dict[str, Any] = {"pending_since": result.pending_since}
    match change:
        case None:
            return values
        case shapes.AlertChange.FIRED:
            firing = await _fire(work, row, result)
            await commands.log_change(work, row, change, firing, result.message)
            await commands.notify_change(work, row, change, firing, change.value, result.message)
            values["state"] = shapes.AlertState.FIRING.value
        case shapes.AlertChange.REPEATED:
            firing = await _open_firing(work, row)
            key = f"{change}/{wire_timestamp(work.now)}"
            await commands.notify_change(work, row, change, firing, key, result.message)
        case shapes.AlertChange.RESOLVED:
            await commands.end_firing(work, row, shapes.Resolution.OVER, result.message)
            values["state"] = shapes.AlertState.OK.value
    return {**values, "told_at": work.now}


async def _fire(
    work: UnitOfWork, row: queries.AlertRule, result: shapes.CheckResult
) -> queries.AlertFiring:
    firing = await work.first(
        sa.insert(queries.alert_firing)
        .values(
            id=new_id(),
            workspace_id=row.workspace_id,
            alert_rule_id=row.id,
            message=result.message,
            value=result.value,
            run_id=result.run_id,
            fired_at=work.now,
        )
        .returning(queries.alert_firing),
        of=queries.AlertFiring,
    )
    assert firing is not None, "the rule is locked and does not fire"
    return firing


async def _open_firing(work: UnitOfWork, row: queries.AlertRule) -> queries.AlertFiring:
    statement = sa.select(queries.alert_firing).where(
        queries.alert_firing.c.alert_rule_id == row.id, queries.alert_firing.c.resolved_at.is_(None)
    )
    firing = await work.first(statement, of=queries.AlertFiring)
    assert firing is not None, "a rule that fires has a firing"
    return firing
