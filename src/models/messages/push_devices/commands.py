"""Registering and revoking push devices.

An installation and a token belong to one registration each, whoever made it: who has the app has
its token, and its next user is told instead of the one before.
"""

from sqlalchemy import and_, delete, func, insert, or_, select, update

from models.core.access.rules import Principal
from models.core.base import Id
from models.messages.push_devices.rules import MAX_DEVICES, token_place
from models.messages.push_devices.shapes import (
    PushRegistration,
    RegisterPushDevice,
    RevokePushDevice,
)
from models.messages.push_devices.tables import push_device
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.ids import new_id

_device = push_device.c


async def register_push_device(
    work: UnitOfWork, principal: Principal, keys: KeyRing, body: RegisterPushDevice
) -> PushRegistration:
    """Make this the registration of the installation and of the token; others are revoked."""
    token = body.token.encode()
    digests = keys.digests(token)
    await _lock(work, body.installation_id, digests[-1].hex())
    facts = {
        "platform": body.platform.value,
        "provider": body.carrier.value,
        "app_version": body.app_version,
        "locale": body.locale,
        "registered_at": work.now,
    }
    same = and_(
        _device.user_id == principal.user_id,
        _device.installation_id == body.installation_id,
        _device.token_digest.in_(digests),
    )
    renewed = await work.first(update(push_device).where(same).values(facts).returning(_device.id))
    if renewed is None:
        either = or_(
            _device.installation_id == body.installation_id, _device.token_digest.in_(digests)
        )
        await work.execute(delete(push_device).where(either))
        device_id = new_id()
        row = {
            "id": device_id,
            "user_id": principal.user_id,
            "installation_id": body.installation_id,
            "token_digest": digests[0],
            "sealed_token": keys.seal(token, token_place(device_id)),
        }
        await work.execute(insert(push_device).values({**row, **facts}))
        await _keep_newest(work, principal.user_id)
    return PushRegistration(installation_id=body.installation_id, revoked=False)


async def revoke_push_device(
    work: UnitOfWork, principal: Principal, body: RevokePushDevice
) -> PushRegistration:
    """End the caller's registration of an installation, if there is one."""
    own = and_(
        _device.user_id == principal.user_id, _device.installation_id == body.installation_id
    )
    revoked = (await work.execute(delete(push_device).where(own))).rowcount > 0
    return PushRegistration(installation_id=body.installation_id, revoked=revoked)


async def forget_device(work: UnitOfWork, device_id: Id) -> None:
    """Revoke a registration whose provider says that its token reaches nobody any more."""
    await work.execute(delete(push_device).where(_device.id == device_id))


async def _lock(work: UnitOfWork, *names: str) -> None:
    """Go on alone with an installation and a token: two registrations may not both miss another."""
    for name in sorted(names):
        lock = func.hashtextextended(f"push-device/{name}", 0)
        await work.execute(select(func.pg_advisory_xact_lock(lock)))


async def _keep_newest(work: UnitOfWork, user_id: Id) -> None:
    older = (
        select(_device.id)
        .where(_device.user_id == user_id)
        .order_by(_device.registered_at.desc(), _device.id.desc())
        .offset(MAX_DEVICES)
    )
    await work.execute(delete(push_device).where(_device.id.in_(older)))
