"""Reading push devices."""

from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Uuid, func, select

from models.core.access.rules import Principal
from models.core.base import Id
from models.core.pagination import PageRequest
from models.messages.push_devices.rules import token_place
from models.messages.push_devices.shapes import PushDeviceBody, PushDeviceList
from models.messages.push_devices.tables import PushDevice, push_device
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


async def list_push_devices(
    work: UnitOfWork, principal: Principal, page: PageRequest
) -> PushDeviceList:
    """The caller's active registrations, the one made last first."""
    columns = push_device.c
    own = select(push_device).where(columns.user_id == principal.user_id)
    shown = await page.descending(work, own, columns.registered_at, columns.id, of=PushDevice)
    return PushDeviceList(
        devices=[PushDeviceBody.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


async def find_device(work: UnitOfWork, device_id: Id) -> PushDevice | None:
    """A registration; None for one that was revoked."""
    return await work.first(select(push_device).where(push_device.c.id == device_id), of=PushDevice)


def devices_of(user_id: ColumnElement[Any]) -> ColumnElement[Any]:
    """The ids of the registrations of the user that a column names, as an array."""
    own = select(push_device.c.id).where(push_device.c.user_id == user_id)
    return func.array(own.scalar_subquery(), type_=ARRAY(Uuid))


def token_of(keys: KeyRing, device: PushDevice) -> str:
    """The token of a registration. Raises UnreadableError."""
    return keys.unseal(device.sealed_token, token_place(device.id)).decode()
