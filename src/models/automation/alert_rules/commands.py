"""Alert rules: created, changed, deleted, and evaluated behind the runs, in many processes.

Each change of an alert is notified once.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
import structlog

from models.automation.alert_rules import queries, shapes
from models.automation.alert_rules.shapes import read_condition
from models.automation.automation_runs.filters import check_filter, sees_automation
from models.automation.automation_runs.queries import RUN
from models.automation.automations.queries import AUTOMATION
from models.core.access.rules import Actor, Principal, PrincipalType, Scope
from models.core.base import Deleted, Id, JsonObject
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, about, notify
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from models.people.members import roles_in, strangers
from models.people.workspaces import living_workspaces
from models.sources.connections.store import is_shared, sees_connection
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.ids import new_id
from runtime.processes.fault_injection import FaultPoint, inject_fault

_rule = queries.alert_rule.c
_CHANGED, _DISABLED = "The rule was changed.", "The rule was disabled."
_firing = queries.alert_firing.c


async def create_rule(
    work: UnitOfWork, actor: Actor, rule_id: Id, body: shapes.CreateAlertRule
) -> shapes.AlertRuleShape:
    """Make a rule, which acts with the rights of the actor.

    Raises NotFoundError for what the actor does not see or who is no member, and ConflictError
    when there are too many.
    """
    recipients = body.recipient_user_ids or [actor.user_id]
    await _check_recipients(work, actor, recipients)
    values = {
        "label": body.label,
        **await _watching(work, actor, body.condition),
        "recipient_user_ids": list(dict.fromkeys(recipients)),
        "repeat_minutes": body.repeat_minutes,
        "enabled": body.enabled,
        "disabled_reason": None if body.enabled else shapes.AlertDisabledReason.MANUAL.value,
        "state": shapes.AlertState.OK.value,
        "saved_by_user_id": actor.user_id,
        "watched_since": work.now,
        "due_at": work.now,
    }
    await queries.RULES.add(work, actor, rule_id, values)
    return await queries.get_rule(work, actor, rule_id)


async def update_rule(
    work: UnitOfWork, actor: Actor, rule_id: Id, body: shapes.UpdateAlertRule
) -> shapes.AlertRuleShape:
    """Change a rule, which acts with the rights of the actor from then on.

    A rule that fires and is disabled, or watches something else, fires no more. Raises
    NotFoundError for what the actor does not see, or who is no member.
    """
    row = await queries.RULES.find(work, actor, rule_id, lock=True)
    values: dict[str, Any] = {}
    if body.label is not None:
        values["label"] = body.label
    if body.recipient_user_ids is not None:
        await _check_recipients(work, actor, body.recipient_user_ids)
        values["recipient_user_ids"] = list(dict.fromkeys(body.recipient_user_ids))
    if "repeat_minutes" in body.model_fields_set:
        values["repeat_minutes"] = body.repeat_minutes
    if body.condition is not None:
        values |= await _watching(work, actor, body.condition)
    if body.enabled is not None:
        reason = None if body.enabled else shapes.AlertDisabledReason.MANUAL.value
        values |= {"enabled": body.enabled, "disabled_reason": reason}
    anew = body.condition is not None or (body.enabled is True and not row.enabled)
    if anew:
        values |= {"watched_since": work.now, "due_at": work.now}
        values |= dict.fromkeys(("pending_since", "checked_at", "problem"))
    if row.state == shapes.AlertState.FIRING and (anew or body.enabled is False):
        ended = shapes.Resolution.CHANGED if anew else shapes.Resolution.DISABLED
        await end_firing(work, row, ended, _CHANGED if anew else _DISABLED)
        values["state"] = shapes.AlertState.OK.value
    await queries.RULES.change(work, actor, rule_id, {**values, "saved_by_user_id": actor.user_id})
    return await queries.get_rule(work, actor, rule_id)


async def delete_rule(work: UnitOfWork, actor: Actor, rule_id: Id) -> Deleted:
    """Delete a rule with its firings. Raises NotFoundError."""
    return await queries.RULES.delete(work, actor, rule_id)


async def disable(
    work: UnitOfWork, row: queries.AlertRule, reason: shapes.AlertDisabledReason
) -> None:
    """Disable a locked rule whose saver may not watch any more, and tell the recipients."""
    if row.state == shapes.AlertState.FIRING:
        await end_firing(work, row, shapes.Resolution.DISABLED, _DISABLED, quietly=True)
    await work.execute(
        sa.update(queries.alert_rule)
        .where(_rule.id == row.id)
        .values(
            enabled=False,
            disabled_reason=reason.value,
            state=shapes.AlertState.OK.value,
            checked_at=work.now,
        )
    )
    await notify_disabled(work, row, reason)


async def end_firing(
    work: UnitOfWork,
    row: queries.AlertRule,
    resolution: shapes.Resolution,
    message: str,
    *,
    quietly: bool = False,
) -> None:
    """End the firing of a locked rule that fires, and tell it; quietly, the log alone."""
    firing = await work.first(
        sa.update(queries.alert_firing)
        .where(_firing.alert_rule_id == row.id, _firing.resolved_at.is_(None))
        .values(resolved_at=work.now, resolution=resolution.value)
        .returning(queries.alert_firing),
        of=queries.AlertFiring,
    )
    assert firing is not None, "a rule that fires has a firing"
    change = shapes.AlertChange.RESOLVED
    await log_change(work, row, change, firing, message)
    if not quietly:
        await notify_change(work, row, change, firing, change.value, message)


async def sees_subject(work: UnitOfWork, actor: Actor, row: queries.AlertRule) -> bool:
    """True when the actor sees the automation or the connection that a rule names."""
    if row.connection_id is not None:
        return await sees_connection(work, actor, row.connection_id)
    return row.automation_id is None or await sees_automation(work, actor, row.automation_id)


async def _watching(work: UnitOfWork, actor: Actor, condition: shapes.AlertCondition) -> JsonObject:
    """The columns of a condition. Raises NotFoundError for what the actor does not see."""
    query = getattr(condition, "query", None)
    connection_id = getattr(condition, "connection_id", None)
    if query is not None:
        await check_filter(work, actor, query, "condition.query")
    if connection_id is not None and not await sees_connection(work, actor, connection_id):
        raise NotFoundError("connection")
    wire = condition.model_dump(mode="json", by_alias=True, exclude={"query"})
    return {
        "kind": condition.kind,
        "condition": wire if query is None else {**wire, "query": query.wire},
        "automation_id": None if query is None else query.automation_id,
        "connection_id": connection_id,
    }


async def _check_recipients(work: UnitOfWork, actor: Actor, user_ids: Collection[Id]) -> None:
    if await strangers(work, actor.workspace_id, user_ids):
        raise NotFoundError("user")


_TITLES = {
    shapes.AlertChange.FIRED: "{}",
    shapes.AlertChange.REPEATED: "Still firing: {}",
    shapes.AlertChange.RESOLVED: "Resolved: {}",
}
_EVENTS = {
    shapes.AlertChange.FIRED: EventType.ALERT_FIRED,
    shapes.AlertChange.RESOLVED: EventType.ALERT_RESOLVED,
}
_BRIEF = {
    shapes.AlertChange.FIRED: "Calls through a connection fail. You can't see the connection.",
    shapes.AlertChange.REPEATED: (
        "Calls through a connection still fail. You can't see the connection."
    ),
    shapes.AlertChange.RESOLVED: (
        "Calls through the connection work again, or are no longer monitored."
    ),
}
"""The text for recipients who do not see the connection that a rule is about."""
_BRIEF_OF_RUNS = {
    shapes.AlertChange.FIRED: shapes.UNSEEN_RUN,
    shapes.AlertChange.REPEATED: "The rule still matches a run you have no access to.",
    shapes.AlertChange.RESOLVED: "The rule no longer matches.",
}
"""The text for recipients who do not see the run that a rule over the workspace met."""

_DISABLED_BODIES: Mapping[shapes.AlertDisabledReason, str] = {
    shapes.AlertDisabledReason.SAVER_LEFT: (
        "Its author left the workspace. Save it to enable it again."
    ),
    shapes.AlertDisabledReason.RIGHTS_LOST: (
        "The author of the rule lost access to what it monitors."
    ),
}


async def log_change(
    work: UnitOfWork,
    rule: queries.AlertRule,
    change: shapes.AlertChange,
    firing: queries.AlertFiring,
    message: str,
) -> None:
    """Log a change; about a connection that is not shared it is for the saver of the rule alone."""
    private = await _is_private(work, rule)
    await append_event(
        work,
        Principal.of_platform(rule.id),
        rule.workspace_id,
        _EVENTS[change],
        {**_ids(rule, firing.id), "kind": rule.kind, "label": rule.label, "message": message},
        audience_user_id=rule.saved_by_user_id if private else None,
        item_id=await _item_of(work, rule, firing),
    )


async def notify_change(
    work: UnitOfWork,
    rule: queries.AlertRule,
    change: shapes.AlertChange,
    firing: queries.AlertFiring,
    key: str,
    message: str,
) -> None:
    """Notify the recipients who are members; `key` names the change of this firing.

    Each is told once. Who does not see the connection or the run is told that the rule applies, and
    nothing of what it found.
    """
    notice = Notice(
        kind=NotificationKind.ALERT,
        title=about(_TITLES[change].format(rule.label)),
        body=message,
        item_id=await _item_of(work, rule, firing),
        run_id=firing.run_id,
        data={**_ids(rule, firing.id), "change": change.value},
        key=f"alert/{firing.id}/{key}",
    )
    recipients = set(rule.recipient_user_ids)
    if await _is_private(work, rule):
        data = {"alertRuleId": str(rule.id), "change": change.value}
        brief = replace(notice, body=_BRIEF[change], data=data)
        await notify(work, rule.workspace_id, sorted(recipients - {rule.saved_by_user_id}), brief)
        recipients &= {rule.saved_by_user_id}
    told = await notify(work, rule.workspace_id, sorted(recipients), notice)
    if rule.automation_id is None and firing.run_id is not None:
        data = {"alertRuleId": str(rule.id), "change": change.value}
        brief = replace(notice, body=_BRIEF_OF_RUNS[change], data=data, item_id=None, run_id=None)
        await notify(work, rule.workspace_id, sorted(recipients - set(told)), brief)


async def notify_disabled(
    work: UnitOfWork, rule: queries.AlertRule, reason: shapes.AlertDisabledReason
) -> None:
    """Notify the recipients that a rule watches nothing any more."""
    notice = Notice(
        kind=NotificationKind.ALERT,
        title=about(f"Disabled: {rule.label}"),
        body=_DISABLED_BODIES[reason],
        item_id=await _item_of(work, rule),
        data={"alertRuleId": str(rule.id), "change": "disabled"},
    )
    await notify(work, rule.workspace_id, rule.recipient_user_ids, notice)


async def _is_private(work: UnitOfWork, rule: queries.AlertRule) -> bool:
    """True of a rule about a connection that its saver alone sees."""
    if rule.connection_id is None:
        return False
    return not await is_shared(work, rule.workspace_id, rule.connection_id)


def _ids(rule: queries.AlertRule, firing_id: Id) -> dict[str, str]:
    return {
        "alertRuleId": str(rule.id),
        "firingId": str(firing_id),
        **({} if rule.automation_id is None else {"automationId": str(rule.automation_id)}),
        **({} if rule.connection_id is None else {"connectionId": str(rule.connection_id)}),
    }


async def _item_of(
    work: UnitOfWork, rule: queries.AlertRule, firing: queries.AlertFiring | None = None
) -> Id | None:
    """The item of the automation that a rule is about, or whose run it met."""
    in_workspace = sa.select(AUTOMATION.item_id).where(AUTOMATION.workspace_id == rule.workspace_id)
    if rule.automation_id is not None:
        statement = in_workspace.where(AUTOMATION.id == rule.automation_id)
    elif firing is not None and firing.run_id is not None:
        statement = in_workspace.where(AUTOMATION.id == RUN.automation_id, RUN.id == firing.run_id)
    else:
        return None
    item_id: Id | None = await work.scalar(statement)
    return item_id


log = structlog.get_logger()

MOST_AT_ONCE = 20
"""Rules that one transaction evaluates."""
SECONDS_BETWEEN = 60
SECONDS_AFTER_PROBLEM = 15 * 60
"""A rule that was too slow waits longer: one workspace must not delay the rules of others."""
OVERDUE_SECONDS = 90
"""Rules that no worker has evaluated for so long are evaluated by others."""
BROKEN = "The rule could not be evaluated. Save it again."


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
        await disable(work, row, actor)
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
    if Scope.AUTOMATIONS_READ not in scopes or not await sees_subject(work, actor, row):
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
            await log_change(work, row, change, firing, result.message)
            await notify_change(work, row, change, firing, change.value, result.message)
            values["state"] = shapes.AlertState.FIRING.value
        case shapes.AlertChange.REPEATED:
            firing = await _open_firing(work, row)
            key = f"{change}/{wire_timestamp(work.now)}"
            await notify_change(work, row, change, firing, key, result.message)
        case shapes.AlertChange.RESOLVED:
            await end_firing(work, row, shapes.Resolution.OVER, result.message)
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
