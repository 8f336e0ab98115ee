"""Reading push devices."""

from sqlalchemy import select

from models.core.access.rules import Principal
from models.core.pagination import PageRequest
from models.messages.push_devices.shapes import PushDeviceBody, PushDeviceList
from models.messages.push_devices.tables import PushDevice, push_device
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
