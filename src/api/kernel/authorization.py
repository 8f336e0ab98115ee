"""May this caller do this here: the checks of decisions C2 between 401 and 400, in their order."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from api.kernel.access import Access
from api.kernel.authentication import Caller
from api.kernel.call import Call
from api.kernel.operation import Operation
from api.kernel.resources import RESOURCES
from models.access.placement import level_on
from models.access.rules import Actor, Level, PrincipalType, Role, Scope
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import parse_id

WORKSPACE = "workspaceId"


async def admit(operation: Operation, call: Call, caller: Caller) -> None:
    """Let the caller in, with `call.actor`, `call.ids` and `call.placement` set, or refuse.

    Raises NotFoundError and DeniedError.
    """
    access = operation.access
    if WORKSPACE in call.path_params:
        _enter(call, caller, parse_id(call.path_params[WORKSPACE]))
    _check_credential(access, caller)
    places = _places(access, call, caller)
    call.ids = _parse_ids(operation, call)
    if access.resource is not None:
        await _find(access, call, caller, places)


def _enter(call: Call, caller: Caller, workspace_id: UUID | None) -> None:
    """Make the workspace the one this call is about."""
    role = None if workspace_id is None else caller.roles.get(workspace_id)
    if workspace_id is None or role is None:
        raise NotFoundError("workspace")
    principal = caller.principal
    call.enter(
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
        raise DeniedError("This operation needs a user's session; an API key cannot call it.")
    if access.credential == "key" and not is_key:
        raise DeniedError("This operation needs an API key; a session cannot call it.")
    if access.platform_admin and not caller.principal.platform_admin:
        raise DeniedError("This operation is for platform administrators.")


def _places(access: Access, call: Call, caller: Caller) -> Sequence[UUID]:
    """The workspaces in which the caller holds the scopes; raises DeniedError without any."""
    if call.workspace_id is not None:
        missing = _missing(access.scopes, call.actor.scopes)
        if missing:
            raise _lacks(missing)
        return [call.workspace_id]
    if not access.scopes and access.resource is None:
        return []
    if access.resource is None:
        _enter(call, caller, _own_workspace(call, caller))
        return _places(access, call, caller)
    if not caller.roles:
        raise NotFoundError(access.resource.replace("_", " "))
    held = _with_scopes(access.scopes, caller)
    if not held:
        role = next(iter(caller.roles.values()))
        raise _lacks(_missing(access.scopes, caller.principal.usable_scopes(role)))
    return held


def _own_workspace(call: Call, caller: Caller) -> UUID | None:
    """A key's own workspace; a session says `workspaceId` in the query (decisions C15)."""
    given = call.query_params.get(WORKSPACE)
    if given is not None:
        return parse_id(given)
    own = caller.principal.key_workspace_id
    if own is None:
        raise ValidationError.at(WORKSPACE, "A session must say which workspace it means.")
    return own


def _with_scopes(scopes: Sequence[Scope], caller: Caller) -> Sequence[UUID]:
    return [
        workspace_id
        for workspace_id, role in caller.roles.items()
        if not _missing(scopes, caller.principal.usable_scopes(role))
    ]


def _missing(needed: Sequence[Scope], held: frozenset[Scope]) -> list[Scope]:
    return [scope for scope in needed if scope not in held]


def _lacks(missing: Sequence[Scope]) -> DeniedError:
    return DeniedError(f"The credential lacks the scope {' and '.join(missing)}.")


def _parse_ids(operation: Operation, call: Call) -> Mapping[str, UUID]:
    ids: dict[str, UUID] = {}
    for name in operation.ids:
        value = parse_id(call.path_params[name])
        if value is None:
            raise NotFoundError(_noun(name))
        ids[name] = value
    return ids


async def _find(access: Access, call: Call, caller: Caller, places: Sequence[UUID]) -> None:
    """The resource must be seen where the caller may look, and be at the caller's level."""
    assert access.resource is not None
    assert access.parameter is not None
    noun = access.resource.replace("_", " ")
    find = RESOURCES[access.resource]
    user_id = caller.principal.user_id
    placement = await find(call.work, places, call.ids[access.parameter], user_id)
    if placement is None:
        raise NotFoundError(noun)
    if call.workspace_id is None:
        _enter(call, caller, placement.workspace_id)
    call.placement = placement
    role: Role = call.actor.role
    level = level_on(placement, role)
    if access.level and level < Level.VIEW:
        raise NotFoundError(noun)
    if level < access.level:
        raise DeniedError(f"This needs {access.level.name.lower()} access to the {noun}.")


def _noun(parameter: str) -> str:
    """`automationId` → `automation`, `apiKeyId` → `api key`."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in parameter.removesuffix("Id"))
    return words.strip()
