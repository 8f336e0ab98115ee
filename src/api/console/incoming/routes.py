"""Runs that bring rows or workspaces in: refreshes, imports, legacy imports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response

from api.console.entered import Form, given, read_as
from api.console.forms import done, paged
from api.console.rendering import console_page, see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.sources import data_sources
from api.routers.workspace import legacy_imports as api
from api.routers.workspace.legacy_imports import DECIDE, READ, RUN, RUNS, UPLOAD, WORKSPACE
from api.run_events import temporal_link
from models.core.pagination import DEFAULT_LIMIT
from models.workspace.legacy_imports import commands, queries
from models.workspace.legacy_imports import rules as legacy_import_rules
from runtime.errors import ConflictError, ValidationError

router = page_router()


@router.get("/data-source-runs/{dataSourceRunId}", access=paged(data_sources.READ_PAGE))
async def get_source_run_page(request: ApiRequest) -> Response:
    """Look at a refresh or an import, and follow it while it goes on."""
    return await console_page(
        request,
        "incoming.html",
        data_sources.get_source_run,
        script="source-run.js",
    )


_RUNS = RUNS.removeprefix("/v1/admin")
_RUN = RUN.removeprefix("/v1/admin")
_WORKSPACE = WORKSPACE.removeprefix("/v1/admin")
_DECIDE: Access = paged(replace(DECIDE, joins=True))


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
    return await console_page(
        request,
        "legacy_imports.html",
        api.list_legacy_imports,
        listed=listed,
        cursor=cursor,
        sign=sign,
    )


@router.post(_RUNS, access=paged(replace(UPLOAD, joins=True)))
async def send_bundle(request: ApiRequest, body: Bundle) -> Response:  # noqa: ARG001
    """Accept a bundle, and lead to its check."""
    if request.uploaded is None:
        raise ValidationError.at("file", "Choose a file.")
    run = await commands.create_uploaded_run(
        request.work, request.principal, request.new_id, request.upload
    )
    return see_other(f"{_RUNS}/{run.id}")


@router.get(_RUN, access=paged(READ))
async def get_legacy_import_page(request: ApiRequest) -> Response:
    """Look at a legacy import run, follow it, and decide on it."""
    run = await queries.get_run(request.work, request.ids["runId"])
    link = temporal_link(request.services.settings, run.temporal_workflow_id)
    return await console_page(
        request,
        "legacy_import.html",
        api.get_legacy_import,
        api.approve_legacy_import,
        api.start_legacy_import,
        run=run,
        going=goes_on(run),
        stages=stages_of(run),
        choices=choices_of(run),
        sign=sign,
        may_retry=may_retry,
        temporal=link.get("uiUrl"),
    )


for _verb, _operation, _message in (
    ("approve", api.approve_legacy_import, "Import approved"),
    ("cancel", api.cancel_legacy_import, "Import cancelled"),
    ("start", api.start_legacy_import, "Import started"),
    ("dry-run", api.repeat_dry_run, "Check started"),
    ("release", api.release_legacy_import, "Finished workspaces released"),
    ("rollback", api.roll_back_legacy_import, "Rollback started"),
):
    act(router, f"{_RUN}/{_verb}", _operation, message=_message, then=_RUN)
act(
    router,
    f"{_RUN}/rollback/force",
    api.roll_back_legacy_import,
    name="roll_back_by_force",
    body={"force": True},
    message="Rollback started",
    then=_RUN,
)
act(
    router,
    f"{_WORKSPACE}/retry",
    api.retry_import_workspace,
    message="Retry started",
    then=_RUN,
)


@router.post(_WORKSPACE, access=_DECIDE, errors=[ConflictError])
async def change_import_workspace(request: ApiRequest, body: Target) -> Response:
    """Select a workspace or leave it out, or choose where it goes."""
    fields: dict[str, object] = {}
    if body.selected is not None:
        fields["selected"] = body.selected == "true"
    if body.target is not None:
        fields["targetWorkspaceId"] = body.target.strip()
    change = read_as(queries.UpdateImportWorkspace, given(fields))
    if body.own is not None:
        change = queries.UpdateImportWorkspace.model_validate({"targetWorkspaceId": None})
    run_id, entry_id = request.ids["runId"], request.ids["entryId"]
    await commands.update_workspace(request.work, run_id, entry_id, change)
    return _done(request, "Saved")


def _done(request: ApiRequest, message: str) -> Response:
    return done(request, message, f"{_RUNS}/{request.ids['runId']}")


_S = legacy_import_rules.LegacyImportStatus
_SIGNS: Mapping[str, str] = {
    "awaiting_review": "waiting",
    "approved": "waiting",
    "completed": "succeeded",
    "completed_with_warnings": "succeeded",
    "rolled_back": "succeeded",
    "rollback_failed": "failed",
    "failed": "failed",
    "blocked": "failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
    "queued": "queued",
    "uploaded": "queued",
    "ready": "waiting",
    "done": "succeeded",
}
_STAGES = (
    ("Check", "reads the bundle and validates each row"),
    ("Review", "needs an administrator's approval"),
    ("Import", "writes and verifies the selected workspaces"),
)
_PLACES: Mapping[legacy_import_rules.LegacyImportStatus, int] = {
    _S.UPLOADED: 0,
    _S.VALIDATING: 0,
    _S.DRY_RUNNING: 0,
    _S.AWAITING_REVIEW: 1,
    _S.APPROVED: 1,
    _S.IMPORTING: 2,
    _S.VERIFYING: 2,
}
CANCELLABLE = legacy_import_rules.AT_ONCE_CANCELLED | legacy_import_rules.TAKEN_BACK


@dataclass(frozen=True, slots=True)
class Choices:
    """The decisions that a run takes as it is now; `obstacle` is why it cannot be approved."""

    approve: bool
    check_again: bool
    start: bool
    cancel: bool
    release: bool
    roll_back: bool
    force: bool
    obstacle: str


def sign(name: str) -> str:
    """The sign of a status or a stage; all that is not listed goes on."""
    return _SIGNS.get(name, "running")


def goes_on(run: queries.LegacyImport) -> bool:
    """True while the run changes by itself."""
    return run.status not in legacy_import_rules.RUN_LIFECYCLE.at_rest | legacy_import_rules.WAITING


def stages_of(run: queries.LegacyImport) -> list[tuple[str, str, str | None]]:
    """The three stages: name, what it does, and its sign once it was reached."""
    return [(name, does, _stage(run, place)) for place, (name, does) in enumerate(_STAGES)]


def _stage(run: queries.LegacyImport, place: int) -> str | None:
    here = _PLACES.get(run.status)
    if here is not None:
        return sign(run.status) if here == place else "succeeded" if place < here else None
    reached = 2 if run.started_at else 1 if run.approved_at or run.workspaces else 0
    if place < reached:
        return "succeeded"
    verdict = "succeeded" if run.status.startswith("roll") else sign(run.status)
    return verdict if place == reached else None


def choices_of(run: queries.LegacyImport) -> Choices:
    """The decisions that the run takes now."""
    review = run.status is _S.AWAITING_REVIEW
    obstacle = _obstacle(run.workspaces) if review else ""
    is_at_rest = run.status in legacy_import_rules.RUN_LIFECYCLE.at_rest
    partial = any(
        workspace.rollback_state is legacy_import_rules.RollbackState.PARTIAL
        for workspace in run.workspaces
    )
    there = {legacy_import_rules.LifecycleState.HIDDEN, legacy_import_rules.LifecycleState.LIVE}
    holds = any(workspace.lifecycle_state in there for workspace in run.workspaces)
    return Choices(
        approve=review and not obstacle,
        check_again=review and any(workspace.selected for workspace in run.workspaces),
        start=run.status is _S.APPROVED,
        cancel=run.status in CANCELLABLE,
        release=run.status in legacy_import_rules.RELEASED_IN
        and any(map(_is_whole, run.workspaces)),
        roll_back=is_at_rest and holds and not partial,
        force=is_at_rest and partial,
        obstacle=obstacle,
    )


def may_retry(run: queries.LegacyImport, entry: queries.ImportWorkspaceEntry) -> bool:
    """True for a workspace that can go on from where its import failed."""
    return (
        run.status in legacy_import_rules.RETRIED_IN
        and entry.stage is legacy_import_rules.ImportStage.FAILED
        and entry.rollback_state is legacy_import_rules.RollbackState.NONE
        and entry.attempt < legacy_import_rules.MAX_ATTEMPTS
    )


def _is_whole(entry: queries.ImportWorkspaceEntry) -> bool:
    """Tell a workspace that is whole, and yet hidden."""
    return (
        entry.stage is legacy_import_rules.ImportStage.DONE
        and entry.lifecycle_state is legacy_import_rules.LifecycleState.HIDDEN
        and entry.rollback_state is legacy_import_rules.RollbackState.NONE
    )


def _obstacle(entries: Sequence[queries.ImportWorkspaceEntry]) -> str:
    """The reason that what is selected cannot be approved as it is; empty when it can."""
    selection = [entry for entry in entries if entry.selected]
    blocked = [
        entry.source_name
        for entry in selection
        if entry.stage is legacy_import_rules.ImportStage.BLOCKED
    ]
    if blocked:
        return f"Exclude blocked workspaces before approving: {', '.join(blocked)}."
    if not selection:
        return "Include at least one workspace before approving."
    if all(entry.stage is legacy_import_rules.ImportStage.READY for entry in selection):
        return ""
    return "Check again before approving: a workspace has not been checked."
