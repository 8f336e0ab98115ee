"""Issuing and revoking API keys, and recording their use."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import func, insert, literal, or_, select, update
from sqlalchemy.dialects.postgresql import BYTEA

from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.secret_keys.queries import is_older_key
from models.people.api_keys.queries import MAX_KEYS
from models.people.api_keys.rules import SHOWN, check_expiry, new_token
from models.people.api_keys.shapes import ApiKeyBody, CreateApiKey, IssuedApiKey, RevokedApiKey
from models.people.api_keys.tables import api_key
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError
from runtime.ids import new_id
from runtime.timestamps import truncate


async def create_key(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: CreateApiKey
) -> IssuedApiKey:
    """A key bound to the caller, with no scope the caller lacks (decisions C4).

    Raises DeniedError for such a scope, ValidationError for an expiry that is no future moment,
    ConflictError when the workspace has too many keys.
    """
    beyond = [scope for scope in body.scopes if scope not in actor.scopes]
    if beyond:
        raise DeniedError(f"A key cannot give more than its maker has: {', '.join(beyond)}.")
    check_expiry(body.expires_at, work.now)
    live = select(func.count()).where(
        api_key.c.workspace_id == actor.workspace_id, api_key.c.revoked_at.is_(None)
    )
    if await work.scalar(live) >= MAX_KEYS:
        raise ConflictError(f"The workspace has {MAX_KEYS} keys; revoke some first.")
    return await _issue(
        work,
        keys,
        workspace_id=actor.workspace_id,
        user_id=actor.user_id,
        name=body.name,
        scopes=body.scopes,
        expires_at=None if body.expires_at is None else truncate(body.expires_at),
    )


async def issue_key(
    work: UnitOfWork,
    keys: KeyRing,
    *,
    workspace_id: Id,
    user_id: Id,
    name: str,
    scopes: Iterable[Scope] = tuple(Scope),
) -> str:
    """The token of a new key that acts as `user_id`, by default with every scope."""
    issued = await _issue(
        work,
        keys,
        workspace_id=workspace_id,
        user_id=user_id,
        name=name,
        scopes=scopes,
        expires_at=None,
    )
    return issued.token


async def revoke_key(work: UnitOfWork, actor: Actor, key_id: Id) -> RevokedApiKey:
    """Stop a key for ever; once revoked it stays as it is. Raises NotFoundError."""
    revoked = await work.execute(
        update(api_key)
        .where(api_key.c.id == key_id, api_key.c.workspace_id == actor.workspace_id)
        .values(
            revoked_at=func.coalesce(api_key.c.revoked_at, work.now),
            updated_at=func.coalesce(api_key.c.revoked_at, work.now),
        )
    )
    if revoked.rowcount == 0:
        raise NotFoundError("API key")
    return RevokedApiKey(id=key_id)


async def mark_keys_used(work: UnitOfWork, moments: Mapping[Id, datetime]) -> None:
    """Set `lastUsedAt`, never backwards."""
    for key_id, moment in moments.items():
        older = or_(api_key.c.last_used_at.is_(None), api_key.c.last_used_at < moment)
        await work.execute(
            update(api_key).where(api_key.c.id == key_id, older).values(last_used_at=moment)
        )


async def renew_digest(work: UnitOfWork, keys: KeyRing, token: str) -> None:
    """Keep the digest of a key under the current secret key, as its use does."""
    digests = keys.digests(token.encode())
    found = await work.first(select(api_key.c.id).where(api_key.c.digest.in_(digests)))
    if found is not None:
        await move_digests(work, {found.id: (digests[0], keys.current_id)})


async def move_digests(work: UnitOfWork, digests: Mapping[Id, tuple[bytes, bytes]]) -> None:
    """Keep the digests of API keys under newer secret keys: each with the id of that key."""
    for key_id, (digest, digest_key) in digests.items():
        older = is_older_key(api_key.c.digest_key, literal(digest_key, BYTEA))
        await work.execute(
            update(api_key)
            .where(api_key.c.id == key_id, older)
            .values(digest=digest, digest_key=digest_key)
        )


async def _issue(
    work: UnitOfWork,
    keys: KeyRing,
    *,
    workspace_id: Id,
    user_id: Id,
    name: str,
    scopes: Iterable[Scope],
    expires_at: datetime | None,
) -> IssuedApiKey:
    token = new_token()
    values = {
        "id": new_id(),
        "workspace_id": workspace_id,
        "name": name,
        "prefix": token[:SHOWN],
        "scopes": [scope.value for scope in dict.fromkeys(scopes)],
        "bound_user_id": user_id,
        "created_by_user_id": user_id,
        "last_used_at": None,
        "expires_at": expires_at,
        "revoked_at": None,
        "created_at": work.now,
        "updated_at": work.now,
    }
    digest = {"digest": keys.digest(token.encode()), "digest_key": keys.current_id}
    await work.execute(insert(api_key).values(**digest, **values))
    return IssuedApiKey(api_key=ApiKeyBody.model_validate(values), token=token)
