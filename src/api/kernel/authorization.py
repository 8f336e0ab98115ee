"""The sender of the request, the right to carry out the operation, and how a resource is found.

One statement finds the sender, for keys and for sessions (interface.md#api-keys). The pipeline
calls `prove` before the transaction, and in it `authenticate`, then `enter`, then `find`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeAlias
from uuid import UUID

from starlette.types import Scope as ASGIScope

from api.kernel import browsers
from api.kernel.operation import Access, Operation
from api.kernel.request import ApiRequest
from api.kernel.services import Services
from api.kernel.sessions import KeyToken, Session, SessionToken, read_credential, unauthorized
from models.automation import run_overviews
from models.automation.actions import store as actions
from models.automation.alert_rules import queries as alert_rules
from models.automation.automations import queries as automations
from models.automation.incidents import queries as incidents
from models.content.files import queries as files
from models.content.grants import holds_grant
from models.content.items import queries as items
from models.core.access import rules as access_rules
from models.core.access.queries import WorkspaceOf
from models.core.secret_keys import require_keys
from models.data.fields import queries as databases
from models.data.forms import queries as forms
from models.data.records import queries as records
from models.data.time_entries import queries as entries
from models.messages.webhook_endpoints import store as webhook_endpoints
from models.people import api_keys, credentials, invitations, members
from models.people.users import sync_profile
from models.sources.data_source_runs import overviews as data_source_runs
from models.sources.data_sources import queries as data_sources
from models.sources.mounts import queries as mounts
from models.workspace.share_links import links as share_links
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, UnavailableError, ValidationError
from runtime.ids import parse_id
from runtime.postgresql.statements import Prefetch
from runtime.strict_json import StrictJsonError, parse

_USE_WRITTEN_EVERY = timedelta(minutes=1)

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Proof: TypeAlias = KeyToken | Session | browsers.CookieToken


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, and their role in each workspace the credential opens."""

    principal: access_rules.Principal
    roles: Mapping[UUID, access_rules.Role]
    until: datetime | None = None
    """The end of a session in a browser."""


def credential_of(
    access: Access, scope: ASGIScope, services: Services
) -> KeyToken | SessionToken | browsers.CookieToken:
    """The credential that a request shows; raises UnauthorizedError and ForeignFormError.

    The cookie counts for pages, and for what pages read and do by scripts: browsers add it to
    requests of others, too.
    """
    headers: Headers = scope["headers"]
    if access.credential != "browser" and not _takes_cookie(access, headers):
        return read_credential(headers)
    cookie = browsers.read_session(scope, services.settings)
    if cookie is None:
        raise unauthorized()
    if access.cookie and not browsers.is_safe(scope):
        browsers.check_token(services.keys, cookie, browsers.header_token(headers))
    return replace(cookie, unattended=True) if access.unattended else cookie


def _takes_cookie(access: Access, headers: Headers) -> bool:
    """True where a script of a page asks without `Authorization`."""
    return (
        access.cookie
        and not any(name == b"authorization" for name, _ in headers)
        and browsers.is_same_origin(headers)
    )


async def prove(
    services: Services, credential: KeyToken | SessionToken | browsers.CookieToken
) -> Proof:
    """Check what needs no database: the signature of a session.

    Raises UnauthorizedError and UnavailableError.
    """
    if isinstance(credential, KeyToken | browsers.CookieToken):
        return credential
    if services.sessions is None:
        raise unauthorized()
    return await services.sessions.verify(credential.token)


class UnsyncedProfileError(UnavailableError):
    """The session says something of its user that is not stored yet.

    A client gets it only when two sessions that contradict each other are used at once.
    """

    def __init__(self) -> None:
        super().__init__("The profile of the caller is being updated. Try again soon.")


async def authenticate(
    services: Services, work: UnitOfWork, proof: Proof, prefetches: Sequence[Prefetch] = ()
) -> Caller:
    """The caller a credential belongs to; of a key, with what they are about to ask.

    Raises UnauthorizedError, and UnsyncedProfileError for a session that `sync` must see first.
    """
    if isinstance(proof, KeyToken):
        return await _key(services, work, proof, prefetches)
    if isinstance(proof, browsers.CookieToken):
        return await _browser_session(services, work, proof)
    return await _session(services, work, proof)


async def sync(services: Services, session: Session) -> None:
    """Store what the session says, in its own transaction: it stays when the request is refused."""
    async with services.database.transaction() as work:
        await sync_profile(
            work,
            issuer=session.issuer,
            subject=session.subject,
            email=session.email,
            name=session.name,
            platform_admin=session.platform_admin,
        )


async def _key(
    services: Services, work: UnitOfWork, proof: KeyToken, prefetches: Sequence[Prefetch]
) -> Caller:
    keys, token = services.keys, proof.token.encode()
    row = await credentials.key_by_digest(work, keys.digests(token), prefetches)
    if row is None:
        # Without the secret key of the database no key is found, and none is invalid.
        await require_keys(work, keys)
        raise unauthorized()
    if row.expires_at is not None and row.expires_at <= work.now:
        raise unauthorized()
    if row.last_used_at is None or row.last_used_at <= work.now - _USE_WRITTEN_EVERY:
        services.request_log.touch(row.id, work.now)
    if row.digest_key != keys.current_id:
        services.request_log.move_digest(row.id, keys.digest(token), keys.current_id)
    scopes = _scopes(tuple(row.scopes))
    admin = row.platform_admin or services.settings.is_platform_admin(row.email)
    principal = access_rules.Principal(
        type=access_rules.PrincipalType.API_KEY,
        id=row.id,
        user_id=row.user_id,
        key_workspace_id=row.workspace_id,
        key_scopes=scopes,
        # No scope stands for the whole platform: a key that is narrowed in any way is not meant
        # to administer it.
        platform_admin=admin and len(scopes) == len(access_rules.Scope),
    )
    return Caller(
        principal, {} if row.role is None else {row.workspace_id: access_rules.Role(row.role)}
    )


async def _session(services: Services, work: UnitOfWork, session: Session) -> Caller:
    rows = await credentials.session_user(work, session.issuer, session.subject)
    if not rows or _changed(rows[0], session):
        raise UnsyncedProfileError
    return _person(services, rows)


async def _browser_session(
    services: Services, work: UnitOfWork, proof: browsers.CookieToken
) -> Caller:
    rows = await credentials.browser_session_user(work, proof.digest)
    if not rows:
        raise unauthorized()
    if not proof.unattended and rows[0].last_used_at <= work.now - credentials.USE_WRITTEN_EVERY:
        services.request_log.touch_session(proof.digest, work.now)
    return replace(_person(services, rows), until=rows[0].expires_at)


def _person(services: Services, rows: Sequence[credentials.SessionRow]) -> Caller:
    user = rows[0]
    principal = access_rules.Principal(
        type=access_rules.PrincipalType.SESSION,
        id=user.id,
        user_id=user.id,
        platform_admin=user.platform_admin or services.settings.is_platform_admin(user.email),
    )
    return Caller(principal, _roles(rows))


def _roles(rows: Sequence[credentials.SessionRow]) -> dict[UUID, access_rules.Role]:
    return {
        row.workspace_id: access_rules.Role(row.role)
        for row in rows
        if row.workspace_id and row.role
    }


def _changed(row: credentials.SessionRow, session: Session) -> bool:
    if session.platform_admin not in {None, row.platform_admin}:
        return True
    return bool((row.email, row.name) != (session.email, session.name))


@lru_cache(maxsize=1024)
def _scopes(names: tuple[str, ...]) -> frozenset[access_rules.Scope]:
    """The scopes of a key; most keys share a few sets."""
    return frozenset(access_rules.Scope(name) for name in names)


Visible = Callable[
    [UnitOfWork, Sequence[UUID], UUID, UUID], Awaitable[access_rules.Placement | None]
]
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
    elif access.level >= access_rules.Level.EDIT and request.actor.role is access_rules.Role.GUEST:
        await _require_grant(access, request)


def prefetches_of(operation: Operation, request: ApiRequest) -> Sequence[Prefetch]:
    """The statements that follow once the caller is known, if they may see the resource."""
    access = operation.access
    if access.resource is None or access.parameter is None:
        return ()
    resource_id = parse_id(request.path_params[access.parameter])
    find = _finder(access)
    if resource_id is None or not isinstance(find, items.PlacementOf | WorkspaceOf):
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
        access_rules.Actor(
            principal=principal,
            workspace_id=workspace_id,
            role=role,
            scopes=principal.usable_scopes(role),
        )
    )


def _check_credential(access: Access, caller: Caller) -> None:
    is_key = caller.principal.type is access_rules.PrincipalType.API_KEY
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
    role: access_rules.Role = request.actor.role
    level = access_rules.level_on(placement, role)
    if access.level and level < access_rules.Level.VIEW:
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
