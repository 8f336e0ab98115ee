"""Push devices: where the caller wants to be told."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.messages.push_devices import commands, queries
from models.messages.push_devices.shapes import (
    PushDeviceList,
    PushRegistration,
    RegisterPushDevice,
    RevokePushDevice,
    WebPushKey,
)

router = Router(tags=["push devices"])

DEVICES = "/v1/me/push-devices"

SESSION = Access(credential="session")


@router.get(DEVICES, access=Access())
async def list_push_devices(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[PushDeviceList]:
    """List the caller's active push registrations, without their tokens."""
    page = request.page("push-devices", limit, cursor)
    return Data(await queries.list_push_devices(request.work, request.principal, page))


@router.get(f"{DEVICES}/web-push-key", access=Access())
async def get_web_push_key(request: ApiRequest) -> Data[WebPushKey]:
    """Get the key that a browser subscribes to Web Push with, its `applicationServerKey`."""
    vapid = request.services.settings.vapid
    return Data(WebPushKey(public_key=None if vapid is None else vapid.public))


@router.post(DEVICES, access=SESSION)
async def register_push_device(
    request: ApiRequest, body: RegisterPushDevice
) -> Data[PushRegistration]:
    """Register the app or browser of an installation for pushes.

    Other registrations of the same installation or token are revoked. The same call again changes
    nothing.
    """
    return Data(
        await commands.register_push_device(
            request.work, request.principal, request.services.keys, body
        )
    )


@router.post(f"{DEVICES}/register", access=SESSION)
async def register_a_push_device(
    request: ApiRequest, body: RegisterPushDevice
) -> Data[PushRegistration]:
    """Register the app or browser of an installation for pushes, under another path."""
    return await register_push_device(request, body)


@router.post(f"{DEVICES}/revoke", access=SESSION)
async def revoke_push_device(request: ApiRequest, body: RevokePushDevice) -> Data[PushRegistration]:
    """Revoke the caller's registration of an installation; `revoked` says whether there was one."""
    return Data(await commands.revoke_push_device(request.work, request.principal, body))
