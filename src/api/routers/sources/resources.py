"""Resources of connections: browse, read; and whether a connection works.

What leaves the machine does so from a worker; the answer waits for it.
"""

from api.kernel.deferred import Then
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.routers.sources.connections import CONNECTION, INTEGRATIONS
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.sources.provider_calls import commands
from models.sources.provider_calls.shapes import (
    BrowseConnection,
    BrowsedResources,
    ConnectionTest,
    NamedResource,
    ResourceContent,
)
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, InvalidError, UnsupportedError, UpstreamError

router = Router(tags=["integrations"])

RESOURCES = f"{INTEGRATIONS}/resources"
CALL_SECONDS = 55
PROVIDER_ERRORS = (InProgressError, InvalidError, UnsupportedError, UpstreamError)


def _forgetting(actor: Actor, call_id: Id) -> Then:
    """The removal of what a call found, once it is answered."""

    async def forget(work: UnitOfWork) -> None:
        await commands.forget_call(work, actor, call_id)

    return forget


@router.post(
    f"{RESOURCES}/browse",
    access=Access(scopes=[Scope.INTEGRATIONS_READ]),
    errors=PROVIDER_ERRORS,
)
async def browse_connection(request: ApiRequest, body: BrowseConnection) -> Data[BrowsedResources]:
    """Browse a connection: the resources below one, or at the top; `limit` is at most 100.

    The listing may be two minutes old. A `null` cursor is returned when nothing follows.
    """
    actor, keys, call_id = request.actor, request.services.keys, request.new_id
    known = await commands.accept_browse(request.work, actor, keys, call_id, body)
    if known is not None:
        return Data(known)

    async def poll(work: UnitOfWork, last: bool) -> BrowsedResources | None:
        return await commands.browse_outcome(work, actor, keys, call_id, body, last=last)

    return request.deferred(poll, within=CALL_SECONDS, then=_forgetting(actor, call_id))


@router.post(
    f"{RESOURCES}/read",
    access=Access(scopes=[Scope.RESOURCES_READ, Scope.INTEGRATIONS_READ]),
    errors=PROVIDER_ERRORS,
)
async def read_resource(request: ApiRequest, body: NamedResource) -> Data[ResourceContent]:
    """Read a resource by reference.

    The provider is asked each time whether it still shows the resource. Content that has no format
    here, or is larger than 1 MiB, is a `link` with its `fallbackUrl`.
    """
    actor, call_id = request.actor, request.new_id
    await commands.accept_read(request.work, actor, call_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ResourceContent | None:
        return await commands.read_outcome(work, actor, call_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS, then=_forgetting(actor, call_id))


@router.post(
    f"{CONNECTION}/test",
    access=Access(scopes=[Scope.INTEGRATIONS_WRITE]),
    errors=PROVIDER_ERRORS,
)
async def test_connection(request: ApiRequest) -> Data[ConnectionTest]:
    """Test a connection: one small question that needs its credentials.

    A connection that does not work is an answer, too: `ok` is false, and `message` says why.
    """
    actor, call_id = request.actor, request.new_id
    await commands.accept_test(request.work, actor, call_id, request.ids["connectionId"])

    async def poll(work: UnitOfWork, last: bool) -> ConnectionTest | None:
        return await commands.test_outcome(work, actor, call_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS, then=_forgetting(actor, call_id))
