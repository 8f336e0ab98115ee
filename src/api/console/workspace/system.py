"""The state of the platform, for its administrators."""

from starlette.responses import Response

from api.console.refusals import refuse
from api.console.workspace.settings import SETTINGS, administers, settings_page
from api.kernel.routing import ApiRequest, Router
from models.workspace.system.queries import system_state

router = Router(tags=["console"], refuse=refuse)


@router.get(f"{SETTINGS}/system", access=administers(), documented=False)
async def get_system_page(request: ApiRequest) -> Response:
    """Look at what waits, for how long, and which workers are there."""
    state = await system_state(request.work)
    return await settings_page(request, "settings_system.html", "system", state=state)
