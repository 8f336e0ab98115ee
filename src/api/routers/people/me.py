"""The caller."""

from api.kernel.routing import Access, Call, Data, Router
from models.people.users import queries
from models.people.users.shapes import Me, MyScopes

router = Router(tags=["me"])


@router.get("/v1/me", access=Access())
async def get_me(call: Call) -> Data[Me]:
    """Say who the credential speaks for."""
    return Data(await queries.get_me(call.work, call.principal))


@router.get("/v1/me/scopes", access=Access())
async def get_my_scopes(call: Call) -> Data[MyScopes]:
    """Say what the credential may do, workspace by workspace."""
    return Data(queries.my_scopes(call.principal, call.roles))
