"""The schedules of automations: what our rows say they should be, and the next due times."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from models.automation.automations.rules.triggers import configs
from models.automation.automations.rules.triggers import kinds as trigger_kinds
from models.automation.automations.shapes import DueTime, SchedulePreview
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import ITEM, live_item_of
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.schedules import commands, timetables
from models.people.workspaces import live_workspace_of
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.temporal.workflow_kinds import WorkflowKind

NO_SCHEDULE = "The published version of the automation has no schedule."
DISABLED = "The automation is disabled."
ARCHIVED = "The automation is archived."

_published = automation_version.alias("published")
_ever = automation_version.alias("ever")

_SCHEDULED = (
    sa.select(
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
    .where(_published.c.trigger == trigger_kinds.TriggerKind.SCHEDULE.value)
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


def _read(row: _Row) -> timetables.DesiredSchedule:
    trigger = configs.read_trigger(row.trigger_config)
    assert isinstance(trigger, trigger_kinds.ScheduleTrigger), "the version says so"
    return timetables.DesiredSchedule(
        workflow_kind=WorkflowKind.AUTOMATION_SCHEDULE,
        subject_id=row.id,
        workspace_id=row.workspace_id,
        title=timetables.title_of(row.label, "schedule"),
        timing=timing_of(trigger),
        paused=DISABLED if not row.enabled else ARCHIVED if row.archived else None,
        next_run_at=row.next_run_at,
        passed_over=timetables.PassedOverCounts(row.skipped_fires, row.missed_fires),
    )


def timing_of(trigger: trigger_kinds.ScheduleTrigger) -> timetables.Timing:
    """The whole schedule of a trigger without `trigger_problems`."""
    return timetables.Timing(
        timetable=trigger.timetable,
        jitter_seconds=trigger.jitter_seconds,
        overlap=trigger.overlap,
        catchup_seconds=trigger.catchup_window_seconds,
    )


AUTOMATION_SCHEDULES = commands.ScheduleTable(
    automation,
    WorkflowKind.AUTOMATION_SCHEDULE,
    _SCHEDULED,
    _read,
    sa.exists().where(
        _ever.c.automation_id == automation.c.id,
        _ever.c.trigger == trigger_kinds.TriggerKind.SCHEDULE.value,
        _ever.c.published_at.is_not(None),
    ),
)


async def follow(work: UnitOfWork, automation_id: Id) -> None:
    """Update the schedule of an automation whose row the caller has locked and may have changed."""
    await commands.follow(work, AUTOMATION_SCHEDULES, automation_id)


async def announce(work: UnitOfWork, condition: sa.ColumnElement[bool]) -> None:
    """Update the schedules of automations whose rows the caller has not locked."""
    await commands.announce(work, AUTOMATION_SCHEDULES, condition)


def require_future(trigger_config: JsonObject, now: datetime) -> None:
    """Raises ValidationError for a schedule without other problems that would never fire."""
    trigger = configs.read_trigger(trigger_config)
    if (
        isinstance(trigger, trigger_kinds.ScheduleTrigger)
        and trigger.timetable.next_after(now) is None
    ):
        raise ValidationError.at("triggerConfig.endAt", "The schedule ends before its first run.")


async def preview_stored(
    work: UnitOfWork, actor: Actor, automation_id: Id, count: int, after: datetime | None
) -> SchedulePreview:
    """The next due times of the draft's schedule, or else of the published version's.

    Also counts the due times of the published version that had no run so far.

    Raises NotFoundError, and ValidationError when the version has no schedule, or one that cannot
    be published.
    """
    row = await work.one(
        sa.select(
            automation_graph.c.trigger_config,
            automation.c.skipped_fires,
            automation.c.missed_fires,
        )
        .select_from(automation)
        .outerjoin(
            automation_version,
            automation_version.c.id
            == sa.func.coalesce(automation.c.draft_version_id, automation.c.published_version_id),
        )
        .outerjoin(
            automation_graph,
            (automation_graph.c.automation_id == automation_version.c.automation_id)
            & (automation_graph.c.checksum == automation_version.c.checksum),
        )
        .where(automation.c.workspace_id == actor.workspace_id, automation.c.id == automation_id),
        "automation",
    )
    if row.trigger_config is None:
        raise ValidationError.at("triggerConfig", "The automation has no version yet.")
    passed_over = timetables.PassedOver(skipped=row.skipped_fires, missed=row.missed_fires)
    return _preview(configs.read_trigger(row.trigger_config), count, after or work.now, passed_over)


def preview_given(trigger_config: JsonObject, count: int, after: datetime) -> SchedulePreview:
    """The next due times of a schedule that is not saved. Raises ValidationError."""
    return _preview(
        configs.read_trigger(configs.parse_trigger_config(trigger_config)), count, after
    )


def _preview(
    trigger: trigger_kinds.TriggerConfig,
    count: int,
    after: datetime,
    passed_over: timetables.PassedOver | None = None,
) -> SchedulePreview:
    if not isinstance(trigger, trigger_kinds.ScheduleTrigger):
        raise ValidationError.at("triggerConfig.kind", "Only a schedule has due times.")
    problems = list(configs.trigger_problems(trigger))
    if problems:
        raise ValidationError(f"{problems[0].path}: {problems[0].message}", problems)
    timetable, after = trigger.timetable, max(after, timetables.EARLIEST)
    zone = ZoneInfo(timetable.zone)
    due = list(islice(timetable.after(after), count))
    return SchedulePreview(
        timezone=timetable.zone,
        times=[DueTime(at=at, local=at.astimezone(zone).isoformat()) for at in due],
        notes=[
            *_notes(trigger),
            *(timetables.clock_notes(timetable, after, due[-1]) if due else []),
        ],
        passed_over=passed_over,
    )


def _notes(trigger: trigger_kinds.ScheduleTrigger) -> Iterator[str]:
    yield from timetables.day_notes(trigger.timetable)
    if trigger.jitter_seconds:
        yield f"Each run begins up to {trigger.jitter_seconds} seconds later (jitterSeconds)."
