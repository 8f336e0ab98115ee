"""The caller."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.people.users import queries
from models.people.users.shapes import Me, MyScopes

router = Router(tags=["me"])


@router.get("/v1/me", access=Access())
async def get_me(request: ApiRequest) -> Data[Me]:
    """Say who the credential speaks for."""
    return Data(await queries.get_me(request.work, request.principal))


@router.get("/v1/me/scopes", access=Access())
async def get_my_scopes(request: ApiRequest) -> Data[MyScopes]:
    """Say what the credential may do, workspace by workspace."""
    return Data(queries.my_scopes(request.principal, request.roles))
