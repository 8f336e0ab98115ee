"""Schedules of automations: what our rows say they should be, and intents to update Temporal.

The schedule itself is in Temporal. Whatever changes what it follows from calls `follow` or
`announce` in the same transaction; the delivery of the intent makes the two agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sqlalchemy import ColumnElement, exists, select, update

from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger, TriggerKind
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import ITEM, live_item_of
from models.core.base import Id, JsonObject
from models.people.workspaces.queries import live_workspace_of
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.families import Family

NO_SCHEDULE = "The published version of the automation has no schedule."
DISABLED = "The automation is disabled."
ARCHIVED = "The automation is archived."

_published = automation_version.alias("published")
_ever = automation_version.alias("ever")

_EVER_SCHEDULED = exists().where(
    _ever.c.automation_id == automation.c.id,
    _ever.c.trigger == TriggerKind.SCHEDULE.value,
    _ever.c.published_at.is_not(None),
)
"""Automations that have a schedule in Temporal, or had one which may still be there."""

_SCHEDULED = (
    select(
        automation.c.id,
        automation.c.workspace_id,
        automation.c.label,
        automation.c.enabled,
        automation.c.next_run_at,
        automation.c.skipped_fires,
        automation.c.missed_fires,
        ITEM.archived,
        automation_graph.c.trigger_config,
    )
    .join(*live_item_of(automation))
    .join(*live_workspace_of(automation))
    .join(_published, _published.c.id == automation.c.published_version_id)
    .join(
        automation_graph,
        (automation_graph.c.automation_id == _published.c.automation_id)
        & (automation_graph.c.checksum == _published.c.checksum),
    )
    .where(_published.c.trigger == TriggerKind.SCHEDULE.value)
)
"""Automations that should have a schedule: published with one, and neither they nor their
workspace in the trash."""


class ScheduledAutomation(Protocol):
    """A row of `all_scheduled`."""

    id: Id
    workspace_id: Id
    label: str
    enabled: bool
    next_run_at: datetime | None
    skipped_fires: int
    missed_fires: int
    archived: bool
    trigger_config: JsonObject


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Counts of due times without a run: the run before was open, or no worker ran in time."""

    skipped: int
    missed: int


@dataclass(frozen=True, slots=True)
class DesiredSchedule:
    """The schedule of one automation as it should be; `paused` says why it does not fire."""

    automation_id: Id
    workspace_id: Id
    label: str
    trigger: ScheduleTrigger
    paused: str | None
    next_run_at: datetime | None = field(compare=False)
    """What the automation's row says of `next_after`."""
    passed_over: PassedOver = field(compare=False)
    """What the automation's row says of the due times so far."""

    def next_after(self, moment: datetime) -> datetime | None:
        """When it fires next, without jitter; None while it is paused or after its end."""
        return None if self.paused else self.trigger.timetable.next_after(moment)


async def scheduled(work: UnitOfWork, automation_id: Id) -> DesiredSchedule | None:
    """The schedule an automation should have; None when it should have none."""
    row = await work.first(
        _SCHEDULED.where(automation.c.id == automation_id), of=ScheduledAutomation
    )
    return None if row is None else read_schedule(row)


async def all_scheduled(
    work: UnitOfWork, after: Id | None, limit: int
) -> Sequence[ScheduledAutomation]:
    """Every schedule there should be, for `read_schedule`, by automation id behind `after`."""
    statement = _SCHEDULED.order_by(automation.c.id).limit(limit)
    if after is not None:
        statement = statement.where(automation.c.id > after)
    return await work.rows(statement, of=ScheduledAutomation)


def read_schedule(row: ScheduledAutomation) -> DesiredSchedule:
    """The schedule in a row of `all_scheduled`."""
    trigger = read_trigger(row.trigger_config)
    assert isinstance(trigger, ScheduleTrigger), "the version says so"
    paused = DISABLED if not row.enabled else ARCHIVED if row.archived else None
    passed_over = PassedOver(row.skipped_fires, row.missed_fires)
    return DesiredSchedule(
        row.id, row.workspace_id, row.label, trigger, paused, row.next_run_at, passed_over
    )


async def follow(work: UnitOfWork, automation_id: Id) -> None:
    """Update the schedule of an automation whose row the caller has locked and may have changed."""
    if await announce(work, automation.c.id == automation_id):
        found = await scheduled(work, automation_id)
        due = None if found is None else found.next_after(work.now)
        await set_next_run(work, automation_id, due)


async def announce(work: UnitOfWork, which: ColumnElement[bool]) -> int:
    """Update the schedules of automations whose rows the caller has not locked.

    Returns how many of them may have a schedule. The delivery writes when they run next.
    """
    rows = await work.rows(
        select(automation.c.id, automation.c.workspace_id).where(which, _EVER_SCHEDULED)
    )
    intents: list[outbox.IntentArguments] = [
        {
            "intent": outbox.Intent.SCHEDULE,
            "family": Family.AUTOMATION_SCHEDULE,
            "workspace_id": row.workspace_id,
            "subject_id": row.id,
        }
        for row in rows
    ]
    await outbox.append_all(work, intents)
    return len(intents)


async def set_next_run(work: UnitOfWork, automation_id: Id, due: datetime | None) -> None:
    """Show when an automation runs next."""
    next_run_at = automation.c.next_run_at
    await work.execute(
        update(automation)
        .where(automation.c.id == automation_id, next_run_at.is_distinct_from(due))
        .values(next_run_at=due)
    )


async def set_passed_over(work: UnitOfWork, automation_id: Id, counted: PassedOver) -> None:
    """Show how many due times of the schedule had no run (reliability G23)."""
    await work.execute(
        update(automation)
        .where(automation.c.id == automation_id)
        .values(skipped_fires=counted.skipped, missed_fires=counted.missed)
    )


def require_future(trigger_config: JsonObject, now: datetime) -> None:
    """Raises ValidationError for a schedule without other problems that would never fire."""
    trigger = read_trigger(trigger_config)
    if isinstance(trigger, ScheduleTrigger) and trigger.timetable.next_after(now) is None:
        raise ValidationError.at(
            "triggerConfig.endAt", "The schedule would end before it runs for the first time."
        )
