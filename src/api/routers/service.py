"""The endpoints of operators, load balancers and readers of the documentation."""

from starlette.responses import Response

from api.kernel.browsers import takes_html
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.metrics import CONTENT_TYPE
from api.reference.documentation import Documentation
from models.core.base import Shape
from models.core.secret_keys import require_keys
from models.migrations.queries import is_at_head
from models.workspace.system import system_state
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
    """Say whether the database answers, with the schema of this build and the secret key."""
    if not await is_at_head(request.work):
        raise UnavailableError("The database schema does not match this build. Run the migrations.")
    await require_keys(request.work, request.services.keys)
    return Data(Health(status="ready"))


@router.get("/metrics", access=_OPEN, documented=False)
async def get_metrics(request: ApiRequest) -> Response:
    """Read the metrics of this process and of the platform, as Prometheus does."""
    content = await request.services.metrics.text()
    return Response(content, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


@router.get("/openapi.json", access=_OPEN, documented=False)
async def get_openapi_document(request: ApiRequest) -> Response:
    """Read the OpenAPI document."""
    documentation: Documentation = await request.app.documentation()
    return documentation.document.answer(request)


@router.get("/docs", access=_OPEN, documented=False)
async def get_documentation(request: ApiRequest) -> Response:
    """Read the documentation in a browser."""
    return await _documentation(request, "")


@router.get("/docs/{section}", access=_OPEN, documented=False)
async def get_documentation_section(request: ApiRequest) -> Response:
    """Read a section of the documentation, or a file of its pages."""
    return await _documentation(request, request.path_params["section"])


@router.get("/docs/{section}/{entry}", access=_OPEN, documented=False)
async def get_documentation_entry(request: ApiRequest) -> Response:
    """Read what the documentation says of one kind, operator, type or function."""
    return await _documentation(request, "/".join(request.path_params.values()))


async def _documentation(request: ApiRequest, path: str) -> Response:
    documentation: Documentation = await request.app.documentation()
    if path not in documentation.pages:
        if takes_html(request.scope):
            return documentation.missing.answer(request)
        raise NotFoundError("path")
    return documentation.pages[path].answer(request)


system_router = Router(tags=["administration"])


@system_router.get("/v1/admin/system", access=Access(platform_admin=True), calls=system_state)
async def get_system_state() -> None:
    """Get what waits, for how long, and which workers are there.

    `relay` is what was not sent to Temporal yet, `events` what automations have not answered,
    `work` what was accepted and has not ended.
    """
