"""The state of the platform, for its administrators."""

from starlette.responses import Response

from api.console.routing import page_router
from api.console.workspace.settings import SETTINGS, administers, settings_page
from api.kernel.routing import ApiRequest
from models.workspace.system.queries import system_state

router = page_router()


@router.get(f"{SETTINGS}/system", access=administers())
async def get_system_page(request: ApiRequest) -> Response:
    """Look at what waits, for how long, and which workers are there."""
    state = await system_state(request.work)
    return await settings_page(request, "settings_system.html", "system", state=state)
