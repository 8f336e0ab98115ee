"""The next due times of a schedule, computed without Temporal."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from sqlalchemy import func, select

from models.automation.automations.rules.triggers.configs import (
    parse_trigger_config,
    read_trigger,
    trigger_problems,
)
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger, TriggerConfig
from models.automation.automations.shapes import DueTime, SchedulePreview
from models.automation.automations.tables import automation, automation_graph, automation_version
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.schedules.clock_changes import clock_notes, day_notes
from models.core.schedules.shapes import PassedOver
from models.core.schedules.timetables import EARLIEST
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError


async def preview_stored(
    work: UnitOfWork, actor: Actor, automation_id: Id, count: int, after: datetime | None
) -> SchedulePreview:
    """The next due times of the draft's schedule, or else of the published version's.

    Also shows how many due times of the published version had no run so far.

    Raises NotFoundError, and ValidationError when the version has no schedule, or one that cannot
    be published.
    """
    row = await work.first(
        select(
            automation_graph.c.trigger_config,
            automation.c.skipped_fires,
            automation.c.missed_fires,
        )
        .select_from(automation)
        .outerjoin(
            automation_version,
            automation_version.c.id
            == func.coalesce(automation.c.draft_version_id, automation.c.published_version_id),
        )
        .outerjoin(
            automation_graph,
            (automation_graph.c.automation_id == automation_version.c.automation_id)
            & (automation_graph.c.checksum == automation_version.c.checksum),
        )
        .where(automation.c.workspace_id == actor.workspace_id, automation.c.id == automation_id)
    )
    if row is None:
        raise NotFoundError("automation")
    if row.trigger_config is None:
        raise ValidationError.at("triggerConfig", "The automation has no version yet.")
    passed_over = PassedOver(skipped=row.skipped_fires, missed=row.missed_fires)
    return _preview(read_trigger(row.trigger_config), count, after or work.now, passed_over)


def preview_given(trigger_config: JsonObject, count: int, after: datetime) -> SchedulePreview:
    """The next due times of a schedule that is not saved. Raises ValidationError."""
    return _preview(read_trigger(parse_trigger_config(trigger_config)), count, after)


def _preview(
    trigger: TriggerConfig, count: int, after: datetime, passed_over: PassedOver | None = None
) -> SchedulePreview:
    if not isinstance(trigger, ScheduleTrigger):
        raise ValidationError.at("triggerConfig.kind", "Only a schedule has due times.")
    problems = list(trigger_problems(trigger))
    if problems:
        raise ValidationError(f"{problems[0].path}: {problems[0].message}", problems)
    timetable, after = trigger.timetable, max(after, EARLIEST)
    zone = ZoneInfo(timetable.zone)
    due = list(islice(timetable.after(after), count))
    return SchedulePreview(
        timezone=timetable.zone,
        times=[DueTime(at=at, local=at.astimezone(zone).isoformat()) for at in due],
        notes=[*_notes(trigger), *(clock_notes(timetable, after, due[-1]) if due else [])],
        passed_over=passed_over,
    )


def _notes(trigger: ScheduleTrigger) -> Iterator[str]:
    yield from day_notes(trigger.timetable)
    if trigger.jitter_seconds:
        yield f"Each run begins up to {trigger.jitter_seconds} seconds later (jitterSeconds)."
