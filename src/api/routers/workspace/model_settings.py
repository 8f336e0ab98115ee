"""Model settings: which language model writes the drafts and plans of a workspace."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Scope
from models.workspace.model_settings import commands, queries
from models.workspace.model_settings.shapes import ModelSettingsBody, PutModelSettings

router = Router(tags=["ai"])

SETTINGS = "/v1/workspaces/{workspaceId}/ai/model-settings"


@router.get(SETTINGS, access=Access(scopes=[Scope.MODELS_READ]))
async def get_model_settings(request: ApiRequest) -> Data[ModelSettingsBody]:
    """Get the model settings; the key of the endpoint is never shown."""
    return Data(await queries.get_settings(request.work, request.actor.workspace_id))


@router.put(SETTINGS, access=Access(scopes=[Scope.MODELS_WRITE], idempotent=True))
async def put_model_settings(
    request: ApiRequest, body: PutModelSettings
) -> Data[ModelSettingsBody]:
    """Set the model: an endpoint that speaks as OpenAI's `/chat/completions` does."""
    keys = request.services.keys
    return Data(await commands.put_settings(request.work, request.actor, keys, body))
