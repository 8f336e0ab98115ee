"""What operators, load balancers and readers of the documentation ask."""

from starlette.responses import Response

from api.kernel.prepared import Prepared
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.pages.docs import asset, page
from models.core.base import Shape
from models.migrations.queries import is_at_head
from runtime.errors import NotFoundError, UnavailableError

router = Router(tags=["service"])

_OPEN = Access(credential="none", transaction=False)


class Health(Shape):
    status: str


@router.get("/healthz", access=_OPEN, documented=False)
async def get_health() -> Data[Health]:
    """Say that the process answers."""
    return Data(Health(status="ok"))


@router.get("/readyz", access=Access(credential="none"), documented=False)
async def get_readiness(request: ApiRequest) -> Data[Health]:
    """Say whether the database answers and its schema is this build's."""
    if not await is_at_head(request.work):
        raise UnavailableError("The database schema is not this build's; run the migrations.")
    return Data(Health(status="ready"))


@router.get("/openapi.json", access=_OPEN, documented=False)
async def get_openapi_document(request: ApiRequest) -> Response:
    """Read the OpenAPI document."""
    prepared: Prepared = request.app.document
    return prepared.answer(request)


@router.get("/docs", access=_OPEN, documented=False)
async def get_documentation(request: ApiRequest) -> Response:
    """Read the documentation in a browser."""
    return page().answer(request)


@router.get("/docs/{asset}", access=_OPEN, documented=False)
async def get_documentation_asset(request: ApiRequest) -> Response:
    """Read a file of the documentation page."""
    found = asset(request.path_params["asset"])
    if found is None:
        raise NotFoundError("path")
    return found.answer(request)
