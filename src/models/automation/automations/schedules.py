"""The schedules of automations: what our rows say they should be."""

from datetime import datetime
from typing import Protocol

from sqlalchemy import ColumnElement, exists, select

from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger, TriggerKind
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import ITEM, live_item_of
from models.core.base import Id, JsonObject
from models.core.schedules import commands
from models.core.schedules.commands import ScheduleTable
from models.core.schedules.desired import DesiredSchedule, PassedOver, Timing, title_of
from models.people.workspaces.queries import live_workspace_of
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.families import Family

NO_SCHEDULE = "The published version of the automation has no schedule."
DISABLED = "The automation is disabled."
ARCHIVED = "The automation is archived."

_published = automation_version.alias("published")
_ever = automation_version.alias("ever")

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


class _Row(Protocol):
    id: Id
    workspace_id: Id
    label: str
    enabled: bool
    next_run_at: datetime | None
    skipped_fires: int
    missed_fires: int
    archived: bool
    trigger_config: JsonObject


def _read(row: _Row) -> DesiredSchedule:
    trigger = read_trigger(row.trigger_config)
    assert isinstance(trigger, ScheduleTrigger), "the version says so"
    return DesiredSchedule(
        family=Family.AUTOMATION_SCHEDULE,
        subject_id=row.id,
        workspace_id=row.workspace_id,
        title=title_of(row.label, "schedule"),
        timing=timing_of(trigger),
        paused=DISABLED if not row.enabled else ARCHIVED if row.archived else None,
        next_run_at=row.next_run_at,
        passed_over=PassedOver(row.skipped_fires, row.missed_fires),
    )


def timing_of(trigger: ScheduleTrigger) -> Timing:
    """The whole schedule of a trigger without `trigger_problems`."""
    return Timing(
        timetable=trigger.timetable,
        jitter_seconds=trigger.jitter_seconds,
        overlap=trigger.overlap,
        catchup_seconds=trigger.catchup_window_seconds,
    )


AUTOMATION_SCHEDULES = ScheduleTable(
    automation,
    Family.AUTOMATION_SCHEDULE,
    _SCHEDULED,
    _read,
    exists().where(
        _ever.c.automation_id == automation.c.id,
        _ever.c.trigger == TriggerKind.SCHEDULE.value,
        _ever.c.published_at.is_not(None),
    ),
)


async def follow(work: UnitOfWork, automation_id: Id) -> None:
    """Update the schedule of an automation whose row the caller has locked and may have changed."""
    await commands.follow(work, AUTOMATION_SCHEDULES, automation_id)


async def announce(work: UnitOfWork, condition: ColumnElement[bool]) -> None:
    """Update the schedules of automations whose rows the caller has not locked."""
    await commands.announce(work, AUTOMATION_SCHEDULES, condition)


def require_future(trigger_config: JsonObject, now: datetime) -> None:
    """Raises ValidationError for a schedule without other problems that would never fire."""
    trigger = read_trigger(trigger_config)
    if isinstance(trigger, ScheduleTrigger) and trigger.timetable.next_after(now) is None:
        raise ValidationError.at(
            "triggerConfig.endAt", "The schedule would end before it runs for the first time."
        )
