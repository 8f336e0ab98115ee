"""The state of the platform, for its administrators."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.workspace.system.queries import system_state
from models.workspace.system.shapes import SystemState

router = Router(tags=["administration"])


@router.get("/v1/admin/system", access=Access(platform_admin=True))
async def get_system_state(request: ApiRequest) -> Data[SystemState]:
    """Get what waits, for how long, and which workers are there.

    `relay` is what Temporal has not been told yet, `events` what automations have not answered,
    `work` what was accepted and has not ended.
    """
    return Data(await system_state(request.work))
