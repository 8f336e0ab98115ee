"""What operators, load balancers and readers of the documentation ask."""

from starlette.responses import JSONResponse, Response

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.pages.docs import PAGE, POLICY, asset
from models.core.base import Shape
from models.migrations.queries import is_at_head
from runtime.errors import NotFoundError, UnavailableError

router = Router(tags=["service"])

_OPEN = Access(credential="none", transaction=False)


class Health(Shape):
    status: str


@router.get("/healthz", access=_OPEN)
async def get_health() -> Data[Health]:
    """Say that the process answers."""
    return Data(Health(status="ok"))


@router.get("/readyz", access=Access(credential="none"))
async def get_readiness(request: ApiRequest) -> Data[Health]:
    """Say whether the database answers and its schema is this build's."""
    if not await is_at_head(request.work):
        raise UnavailableError("The database schema is not this build's; run the migrations.")
    return Data(Health(status="ready"))


@router.get("/openapi.json", access=_OPEN)
async def get_openapi_document(request: ApiRequest) -> Response:
    """Read this document."""
    return JSONResponse(request.app.openapi())


@router.get("/docs", access=_OPEN, media_type="text/html; charset=utf-8")
async def get_documentation() -> Response:
    """Read the documentation in a browser."""
    headers = {"Content-Security-Policy": POLICY}
    return Response(PAGE, headers=headers, media_type="text/html")


@router.get("/docs/{asset}", access=_OPEN, media_type="text/javascript; charset=utf-8")
async def get_documentation_asset(request: ApiRequest) -> Response:
    """Read a file of the documentation page."""
    found = asset(request.path_params["asset"])
    if found is None:
        raise NotFoundError("path")
    content, media_type = found
    return Response(content, headers={"Cache-Control": "max-age=3600"}, media_type=media_type)
