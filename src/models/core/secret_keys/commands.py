"""Recording which keys a database is written under."""

from collections.abc import Collection

from sqlalchemy import delete, func, insert, select, update
from sqlmodel import SQLModel

from models.core.secret_keys.queries import keys_in_use, known_keys
from models.core.secret_keys.rules import lacking_key, wrong_key
from models.core.secret_keys.tables import secret_key
from runtime.advisory_locks import lock_name
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


async def register_keys(work: UnitOfWork, keys: KeyRing) -> None:
    """Record the current key before anything is written under it; every process begins with it.

    An older key that is no longer configured is forgotten when nothing is left under it. Raises
    WrongSecretKeyError.
    """
    recorded = await known_keys(work)
    if keys.current_id in recorded and recorded.keys() <= set(keys.ids):
        return
    # Several processes start at the same time, and not all need have the same key.
    await lock_name(work, "secret keys")
    recorded = await known_keys(work)
    if not recorded:
        await _adopt(work, keys)
        return
    missing = set(recorded) - set(keys.ids)
    if len(missing) == len(recorded):
        raise wrong_key(recorded, keys.ids)
    if missing:
        await _forget_unused(work, keys, missing)
    if keys.current_id not in recorded:
        await _add(work, keys.current_id)


async def promote_key(work: UnitOfWork, keys: KeyRing) -> None:
    """Make the current key the newest one, also where it is a former one that came back.

    Raises WrongSecretKeyError.
    """
    await register_keys(work, keys)
    await lock_name(work, "secret keys")
    newest = next(iter(await known_keys(work)))
    if newest != keys.current_id:
        await work.execute(delete(secret_key).where(secret_key.c.id == keys.current_id))
        await _add(work, keys.current_id)


async def forget_lost_keys(work: UnitOfWork, keys: KeyRing) -> Collection[bytes]:
    """Go on without the keys that are not configured, whatever was written under them; their ids.

    Nothing is deleted: a process that has such a key again reads its values.
    """
    await lock_name(work, "secret keys")
    known = await known_keys(work)
    lost = set(known) - set(keys.ids)
    await work.execute(delete(secret_key).where(secret_key.c.id.in_(lost)))
    if keys.current_id not in known:
        await _add(work, keys.current_id)
    return lost


async def _adopt(work: UnitOfWork, keys: KeyRing) -> None:
    """Record the keys of a database that has no record of any: it is empty, or was upgraded."""
    used = set(await keys_in_use(work))
    if used and used.isdisjoint(keys.ids):
        raise wrong_key(used, keys.ids)
    for key_id in reversed(keys.ids):
        if key_id in used or key_id == keys.current_id:
            await _add(work, key_id)
    for table in SQLModel.metadata.tables.values():
        if "digest_key" in table.columns:
            unknown = table.columns["digest_key"].is_(None)
            await work.execute(update(table).where(unknown).values(digest_key=keys.ids[-1]))


async def _forget_unused(work: UnitOfWork, keys: KeyRing, missing: Collection[bytes]) -> None:
    """Forget older keys that nothing is left under. Raises WrongSecretKeyError."""
    positions = {key_id: row.position for key_id, row in (await known_keys(work)).items()}
    newest = max(positions[key_id] for key_id in keys.ids if key_id in positions)
    needed = {key_id for key_id in missing if positions[key_id] > newest}
    # What a newer process writes is not there yet, or no longer under the key before it.
    needed = needed or set(missing) & set(await keys_in_use(work))
    if needed:
        raise lacking_key(needed, keys.ids)
    await work.execute(delete(secret_key).where(secret_key.c.id.in_(missing)))


async def _add(work: UnitOfWork, key_id: bytes) -> None:
    highest = select(func.coalesce(func.max(secret_key.c.position), 0)).scalar_subquery()
    await work.execute(insert(secret_key).values(id=key_id, position=highest + 1, since=work.now))
