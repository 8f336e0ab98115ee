"""The secret that outgoing webhooks are signed with."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Scope
from models.messages.webhook_signing.commands import show_signing_secret
from models.messages.webhook_signing.shapes import SigningSecret

router = Router(tags=["webhooks"])


@router.get(
    "/v1/workspaces/{workspaceId}/webhook-signing-secret",
    access=Access(scopes=[Scope.WEBHOOKS_WRITE], writes=True),
)
async def get_webhook_signing_secret(request: ApiRequest) -> Data[SigningSecret]:
    """Get the secret that verifies what `send_webhook` sends, by Standard Webhooks.

    Reading it needs webhooks:write, which owners and administrators have: whoever holds it can
    sign in the workspace's name. It is made when it is first needed.
    """
    return Data(await show_signing_secret(request.work, request.services.keys, request.actor))
