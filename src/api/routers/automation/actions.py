"""Actions: create, list, read, change, delete."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, Router
from models.automation.actions import commands, queries
from models.automation.actions.shapes import ActionDetail, ActionList, CreateAction, UpdateAction
from models.core.access.rules import Level, Scope
from runtime.errors import ConflictError

router = Router(tags=["actions"])

ACTIONS = "/v1/workspaces/{workspaceId}/actions"
ACTION = f"{ACTIONS}/{{actionId}}"

READ = Access(scopes=[Scope.ACTIONS_READ], resource="action", level=Level.VIEW)
WRITE = Access(scopes=[Scope.ACTIONS_WRITE], resource="action", level=Level.EDIT, idempotent=True)


@router.post(
    ACTIONS,
    access=Access(scopes=[Scope.ACTIONS_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_action(request: ApiRequest, body: CreateAction) -> Data[ActionDetail]:
    """Create an action.

    `config` is that of its kind; any value in it may be a binding, as in the nodes of automations.
    """
    return Data(await commands.create_action(request.work, request.actor, body))


@router.get(ACTIONS, access=Access(scopes=[Scope.ACTIONS_READ], level=Level.VIEW))
async def list_actions(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[ActionList]:
    """List actions, newest first."""
    page = request.page("actions", limit, cursor)
    return Data(await queries.list_actions(request.work, request.actor, page))


@router.get(ACTION, access=READ)
async def get_action(request: ApiRequest) -> Data[ActionDetail]:
    """Get an action."""
    return Data(await queries.get_action(request.work, request.actor, request.ids["actionId"]))


@router.patch(ACTION, access=WRITE, errors=[ConflictError])
async def update_action(
    request: ApiRequest, body: UpdateAction, if_match: IfUnchanged = None
) -> Data[ActionDetail]:
    """Update an action; its kind cannot change, and `config` is replaced as a whole.

    With the header `If-Match: <updatedAt>` an action that was changed since is left as it is.
    """
    action_id = request.ids["actionId"]
    return Data(
        await commands.update_action(request.work, request.actor, action_id, body, if_match)
    )


@router.delete(ACTION, access=WRITE)
async def delete_action(request: ApiRequest) -> Data[ActionDetail]:
    """Put an action into the trash with its item, for 30 days."""
    return Data(await commands.delete_action(request.work, request.actor, request.ids["actionId"]))
