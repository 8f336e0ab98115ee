"""The sender of the request: one statement, for keys and for sessions (interface.md#api-keys).

The pipeline calls `prove` before the transaction and `authenticate` in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeAlias
from uuid import UUID

from starlette.types import Scope as ASGIScope

from api.kernel.browsers import (
    CookieToken,
    check_token,
    header_token,
    is_safe,
    is_same_origin,
    read_session,
)
from api.kernel.operation import Access
from api.kernel.services import Services
from api.kernel.sessions import KeyToken, Session, SessionToken, read_credential, unauthorized
from models.core.access.rules import Principal, PrincipalType, Role, Scope
from models.core.secret_keys import require_keys
from models.people.credentials import (
    USE_WRITTEN_EVERY,
    SessionRow,
    browser_session_user,
    key_by_digest,
    session_user,
)
from models.people.users import sync_profile
from runtime.database import UnitOfWork
from runtime.errors import UnavailableError
from runtime.postgresql.statements import Prefetch

_USE_WRITTEN_EVERY = timedelta(minutes=1)

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Proof: TypeAlias = KeyToken | Session | CookieToken


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, and their role in each workspace the credential opens."""

    principal: Principal
    roles: Mapping[UUID, Role]
    until: datetime | None = None
    """The end of a session in a browser."""


def credential_of(
    access: Access, scope: ASGIScope, services: Services
) -> KeyToken | SessionToken | CookieToken:
    """The credential that a request shows; raises UnauthorizedError and ForeignFormError.

    The cookie counts for pages, and for what pages read and do by scripts: browsers add it to
    requests of others, too.
    """
    headers: Headers = scope["headers"]
    if access.credential != "browser" and not _takes_cookie(access, headers):
        return read_credential(headers)
    cookie = read_session(scope, services.settings)
    if cookie is None:
        raise unauthorized()
    if access.cookie and not is_safe(scope):
        check_token(services.keys, cookie, header_token(headers))
    return replace(cookie, unattended=True) if access.unattended else cookie


def _takes_cookie(access: Access, headers: Headers) -> bool:
    """True where a script of a page asks without `Authorization`."""
    return (
        access.cookie
        and not any(name == b"authorization" for name, _ in headers)
        and is_same_origin(headers)
    )


async def prove(services: Services, credential: KeyToken | SessionToken | CookieToken) -> Proof:
    """Check what needs no database: the signature of a session.

    Raises UnauthorizedError and UnavailableError.
    """
    if isinstance(credential, KeyToken | CookieToken):
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
    if isinstance(proof, CookieToken):
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
    row = await key_by_digest(work, keys.digests(token), prefetches)
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
    principal = Principal(
        type=PrincipalType.API_KEY,
        id=row.id,
        user_id=row.user_id,
        key_workspace_id=row.workspace_id,
        key_scopes=scopes,
        # No scope stands for the whole platform: a key that is narrowed in any way is not meant
        # to administer it.
        platform_admin=admin and len(scopes) == len(Scope),
    )
    return Caller(principal, {} if row.role is None else {row.workspace_id: Role(row.role)})


async def _session(services: Services, work: UnitOfWork, session: Session) -> Caller:
    rows = await session_user(work, session.issuer, session.subject)
    if not rows or _changed(rows[0], session):
        raise UnsyncedProfileError
    return _person(services, rows)


async def _browser_session(services: Services, work: UnitOfWork, proof: CookieToken) -> Caller:
    rows = await browser_session_user(work, proof.digest)
    if not rows:
        raise unauthorized()
    if not proof.unattended and rows[0].last_used_at <= work.now - USE_WRITTEN_EVERY:
        services.request_log.touch_session(proof.digest, work.now)
    return replace(_person(services, rows), until=rows[0].expires_at)


def _person(services: Services, rows: Sequence[SessionRow]) -> Caller:
    user = rows[0]
    principal = Principal(
        type=PrincipalType.SESSION,
        id=user.id,
        user_id=user.id,
        platform_admin=user.platform_admin or services.settings.is_platform_admin(user.email),
    )
    return Caller(principal, _roles(rows))


def _roles(rows: Sequence[SessionRow]) -> dict[UUID, Role]:
    return {row.workspace_id: Role(row.role) for row in rows if row.workspace_id and row.role}


def _changed(row: SessionRow, session: Session) -> bool:
    if session.platform_admin not in {None, row.platform_admin}:
        return True
    return bool((row.email, row.name) != (session.email, session.name))


@lru_cache(maxsize=1024)
def _scopes(names: tuple[str, ...]) -> frozenset[Scope]:
    """The scopes of a key; most keys share a few sets."""
    return frozenset(Scope(name) for name in names)
