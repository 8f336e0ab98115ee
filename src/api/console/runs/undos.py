"""Undoing a run: the preview with its conflicts, the confirmation, and the undo when it is done."""

from dataclasses import replace

from starlette.responses import Response

from api.console.entered import Form, attempt
from api.console.forms import paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.kernel.routing import ApiRequest, QueryId
from api.routers.automation import automation_runs as api
from api.routers.automation.automation_runs import RUN, UNDO, UNDOS
from api.routers.automation.automations import READ
from models.automation.run_operations.commands import undo_run
from models.automation.run_overviews import named
from models.automation.run_undos.commands import get_undo
from models.automation.run_undos.queries import RunUndoDetail, UndoRun, list_undos
from models.core.base import Id
from runtime.errors import PlatformError, RunError

router = page_router()

_UNDO = f"{RUN.removeprefix('/v1')}/undo"
_ONE = f"{UNDOS.removeprefix('/v1')}/{{undoId}}"
_LISTED = 20
"""Undos of the run that the page lists."""


class Confirm(Form):
    """The undo of the run to undo, if it is not the run itself."""

    undo_id: Id | None = None


@router.get(_UNDO, access=replace(paged(UNDO), idempotent=False, writes=True), errors=[RunError])
async def preview_run_undo(request: ApiRequest, undo_id: QueryId | None = None) -> Response:
    """Look at what the undo of a run would revert."""
    body = UndoRun(preview=True, undoId=undo_id)
    place = request.ids["automationId"], request.ids["runId"]
    outcome = await attempt(
        request, lambda: undo_run(request.work, request.actor, *place, body, request.new_id)
    )
    if isinstance(outcome, PlatformError):
        return await _page(request, None, undo_id, outcome)
    return await _page(request, outcome, undo_id)


@router.post(_UNDO, access=paged(UNDO), errors=[RunError])
async def confirm_run_undo(request: ApiRequest, body: Confirm) -> Response:
    """Undo a run, and lead to the undo."""
    place = request.ids["automationId"], request.ids["runId"]
    wanted = UndoRun(undoId=body.undo_id)
    undo = await undo_run(request.work, request.actor, *place, wanted, request.new_id)
    return see_other(f"{request.url.path}s/{undo.id}")


@router.get(_ONE, access=paged(READ))
async def get_run_undo(request: ApiRequest) -> Response:
    """Look at an undo of a run."""
    place = request.ids["automationId"], request.ids["runId"]
    undo = await get_undo(request.work, request.actor, *place, request.ids["undoId"])
    return await _page(request, undo, None)


async def _page(
    request: ApiRequest,
    undo: RunUndoDetail | None,
    undo_id: Id | None,
    refusal: PlatformError | None = None,
) -> Response:
    automation_id, run_id = request.ids["automationId"], request.ids["runId"]
    turn = request.page("console run undos", _LISTED, None, run_id)
    listed = await list_undos(request.work, request.actor, automation_id, run_id, turn)
    shell = await shell_of(request)
    preview = {"preview": True} if undo_id is None else {"preview": True, "undoId": str(undo_id)}
    place = {"automation_id": automation_id, "run_id": run_id}
    return page(
        request,
        "undo.html",
        shell,
        automation=await named(request.work, request.actor, run_id),
        run_id=run_id,
        undo=undo,
        undo_id=undo_id,
        problem=refusal,
        listed=listed.run_undos,
        place=f"/workspaces/{request.workspace_id}/automations/{automation_id}/runs/{run_id}",
        api=shell.calls((api.undo_automation_run, preview), **place),
    )
