"""Making, changing and deleting alert rules, and ending what they fired."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from models.automation.alert_rules.conditions import AlertCondition
from models.automation.alert_rules.queries import get_rule, load
from models.automation.alert_rules.rules import (
    MAX_RULES,
    AlertChange,
    AlertDisabledReason,
    AlertState,
    Resolution,
)
from models.automation.alert_rules.shapes import (
    AlertRuleShape,
    CreateAlertRule,
    DeletedAlertRule,
    UpdateAlertRule,
)
from models.automation.alert_rules.tables import (
    AlertFiring,
    AlertRule,
    alert_firing,
    alert_rule,
)
from models.automation.alert_rules.telling import log_change, notify_change, notify_disabled
from models.automation.automation_runs.filter_checks import check_filter, sees_automation
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.revisions import next_updated_at
from models.people.members.queries import strangers
from models.sources.connections.queries import sees_connection
from runtime.advisory_locks import lock_name
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError

_rule = alert_rule.c
_CHANGED, _DISABLED = "The rule was changed.", "The rule was disabled."
_firing = alert_firing.c


async def create_rule(
    work: UnitOfWork, actor: Actor, rule_id: Id, body: CreateAlertRule
) -> AlertRuleShape:
    """Make a rule, which acts with the rights of the actor.

    Raises NotFoundError for what the actor does not see or who is no member, and ConflictError
    when there are too many.
    """
    recipients = body.recipient_user_ids or [actor.user_id]
    await _check_recipients(work, actor, recipients)
    # Two requests at the same time must not both take the last place.
    place = f"alert-rules/{actor.workspace_id}"
    await lock_name(work, place)
    count = select(func.count()).where(_rule.workspace_id == actor.workspace_id)
    if await work.scalar(count) >= MAX_RULES:
        raise ConflictError(f"The workspace has {MAX_RULES} alert rules; delete some first.")
    await work.execute(
        insert(alert_rule).values(
            id=rule_id,
            workspace_id=actor.workspace_id,
            label=body.label,
            **await _watching(work, actor, body.condition),
            recipient_user_ids=list(dict.fromkeys(recipients)),
            repeat_minutes=body.repeat_minutes,
            enabled=body.enabled,
            disabled_reason=None if body.enabled else AlertDisabledReason.MANUAL.value,
            state=AlertState.OK.value,
            saved_by_user_id=actor.user_id,
            watched_since=work.now,
            due_at=work.now,
            created_at=work.now,
            updated_at=work.now,
        )
    )
    return await get_rule(work, actor, rule_id)


async def update_rule(
    work: UnitOfWork, actor: Actor, rule_id: Id, body: UpdateAlertRule
) -> AlertRuleShape:
    """Change a rule, which acts with the rights of the actor from then on.

    A rule that fires and is disabled, or watches something else, fires no more. Raises
    NotFoundError for what the actor does not see, or who is no member.
    """
    row = await load(work, actor, rule_id, lock=True)
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
        reason = None if body.enabled else AlertDisabledReason.MANUAL.value
        values |= {"enabled": body.enabled, "disabled_reason": reason}
    anew = body.condition is not None or (body.enabled is True and not row.enabled)
    if anew:
        values |= {"watched_since": work.now, "due_at": work.now}
        values |= dict.fromkeys(("pending_since", "checked_at", "problem"))
    if row.state == AlertState.FIRING and (anew or body.enabled is False):
        ended = Resolution.CHANGED if anew else Resolution.DISABLED
        await end_firing(work, row, ended, _CHANGED if anew else _DISABLED)
        values["state"] = AlertState.OK.value
    values |= {
        "saved_by_user_id": actor.user_id,
        "updated_at": next_updated_at(_rule.updated_at, work.now),
    }
    await work.execute(update(alert_rule).where(_rule.id == row.id).values(values))
    return await get_rule(work, actor, rule_id)


async def delete_rule(work: UnitOfWork, actor: Actor, rule_id: Id) -> DeletedAlertRule:
    """Delete a rule with its firings. Raises NotFoundError."""
    row = await load(work, actor, rule_id, lock=True)
    await work.execute(delete(alert_rule).where(_rule.id == row.id))
    return DeletedAlertRule(id=row.id)


async def disable(work: UnitOfWork, row: AlertRule, reason: AlertDisabledReason) -> None:
    """Disable a locked rule whose saver may not watch any more, and tell the recipients."""
    if row.state == AlertState.FIRING:
        await end_firing(work, row, Resolution.DISABLED, _DISABLED, quietly=True)
    await work.execute(
        update(alert_rule)
        .where(_rule.id == row.id)
        .values(
            enabled=False,
            disabled_reason=reason.value,
            state=AlertState.OK.value,
            checked_at=work.now,
        )
    )
    await notify_disabled(work, row, reason)


async def end_firing(
    work: UnitOfWork,
    row: AlertRule,
    resolution: Resolution,
    message: str,
    *,
    quietly: bool = False,
) -> None:
    """End the firing of a locked rule that fires, and tell it; quietly, the log alone."""
    firing = await work.first(
        update(alert_firing)
        .where(_firing.alert_rule_id == row.id, _firing.resolved_at.is_(None))
        .values(resolved_at=work.now, resolution=resolution.value)
        .returning(alert_firing),
        of=AlertFiring,
    )
    assert firing is not None, "a rule that fires has a firing"
    change = AlertChange.RESOLVED
    await log_change(work, row, change, firing, message)
    if not quietly:
        await notify_change(work, row, change, firing, change.value, message)


async def sees_subject(work: UnitOfWork, actor: Actor, row: AlertRule) -> bool:
    """True when the actor sees the automation or the connection that a rule names."""
    if row.connection_id is not None:
        return await sees_connection(work, actor, row.connection_id)
    return row.automation_id is None or await sees_automation(work, actor, row.automation_id)


async def _watching(work: UnitOfWork, actor: Actor, condition: AlertCondition) -> JsonObject:
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
