"""Pages of legacy imports: a bundle is sent, checked, reviewed, imported, taken back."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from api.console.forms import Form, body_of, done, paged
from api.console.incoming.legacy_states import choices_of, goes_on, may_retry, sign, stages_of
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import Shell, shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.workspace.legacy_imports import DECIDE, READ, RUN, RUNS, UPLOAD, WORKSPACE
from api.run_links import temporal_link
from models.core.pagination import DEFAULT_LIMIT
from models.workspace.legacy_imports import queries
from models.workspace.legacy_imports.commands import creation, decisions, recovery
from models.workspace.legacy_imports.shapes import (
    ApproveLegacyImport,
    CancelLegacyImport,
    RollBackLegacyImport,
    UpdateImportWorkspace,
)
from runtime.errors import ConflictError, ValidationError

router = page_router()

_RUNS = RUNS.removeprefix("/v1/admin")
_RUN = RUN.removeprefix("/v1/admin")
_WORKSPACE = WORKSPACE.removeprefix("/v1/admin")
_DECIDE: Access = paged(replace(DECIDE, joins=True))


class Note(Form):
    """The words that an administrator writes beside a decision."""

    words: str | None = None


class Bundle(Form):
    """The form around a bundle has no fields of its own."""


class Target(Form):
    """The choice for one workspace: whether it is selected, or where it goes."""

    selected: str | None = None
    target: str | None = None
    own: str | None = None


@router.get(_RUNS, access=paged(READ))
async def get_legacy_imports(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the legacy imports, and send the bundle of another."""
    shown = request.page("pages of legacy imports", DEFAULT_LIMIT, cursor)
    listed = await queries.list_runs(request.work, shown)
    shell = await shell_of(request)
    call = curl(shell.base, "GET", RUNS)
    return page(
        request, "legacy_imports.html", shell, listed=listed, cursor=cursor, sign=sign, call=call
    )


@router.post(_RUNS, access=paged(replace(UPLOAD, joins=True)))
async def send_bundle(request: ApiRequest, body: Bundle) -> Response:  # noqa: ARG001
    """Accept a bundle, and lead to its check."""
    if request.uploaded is None:
        raise ValidationError.at("file", "Choose a bundle.")
    run = await creation.create_uploaded_run(
        request.work, request.principal, request.new_id, request.upload
    )
    return see_other(f"{_RUNS}/{run.id}")


@router.get(_RUN, access=paged(READ))
async def get_legacy_import_page(request: ApiRequest) -> Response:
    """Look at a legacy import run, follow it, and decide on it."""
    run = await queries.get_run(request.work, request.ids["runId"])
    shell = await shell_of(request)
    link = temporal_link(request.services.settings, run.temporal_workflow_id)
    return page(
        request,
        "legacy_import.html",
        shell,
        run=run,
        going=goes_on(run),
        stages=stages_of(run),
        choices=choices_of(run),
        sign=sign,
        may_retry=may_retry,
        temporal=link.get("uiUrl"),
        calls=_calls(shell, f"{RUNS}/{run.id}"),
    )


@router.post(f"{_RUN}/approve", access=_DECIDE, errors=[ConflictError])
async def approve_by_form(request: ApiRequest, body: Note) -> Response:
    """Approve what is selected of a run that awaits review."""
    words = body_of(ApproveLegacyImport, {"note": body.words})
    await decisions.approve(request.work, request.principal, request.ids["runId"], words)
    return _done(request, "The run is approved.")


@router.post(f"{_RUN}/cancel", access=_DECIDE, errors=[ConflictError])
async def cancel_by_form(request: ApiRequest, body: Note) -> Response:
    """Cancel a run; what it has not finished is taken back."""
    words = body_of(CancelLegacyImport, {"reason": body.words})
    await decisions.cancel(request.work, request.principal, request.ids["runId"], words)
    return _done(request, "The run is cancelled.")


@router.post(f"{_RUN}/start", access=_DECIDE, errors=[ConflictError])
async def start_by_form(request: ApiRequest) -> Response:
    """Import what is selected of an approved run."""
    await decisions.start(request.work, request.ids["runId"])
    return _done(request, "The import has begun.")


@router.post(f"{_RUN}/dry-run", access=_DECIDE, errors=[ConflictError])
async def check_again_by_form(request: ApiRequest) -> Response:
    """Check what is selected once more."""
    await decisions.repeat_dry_run(request.work, request.ids["runId"])
    return _done(request, "It is checked again.")


@router.post(f"{_RUN}/release", access=_DECIDE, errors=[ConflictError])
async def release_by_form(request: ApiRequest) -> Response:
    """Let people see the workspaces that were finished before the run ended."""
    keys = request.services.keys
    await recovery.release_finished(request.work, request.ids["runId"], keys)
    return _done(request, "The finished workspaces are visible.")


@router.post(f"{_RUN}/rollback", access=_DECIDE, errors=[ConflictError])
async def roll_back_by_form(request: ApiRequest, body: Note) -> Response:
    """Take back what a run has imported; what was changed since is kept."""
    return await _roll_back(request, body, force=False)


@router.post(f"{_RUN}/rollback/force", access=_DECIDE, errors=[ConflictError])
async def roll_back_by_force(request: ApiRequest, body: Note) -> Response:
    """Take back what a run has imported, with what was changed since."""
    return await _roll_back(request, body, force=True)


@router.post(_WORKSPACE, access=_DECIDE, errors=[ConflictError])
async def change_import_workspace(request: ApiRequest, body: Target) -> Response:
    """Select a workspace or leave it out, or choose where it goes."""
    fields: dict[str, object] = {}
    if body.selected is not None:
        fields["selected"] = body.selected == "true"
    if body.target is not None:
        fields["targetWorkspaceId"] = body.target.strip()
    change = body_of(UpdateImportWorkspace, fields)
    if body.own is not None:
        change = UpdateImportWorkspace.model_validate({"targetWorkspaceId": None})
    run_id, entry_id = request.ids["runId"], request.ids["entryId"]
    await decisions.update_workspace(request.work, run_id, entry_id, change)
    return _done(request, "Noted.")


@router.post(f"{_WORKSPACE}/retry", access=_DECIDE, errors=[ConflictError])
async def retry_import_by_form(request: ApiRequest) -> Response:
    """Go on with a workspace whose import failed."""
    run_id, entry_id = request.ids["runId"], request.ids["entryId"]
    await recovery.retry_workspace(request.work, run_id, entry_id)
    return _done(request, "It goes on.")


async def _roll_back(request: ApiRequest, body: Note, *, force: bool) -> Response:
    words = body_of(RollBackLegacyImport, {"reason": body.words or "", "force": force})
    await recovery.roll_back(request.work, request.principal, request.ids["runId"], words)
    return _done(request, "It is being taken back.")


def _calls(shell: Shell, path: str) -> Mapping[str, str]:
    return {
        "Read it": curl(shell.base, "GET", path),
        "Approve it": curl(shell.base, "POST", f"{path}/approve", '{"note": "Counts compared."}'),
        "Start it": curl(shell.base, "POST", f"{path}/start"),
    }


def _done(request: ApiRequest, message: str) -> Response:
    return done(request, message, f"{_RUNS}/{request.ids['runId']}")
