"""Keeping subscriptions true: what each automation subscribes to.

Whatever changes a trigger, publishes, enables, trashes or restores an automation calls `subscribe`
in the same transaction.
"""

from collections.abc import Iterable

from sqlalchemy import BigInteger, ColumnElement, and_, case, cast, delete, func
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automations import runnable_versions
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.automations.rules.triggers.subscriptions import (
    includes_system_changes,
    subject_of,
    subscribes,
)
from models.core.base import Id
from models.messages.events.tables import automation_subscription, trigger_event
from runtime.database import UnitOfWork

_TABLE = automation_subscription


async def subscribe(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> None:
    """Make the subscription of an automation what its live version's trigger says, or delete it.

    An automation that still subscribes to the same keeps its position: it misses no event that
    waits.
    """
    version = await runnable_versions.live(work, workspace_id, automation_id)
    if version is None or not subscribes(version.trigger_config):
        await work.execute(
            delete(_TABLE).where(
                _TABLE.c.workspace_id == workspace_id, _TABLE.c.automation_id == automation_id
            )
        )
        return
    config = version.trigger_config
    dated = config["kind"] == TriggerKind.RECORD_DATE_REACHED
    new = upsert(_TABLE).values(
        automation_id=automation_id,
        workspace_id=workspace_id,
        kind=config["kind"],
        subject_id=subject_of(config),
        include_system=includes_system_changes(config),
        after_event=_next_event_number(),
        polled_until=work.now if dated else None,
        next_poll_at=work.now if dated else None,
    )
    same = and_(
        _TABLE.c.kind == new.excluded.kind,
        _TABLE.c.subject_id.is_not_distinct_from(new.excluded.subject_id),
    )
    positions = {
        name: case((same, _TABLE.c[name]), else_=new.excluded[name])
        for name in ("after_event", "polled_until")
    }
    taken = {name: new.excluded[name] for name in ("kind", "subject_id", "include_system")}
    await work.execute(
        new.on_conflict_do_update(
            index_elements=["automation_id"],
            set_={**taken, **positions, "next_poll_at": new.excluded.next_poll_at},
        )
    )
    if dated:
        work.notify_workers = True


async def subscribe_all(work: UnitOfWork, workspace_id: Id, automation_ids: Iterable[Id]) -> None:
    """`subscribe` for several automations, such as those below an item that is trashed."""
    for automation_id in sorted(automation_ids):
        await subscribe(work, workspace_id, automation_id)


def _next_event_number() -> ColumnElement[int]:
    """A number above every event there is, and below every one still to come.

    Numbers come from a sequence: an event that is emitted after this commits has a higher one.
    """
    sequence = func.pg_get_serial_sequence(trigger_event.name, "id")
    return cast(func.nextval(sequence), BigInteger)
