"""Telling people and the log that a rule fired, still fires, fires no more, or was disabled."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from sqlalchemy import select

from models.automation.alert_rules.rules import UNSEEN_RUN, AlertChange, AlertDisabledReason
from models.automation.automation_runs.joins import RUN
from models.automation.automations.joins import AUTOMATION
from models.core.access.rules import Principal, PrincipalType
from models.core.base import Id
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.notifications.rules import about
from models.messages.workspace_events.commands import append_event
from models.messages.workspace_events.rules import EventType
from models.sources.connections.queries import is_shared
from runtime.database import UnitOfWork

_TITLES = {
    AlertChange.FIRED: "{}",
    AlertChange.REPEATED: "Still: {}",
    AlertChange.RESOLVED: "Over: {}",
}
_EVENTS = {
    AlertChange.FIRED: EventType.ALERT_FIRED,
    AlertChange.RESOLVED: EventType.ALERT_RESOLVED,
}
_BRIEF = {
    AlertChange.FIRED: "Calls through a connection fail. You may not see the connection.",
    AlertChange.REPEATED: "Calls through a connection still fail. You may not see the connection.",
    AlertChange.RESOLVED: "Calls through the connection work again, or it is watched no more.",
}
"""The text for recipients who do not see the connection that a rule is about."""
_BRIEF_OF_RUNS = {
    AlertChange.FIRED: UNSEEN_RUN,
    AlertChange.REPEATED: "The rule still applies to a run that you may not see.",
    AlertChange.RESOLVED: "The rule no longer applies.",
}
"""The text for recipients who do not see the run that a rule over the workspace met."""
_DISABLED: Mapping[AlertDisabledReason, str] = {
    AlertDisabledReason.SAVER_LEFT: "Who saved the rule is no member any more. Save it to go on.",
    AlertDisabledReason.RIGHTS_LOST: "Who saved the rule may not see what it watches any more.",
}


class ToldRule(Protocol):
    """The parts of a rule that are told, and whom."""

    id: Id
    workspace_id: Id
    label: str
    kind: str
    automation_id: Id | None
    connection_id: Id | None
    recipient_user_ids: list[Id]
    saved_by_user_id: Id


class Firing(Protocol):
    """The firing that is told."""

    id: Id
    message: str
    run_id: Id | None


async def log_change(
    work: UnitOfWork, rule: ToldRule, change: AlertChange, firing: Firing, message: str
) -> None:
    """Log a change; about a connection that is not shared it is for the saver of the rule alone."""
    private = await _is_private(work, rule)
    await append_event(
        work,
        Principal(type=PrincipalType.SYSTEM, id=rule.id, user_id=rule.id),
        rule.workspace_id,
        _EVENTS[change],
        {**_ids(rule, firing.id), "kind": rule.kind, "label": rule.label, "message": message},
        audience_user_id=rule.saved_by_user_id if private else None,
        item_id=await _item_of(work, rule, firing),
    )


async def notify_change(
    work: UnitOfWork, rule: ToldRule, change: AlertChange, firing: Firing, key: str, message: str
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


async def notify_disabled(work: UnitOfWork, rule: ToldRule, reason: AlertDisabledReason) -> None:
    """Notify the recipients that a rule watches nothing any more."""
    notice = Notice(
        kind=NotificationKind.ALERT,
        title=about(f"Disabled: {rule.label}"),
        body=_DISABLED[reason],
        item_id=await _item_of(work, rule),
        data={"alertRuleId": str(rule.id), "change": "disabled"},
    )
    await notify(work, rule.workspace_id, rule.recipient_user_ids, notice)


async def _is_private(work: UnitOfWork, rule: ToldRule) -> bool:
    """True of a rule about a connection that its saver alone sees."""
    if rule.connection_id is None:
        return False
    return not await is_shared(work, rule.workspace_id, rule.connection_id)


def _ids(rule: ToldRule, firing_id: Id) -> dict[str, str]:
    return {
        "alertRuleId": str(rule.id),
        "firingId": str(firing_id),
        **({} if rule.automation_id is None else {"automationId": str(rule.automation_id)}),
        **({} if rule.connection_id is None else {"connectionId": str(rule.connection_id)}),
    }


async def _item_of(work: UnitOfWork, rule: ToldRule, firing: Firing | None = None) -> Id | None:
    """The item of the automation that a rule is about, or whose run it met."""
    in_workspace = select(AUTOMATION.item_id).where(AUTOMATION.workspace_id == rule.workspace_id)
    if rule.automation_id is not None:
        statement = in_workspace.where(AUTOMATION.id == rule.automation_id)
    elif firing is not None and firing.run_id is not None:
        statement = in_workspace.where(AUTOMATION.id == RUN.automation_id, RUN.id == firing.run_id)
    else:
        return None
    item_id: Id | None = await work.scalar(statement)
    return item_id
