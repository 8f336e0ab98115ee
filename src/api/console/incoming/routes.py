"""Pages of runs that bring rows in. Their script reads the API in the session."""

from starlette.responses import Response

from api.console.forms import paged
from api.console.refusals import refuse
from api.console.rendering import page
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest, Router
from api.routers.sources import source_run_pages

router = Router(tags=["console"], refuse=refuse)


@router.get(
    "/data-source-runs/{dataSourceRunId}", access=paged(source_run_pages.READ), documented=False
)
async def get_source_run_page(request: ApiRequest) -> Response:
    """Look at a refresh or an import, and follow it while it goes on."""
    shell = await shell_of(request)
    path = f"/v1/data-source-runs/{request.ids['dataSourceRunId']}"
    calls = {"Read it": curl(shell.base, "GET", path)}
    return page(request, "incoming.html", shell, script="source-run.js", calls=calls)
