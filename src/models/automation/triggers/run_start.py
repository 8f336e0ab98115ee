"""Starting the run of an automation for an event, and notifying people when there is none."""

from collections.abc import Mapping

import structlog

from models.automation.automation_runs.acceptance import MAX_CHAIN, RunRequest, accept, is_too_long
from models.automation.automation_runs.rules import RunSource
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations.queries import authors_of, item_of_automation
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.automations.rules.triggers.subscriptions import RECORD_TRIGGERS
from models.automation.triggers.subscribers import Subscriber
from models.core.base import Id, JsonObject
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id

log = structlog.get_logger()

RUN_SOURCES: Mapping[TriggerKind, RunSource] = {
    **dict.fromkeys(RECORD_TRIGGERS, RunSource.RECORD),
    TriggerKind.FORM_SUBMITTED: RunSource.FORM,
    TriggerKind.BUTTON_PRESSED: RunSource.BUTTON,
    TriggerKind.DATA_SOURCE_FINISHED: RunSource.DATA_SOURCE,
    TriggerKind.AUTOMATION_FAILED: RunSource.FAILURE,
    TriggerKind.TIME_ENTRY_COMPLETED: RunSource.TIME_ENTRY,
}
"""The source of the runs that each trigger starts, for the triggers that subscribe to events."""

MAX_NOTIFIED = 20
"""People who are notified about one automation."""


async def start(
    work: UnitOfWork, subscriber: Subscriber, payload: JsonObject, chain: list[Id], *names: object
) -> None:
    """Accept a run whose id follows from `names`; repeating this changes nothing.

    A chain of runs that is too long ends here, with a notification (decisions C7).
    """
    if is_too_long(chain):
        await _notify_loop(work, subscriber)
        return
    request = RunRequest(
        RUN_SOURCES[subscriber.kind],
        payload,
        run_id=derived_id(subscriber.automation_id, *names),
        chain=tuple(chain),
    )
    actor = automation_actor(subscriber.workspace_id, subscriber.automation_id)
    await accept(work, actor, subscriber.version, request)


async def _notify_loop(work: UnitOfWork, subscriber: Subscriber) -> None:
    log.warning("a chain of runs ended", automation_id=str(subscriber.automation_id))
    body = (
        f"Runs started one another {MAX_CHAIN} times over, and the last of them was not started."
        " Let its trigger listen to fewer changes, or let its nodes change nothing that is so."
    )
    hour = f"{work.now:%Y-%m-%dT%H}"
    await _notify_authors(
        work, subscriber, NotificationKind.AUTOMATION_LOOP, "starts itself", body, hour
    )


async def notify_filter_failed(work: UnitOfWork, subscriber: Subscriber, reason: str) -> None:
    """Notify that the filter of a trigger could not be evaluated, at most once a day."""
    log.warning("a trigger's filter failed", automation_id=str(subscriber.automation_id))
    body = f"A change was not answered, because the filter of the trigger failed on it: {reason}"
    day = f"{work.now:%Y-%m-%d}"
    await _notify_authors(
        work, subscriber, NotificationKind.AUTOMATION_FAILED, "could not judge a change", body, day
    )


async def _notify_authors(  # the parts of one notice
    work: UnitOfWork,
    subscriber: Subscriber,
    kind: NotificationKind,
    predicate: str,
    body: str,
    period: str,
) -> None:
    """Notify the authors of the automation's versions, at most once a period."""
    this = subscriber.workspace_id, subscriber.automation_id
    authors = await authors_of(work, *this, MAX_NOTIFIED)
    item_id = await item_of_automation(work, *this)
    notice = Notice(
        kind=kind,
        title=f"“{subscriber.version.label}” {predicate}",
        body=body,
        item_id=item_id,
        data={"automationId": str(subscriber.automation_id)},
        key=f"{kind}/{subscriber.automation_id}/{period}",
    )
    await notify(work, subscriber.workspace_id, authors, notice)
