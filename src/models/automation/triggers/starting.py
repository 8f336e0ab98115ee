"""Starting the run that answers an event, or saying why there is none."""

import structlog
from sqlalchemy import select

from models.automation.automation_runs.acceptance import MAX_CHAIN, RunRequest, accept, is_too_long
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations.tables import automation, automation_version
from models.automation.triggers.listening import Listener
from models.automation.triggers.rules.kinds import RUN_SOURCES
from models.core.base import Id, JsonObject
from models.messages.notifications.delivery import Notice, notify
from models.messages.notifications.rules import NotificationKind
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id

log = structlog.get_logger()

MAX_TOLD = 20
"""People who are told about one automation."""


async def start(
    work: UnitOfWork, listener: Listener, payload: JsonObject, chain: list[Id], *names: object
) -> None:
    """Accept the run of an automation that `names` tell from all others; repeated, nothing.

    A chain of runs that has grown too long ends here, and somebody is told (decisions C7).
    """
    if is_too_long(chain):
        await _tell_of_loop(work, listener)
        return
    request = RunRequest(
        RUN_SOURCES[listener.kind],
        payload,
        run_id=derived_id(listener.automation_id, *names),
        chain=tuple(chain),
    )
    actor = automation_actor(listener.workspace_id, listener.automation_id)
    await accept(work, actor, listener.version, request)


async def _tell_of_loop(work: UnitOfWork, listener: Listener) -> None:
    log.warning("a chain of runs ended", automation_id=str(listener.automation_id))
    body = (
        f"Runs started one another {MAX_CHAIN} times over, and the last of them was not started."
        " Let its trigger listen to fewer changes, or let its nodes change nothing that is so."
    )
    hour = f"{work.now:%Y-%m-%dT%H}"
    await _tell(work, listener, NotificationKind.AUTOMATION_LOOP, "starts itself", body, hour)


async def tell_of_filter(work: UnitOfWork, listener: Listener, reason: str) -> None:
    """Tell that the filter of a trigger could not be evaluated, once a day."""
    log.warning("a trigger's filter failed", automation_id=str(listener.automation_id))
    body = f"A change was not answered, because the filter of the trigger failed on it: {reason}"
    day = f"{work.now:%Y-%m-%d}"
    await _tell(
        work, listener, NotificationKind.AUTOMATION_FAILED, "could not judge a change", body, day
    )


async def _tell(  # the parts of one notice
    work: UnitOfWork,
    listener: Listener,
    kind: NotificationKind,
    predicate: str,
    body: str,
    period: str,
) -> None:
    """Notify those who wrote the automation's versions, once in a period."""
    of_automation = (
        automation_version.c.workspace_id == listener.workspace_id,
        automation_version.c.automation_id == listener.automation_id,
    )
    authors = await work.rows(
        select(automation_version.c.created_by_user_id)
        .where(*of_automation, automation_version.c.created_by_user_id.is_not(None))
        .distinct()
        .limit(MAX_TOLD)
    )
    item_id = await work.scalar(
        select(automation.c.item_id).where(
            automation.c.workspace_id == listener.workspace_id,
            automation.c.id == listener.automation_id,
        )
    )
    notice = Notice(
        kind=kind,
        title=f"“{listener.version.label}” {predicate}",
        body=body,
        item_id=item_id,
        data={"automationId": str(listener.automation_id)},
        key=f"{kind}/{listener.automation_id}/{period}",
    )
    await notify(work, listener.workspace_id, [row.created_by_user_id for row in authors], notice)
