"""The caller's right to carry out the operation, and how each resource is found for it.

The pipeline calls `enter` once the caller is known, then `find`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from api.kernel.authentication import Caller
from api.kernel.operation import Access, Operation
from api.kernel.request import ApiRequest
from models.automation import run_overviews
from models.automation.actions import store as actions
from models.automation.alert_rules import queries as alert_rules
from models.automation.automations import queries as automations
from models.automation.incidents import queries as incidents
from models.content.files import queries as files
from models.content.grants import holds_grant
from models.content.items import queries as items
from models.content.items.queries import PlacementOf
from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Level, Placement, PrincipalType, Role, level_on
from models.data.fields import queries as databases
from models.data.forms import queries as forms
from models.data.records import queries as records
from models.data.time_entries import queries as entries
from models.messages.webhook_endpoints import queries as webhook_endpoints
from models.people import api_keys, invitations, members
from models.sources.data_source_runs import overviews as data_source_runs
from models.sources.data_sources import queries as data_sources
from models.sources.mounts import queries as mounts
from models.workspace.share_links import links as share_links
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import parse_id
from runtime.postgresql.statements import Prefetch
from runtime.strict_json import StrictJsonError, parse

Visible = Callable[[UnitOfWork, Sequence[UUID], UUID, UUID], Awaitable[Placement | None]]
"""Takes the workspaces, the resource's id and the caller's user id. Gives the placement of a
resource that exists in one of the workspaces, and None for one that is unknown, deleted or
elsewhere.
"""

# A resource adds its line here: the function behind its name in an `Access`.
RESOURCES: Mapping[str, Visible] = {
    "action": actions.visible,
    "alert_rule": alert_rules.visible,
    "api_key": api_keys.visible,
    "automation": automations.visible,
    "data_source": data_sources.visible,
    "data_source_run": data_source_runs.visible,
    "database": databases.visible,
    "endpoint": webhook_endpoints.visible,
    "entry": entries.visible,
    "file": files.visible,
    "field": databases.visible_field,
    "form": forms.visible,
    "incident": incidents.visible,
    "invitation": invitations.visible,
    "item": items.placement,
    "mount": mounts.visible,
    "record": records.visible,
    "run": run_overviews.visible,
    "share_link": share_links.visible,
    "surface": records.visible_surface,
    "user": members.visible,
}

IN_TRASH: Mapping[str, Visible] = {
    "item": items.restorable,
    "record": records.restorable,
}
"""The same for what may be in the trash and can still come back from there."""

WORKSPACE = "workspaceId"


def enter(operation: Operation, request: ApiRequest, caller: Caller) -> Sequence[UUID]:
    """The workspaces in which the caller may call the operation; sets `request.actor` of one.

    Raises NotFoundError, DeniedError, and ValidationError for a session that names no workspace.
    """
    if WORKSPACE in request.path_params:
        _enter_workspace(request, caller, parse_id(request.path_params[WORKSPACE]))
    _check_credential(operation.access, caller)
    return _workspaces(operation.access, request, caller)


async def find(
    operation: Operation, request: ApiRequest, caller: Caller, places: Sequence[UUID]
) -> None:
    """Check what the request names; sets `request.ids`, `request.placement` and `request.actor`.

    Raises NotFoundError and DeniedError.
    """
    access = operation.access
    request.ids = _parse_ids(operation, request)
    if access.resource is not None:
        await _find(access, request, caller, places)
    elif access.level >= Level.EDIT and request.actor.role is Role.GUEST:
        await _require_grant(access, request)


def prefetches_of(operation: Operation, request: ApiRequest) -> Sequence[Prefetch]:
    """The statements that follow once the caller is known, if they may see the resource."""
    access = operation.access
    if access.resource is None or access.parameter is None:
        return ()
    resource_id = parse_id(request.path_params[access.parameter])
    find = _finder(access)
    if resource_id is None or not isinstance(find, PlacementOf | WorkspaceOf):
        return ()
    if access.prefetch is None:
        return (find.prefetch(resource_id),)
    return find.prefetch(resource_id), access.prefetch(resource_id)


def _enter_workspace(request: ApiRequest, caller: Caller, workspace_id: UUID | None) -> None:
    """Make the caller the actor of the request. Raises NotFoundError for who is no member."""
    role = None if workspace_id is None else caller.roles.get(workspace_id)
    if workspace_id is None or role is None:
        raise NotFoundError("workspace")
    principal = caller.principal
    request.enter(
        Actor(
            principal=principal,
            workspace_id=workspace_id,
            role=role,
            scopes=principal.usable_scopes(role),
        )
    )


def _check_credential(access: Access, caller: Caller) -> None:
    is_key = caller.principal.type is PrincipalType.API_KEY
    if access.credential == "session" and is_key:
        raise DeniedError(
            "This operation needs a user session as `Authorization: Bearer`, not an API key."
        )
    if access.credential == "key" and not is_key:
        raise DeniedError("This operation needs an API key, not a session.")
    if access.platform_admin and not caller.principal.platform_admin:
        raise DeniedError("This operation needs a platform administrator.")


def _workspaces(access: Access, request: ApiRequest, caller: Caller) -> Sequence[UUID]:
    """The workspaces in which the caller holds the scopes. Raises DeniedError without any."""
    if request.workspace_id is not None:
        missing = access.lacking(request.actor.scopes)
        if missing is not None:
            raise _lacks(missing)
        return [request.workspace_id]
    if not access.scopes and access.resource is None:
        return []
    if access.resource is None:
        _enter_workspace(request, caller, _own_workspace(request, caller))
        return _workspaces(access, request, caller)
    if not caller.roles:
        raise NotFoundError(access.resource.replace("_", " "))
    lacking = {
        workspace_id: access.lacking(caller.principal.usable_scopes(role))
        for workspace_id, role in caller.roles.items()
    }
    places = [workspace_id for workspace_id, missing in lacking.items() if missing is None]
    if not places:
        raise _lacks(next(iter(lacking.values())))
    return places


def _own_workspace(request: ApiRequest, caller: Caller) -> UUID | None:
    """A key's own workspace; a session says `workspaceId` in query or body."""
    own = caller.principal.key_workspace_id
    given = request.query_params.get(WORKSPACE)
    if given is None and own is None:
        given = _named_in_body(request.raw_body)
    if given is not None:
        return parse_id(given)
    if own is None:
        raise ValidationError.at(WORKSPACE, "Required with a session: the workspace to use.")
    return own


def _named_in_body(raw: bytes) -> str | None:
    """The workspace that the body names; what else is wrong with the body is told later."""
    try:
        body = parse(raw) if raw else None
    except StrictJsonError:
        return None
    named = body.get(WORKSPACE) if isinstance(body, dict) else None
    return named if isinstance(named, str) else None


def _lacks(scopes: str | None) -> DeniedError:
    return DeniedError(f"The credential lacks the scope {scopes}.")


def _parse_ids(operation: Operation, request: ApiRequest) -> Mapping[str, UUID]:
    ids: dict[str, UUID] = {}
    for name in operation.ids:
        value = parse_id(request.path_params[name])
        if value is None:
            raise NotFoundError(_resource(name))
        ids[name] = value
    return ids


async def _find(
    access: Access, request: ApiRequest, caller: Caller, places: Sequence[UUID]
) -> None:
    """Find the resource among the places, and check the caller's level on it."""
    assert access.resource is not None
    assert access.parameter is not None
    resource = access.resource.replace("_", " ")
    user_id = caller.principal.user_id
    find = _finder(access)
    placement = await find(request.work, places, request.ids[access.parameter], user_id)
    if placement is None:
        raise NotFoundError(resource)
    if request.workspace_id is None:
        _enter_workspace(request, caller, placement.workspace_id)
    request.placement = placement
    role: Role = request.actor.role
    level = level_on(placement, role)
    if access.level and level < Level.VIEW:
        raise NotFoundError(resource)
    if level < access.level:
        raise DeniedError(f"This needs {access.level.name.lower()} access to the {resource}.")


def _finder(access: Access) -> Visible:
    assert access.resource is not None
    return (IN_TRASH if access.in_trash else RESOURCES)[access.resource]


async def _require_grant(access: Access, request: ApiRequest) -> None:
    """A guest makes things only beside what was granted to them. Raises DeniedError."""
    if not await holds_grant(request.work, request.actor, access.level):
        raise DeniedError(f"A guest needs {access.level.name.lower()} access to an item for this.")


def _resource(parameter: str) -> str:
    """`automationId` → `automation`, `apiKeyId` → `api key`."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in parameter.removesuffix("Id"))
    return words.strip()
