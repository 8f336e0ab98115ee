"""The runs of a schedule: one for each due time, whether the schedule fires or it is backfilled.

The id of a run follows from its automation and its due time, so that no due time has two runs.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from models.automation.automation_runs.acceptance import RunRequest, accept
from models.automation.automation_runs.rules import OPEN_RUN, RunSource
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automation_runs.run_metadata import SCHEDULE_NOTE
from models.automation.automation_runs.start_intents import accepted_start_request
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.automations.schedules import AUTOMATION_SCHEDULES, NO_SCHEDULE
from models.automation.automations.shapes import Backfill, Backfilled
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.schedules.clock_changes import fire_note
from models.core.schedules.commands import scheduled, set_next_run
from models.core.schedules.timetables import due_run_id
from runtime.database import UnitOfWork
from runtime.errors import RunError, ValidationError
from runtime.families import Family
from runtime.timestamps import wire_timestamp

MAX_BACKFILL = 1_000
"""Due times of one backfill."""


@dataclass(frozen=True, slots=True)
class DueRun:
    """An open run of a due time, and the request that starts it in Temporal."""

    run_id: Id
    workspace_id: Id
    request: JsonObject


async def fire(work: UnitOfWork, automation_id: Id, due: datetime) -> DueRun | None:
    """The run of a due time that has come, which the caller starts and waits for.

    None when there is nothing to wait for: the automation has no schedule any more, is disabled or
    archived, has no slot for it, or the run has ended already.
    """
    schedule = await scheduled(work, AUTOMATION_SCHEDULES, automation_id)
    if schedule is None:
        return None
    await set_next_run(work, AUTOMATION_SCHEDULES, automation_id, schedule.next_after(work.now))
    version = await runnable_versions.live(work, schedule.workspace_id, automation_id)
    if version is None:
        return None
    actor = automation_actor(schedule.workspace_id, automation_id)
    request = _request(version, due, RunSource.SCHEDULE, started_by_caller=True)
    run_id = (await accept(work, actor, version, request)).run_id
    start = await accepted_start_request(work, run_id)
    status = await work.scalar(select(automation_run.c.status).where(automation_run.c.id == run_id))
    if status not in OPEN_RUN or start is None:
        return None
    return DueRun(run_id, schedule.workspace_id, dict(start))


async def backfill(work: UnitOfWork, actor: Actor, automation_id: Id, body: Backfill) -> Backfilled:
    """Accept a run for every due time of a period that has none yet.

    They start like any accepted runs, under the running cap of their workspace; the schedule's
    overlap is not theirs, but `triggerConfig.concurrency` is. Raises RunError unless the automation
    is published with a schedule and enabled, ValidationError for a period that is none, is not over
    or has too many due times.
    """
    version = await runnable_versions.published(work, actor, automation_id)
    trigger = read_trigger(version.trigger_config)
    if not isinstance(trigger, ScheduleTrigger):
        raise RunError(NO_SCHEDULE)
    if body.start >= body.end:
        raise ValidationError.at("from", "It must lie before `to`.")
    if body.end > work.now:
        raise ValidationError.at("to", "It lies in the future, where the schedule itself fires.")
    due = trigger.timetable.between(body.start, body.end, MAX_BACKFILL + 1)
    if len(due) > MAX_BACKFILL:
        raise ValidationError.at(
            "from", f"The period has more than {MAX_BACKFILL:,} due times. Ask for it in parts."
        )
    created = 0
    for moment in due:
        request = _request(version, moment, RunSource.BACKFILL)
        created += (await accept(work, actor, version, request)).created
    return Backfilled(start=body.start, end=body.end, count=len(due), created=created)


def _request(
    version: RunnableVersion, due: datetime, source: RunSource, *, started_by_caller: bool = False
) -> RunRequest:
    timezone = version.trigger_config["timezone"]
    schedule_id = Family.AUTOMATION_SCHEDULE.workflow_id(version.automation_id)
    trigger = read_trigger(version.trigger_config)
    note = fire_note(trigger.timetable, due) if isinstance(trigger, ScheduleTrigger) else None
    return RunRequest(
        source,
        {"scheduledAt": wire_timestamp(due), "timezone": timezone},
        options={} if note is None else {SCHEDULE_NOTE: note},
        run_id=due_run_id(schedule_id, due),
        started_by_caller=started_by_caller,
    )
