"""The canary of an automation: a version that a share of its runs tries."""

from api.kernel.routing import ApiRequest, Data, Router
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from models.automation.automation_runs import canary_releases
from models.automation.automation_runs.canary_shapes import CanaryAnswer, StartCanary
from runtime.errors import ConflictError

router = Router(tags=["automations"])

CANARY = f"{AUTOMATION}/canary"


@router.get(CANARY, access=READ)
async def get_canary(request: ApiRequest) -> Data[CanaryAnswer]:
    """Get the canary of an automation, with the runs of both versions by status."""
    automation_id = request.ids["automationId"]
    return Data(await canary_releases.canary(request.work, request.actor, automation_id))


@router.post(CANARY, access=WRITE, errors=[ConflictError])
async def start_canary(request: ApiRequest, body: StartCanary) -> Data[CanaryAnswer]:
    """Publish the draft, or another version, and let a share of runs try it.

    The version that was published before keeps the other runs. Tests, retries and backfills are
    not shared out. Publishing any other version ends the canary.
    """
    place = request.services.keys, request.ids["automationId"], request.new_id
    return Data(await canary_releases.start(request.work, request.actor, *place, body))


@router.post(f"{CANARY}/promote", access=WRITE, errors=[ConflictError])
async def promote_canary(request: ApiRequest) -> Data[CanaryAnswer]:
    """End the canary; every run takes the candidate from now on."""
    automation_id = request.ids["automationId"]
    return Data(await canary_releases.promote(request.work, request.actor, automation_id))


@router.post(f"{CANARY}/stop", access=WRITE, errors=[ConflictError])
async def stop_canary(request: ApiRequest) -> Data[CanaryAnswer]:
    """End the canary, and publish the version from before again."""
    place = request.services.keys, request.ids["automationId"]
    return Data(await canary_releases.stop(request.work, request.actor, *place))
