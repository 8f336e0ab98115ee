"""Signing in at a provider: the way out, and the way back."""

from starlette.responses import Response

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.pages.assets import shell
from models.core.access.rules import Scope
from models.sources.authorizations import commands
from models.sources.authorizations.outcomes import exchange_outcome
from models.sources.authorizations.rules import CALLBACK
from models.sources.authorizations.shapes import (
    FinishAuthorization,
    StartAuthorization,
    StartedAuthorization,
)
from models.sources.connections.shapes import ConnectionDetail
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError, UnsupportedError, UpstreamError

router = Router(tags=["integrations"])

OAUTH = "/v1/workspaces/{workspaceId}/integrations/oauth"

EXCHANGE_SECONDS = 30

WRITE = Access(scopes=[Scope.INTEGRATIONS_WRITE], idempotent=True)


@router.post(f"{OAUTH}/start", access=WRITE, errors=[UnsupportedError])
async def start_authorization(
    request: ApiRequest, body: StartAuthorization
) -> Data[StartedAuthorization]:
    """Start authorization: where a user signs in at a provider, and comes back from within ten
    minutes.

    The provider sends them to a page of this API, which shows the body of finish authorization.
    """
    services = request.services
    platform = commands.Registered(services.settings.providers, services.settings.public_url)
    return Data(
        await commands.start_authorization(
            request.work, request.actor, services.keys, platform, body
        )
    )


@router.post(
    f"{OAUTH}/callback",
    access=WRITE,
    errors=[ConflictError, InProgressError, UpstreamError],
)
async def finish_authorization(
    request: ApiRequest, body: FinishAuthorization
) -> Data[ConnectionDetail]:
    """Finish authorization: exchange the code for tokens, and make the connection they belong to.

    Only who started it finishes it, once. The tokens are encrypted and never returned.
    """
    actor, job_id = request.actor, request.new_id
    await commands.accept_return(request.work, actor, request.services.keys, job_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ConnectionDetail | None:
        return await exchange_outcome(work, actor, job_id, last=last)

    return request.deferred(poll, within=EXCHANGE_SECONDS)


# Providers add parameters of their own.
@router.get(
    CALLBACK, access=Access(credential="none", transaction=False, raw=True), documented=False
)
async def get_authorization_page(request: ApiRequest) -> Response:  # noqa: ARG001  # as all
    """Show the page a provider sends a user to; it finishes the authorization in their name."""
    return shell("authorized")
