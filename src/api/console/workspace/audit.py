"""The log of changes: by whom something was changed, or refused."""

from starlette.responses import Response

from api.console.routing import page_router
from api.console.workspace.settings import SETTINGS, reads, settings_page, turning
from api.kernel.routing import ApiRequest, Cursor
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.people.api_keys.queries import key_names
from models.people.request_logs.queries import list_audit_log
from models.people.users.queries import display_names

router = page_router()


@router.get(f"{SETTINGS}/audit", access=reads(Scope.WORKSPACE_UPDATE))
async def get_audit_log(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the changes made in a workspace."""
    wanted = request.page("audit log", DEFAULT_LIMIT, cursor)
    listed = await list_audit_log(request.work, request.actor, wanted)
    keys = {entry.api_key_id for entry in listed.entries if entry.api_key_id is not None}
    return await settings_page(
        request,
        "settings_audit.html",
        "audit",
        entries=listed.entries,
        names=await display_names(request.work, {entry.user_id for entry in listed.entries}),
        key_names=await key_names(request.work, request.actor, keys),
        turning=turning(request, cursor, listed.cursor),
    )
