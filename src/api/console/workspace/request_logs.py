"""The log of the calls made in a workspace."""

from starlette.responses import Response

from api.console.routing import page_router
from api.console.workspace.settings import SETTINGS, reads, settings_page, turning
from api.kernel.routing import ApiRequest, Cursor, Limit
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.people.api_keys.queries import key_names
from models.people.request_logs.queries import page_of_requests
from models.people.users.queries import display_names

router = page_router()


@router.get(f"{SETTINGS}/request-logs", access=reads(Scope.API_KEYS_READ))
async def get_request_logs(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Look through the calls made in a workspace."""
    wanted = request.page("pages of request logs", limit, cursor)
    listed = await page_of_requests(request.work, request.actor, wanted)
    keys = {one.api_key_id for one in listed.items if one.api_key_id is not None}
    people = {one.principal_id for one in listed.items if one.principal_id is not None}
    return await settings_page(
        request,
        "settings_request_logs.html",
        "request-logs",
        calls=listed.items,
        key_names=await key_names(request.work, request.actor, keys),
        names=await display_names(request.work, people - keys),
        limit=limit,
        limits=(30, 50, 100),
        turning=turning(request, cursor, listed.cursor, limit=limit),
    )
