"""Pages of runs that bring rows in. Their script reads the API in the session."""

from starlette.responses import Response

from api.console.forms import paged
from api.console.rendering import page
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest
from api.routers.sources import source_run_pages

router = page_router()


@router.get("/data-source-runs/{dataSourceRunId}", access=paged(source_run_pages.READ))
async def get_source_run_page(request: ApiRequest) -> Response:
    """Look at a refresh or an import, and follow it while it goes on."""
    shell = await shell_of(request)
    path = f"/v1/data-source-runs/{request.ids['dataSourceRunId']}"
    calls = {"Read it": curl(shell.base, "GET", path)}
    return page(request, "incoming.html", shell, script="source-run.js", calls=calls)
