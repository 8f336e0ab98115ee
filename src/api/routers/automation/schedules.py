"""Schedules of automations: when they fire, and runs for due times that have passed."""

from typing import Annotated

from pydantic import Field

from api.kernel.routing import ApiRequest, Data, Router
from api.routers.automation.automation_runs import START
from api.routers.automation.automations import AUTOMATION, READ
from models.automation.automation_runs import scheduled_runs
from models.automation.automations import previews
from models.automation.automations.shapes import (
    Backfill,
    Backfilled,
    PreviewSchedule,
    SchedulePreview,
)
from models.core.moments import InputMoment
from runtime.errors import RunError

router = Router(tags=["automations"])

PREVIEW = f"{AUTOMATION}/schedule-preview"

Count = Annotated[int, Field(ge=1, le=100)]
After = InputMoment | None


@router.get(PREVIEW, access=READ)
async def get_schedule_preview(
    request: ApiRequest, count: Count = 10, after: After = None
) -> Data[SchedulePreview]:
    """Get the next times at which the schedule of an automation fires.

    It is the schedule of the open draft, else of the published version; `after` is a moment to
    look from other than now. `notes` tell what clock changes do to these times: a fixed time that
    the clock skips runs when it is set, one that comes twice runs the first time, and a schedule
    around the clock keeps its interval. `passedOver` counts the due times that had no run.
    """
    automation_id = request.ids["automationId"]
    return Data(
        await previews.preview_stored(request.work, request.actor, automation_id, count, after)
    )


@router.post(PREVIEW, access=READ)
async def preview_schedule(
    request: ApiRequest, body: PreviewSchedule, count: Count = 10, after: After = None
) -> Data[SchedulePreview]:
    """Get the next times at which a schedule would fire that is not saved."""
    return Data(previews.preview_given(body.trigger_config, count, after or request.work.now))


@router.post(f"{AUTOMATION}/backfill", access=START, errors=[RunError])
async def backfill_automation(request: ApiRequest, body: Backfill) -> Data[Backfilled]:
    """Run an automation once for every due time of a past period that has no run yet.

    The runs have the source `backfill` and the payload of the schedule. At most 1,000 due times.
    """
    return Data(
        await scheduled_runs.backfill(
            request.work, request.actor, request.ids["automationId"], body
        )
    )
