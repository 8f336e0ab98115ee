"""Legacy import runs, for platform administrators."""

from dataclasses import replace

from starlette.responses import Response

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.realtime.feeds import EventStream, with_keepalive
from api.run_events import LegacyImportWatch, run_events, temporal_link
from models.workspace.legacy_imports import commands, queries
from runtime.errors import ConflictError

router = Router(tags=["legacy imports"])

RUNS = "/v1/admin/legacy-imports"
RUN = f"{RUNS}/{{runId}}"
WORKSPACE = f"{RUN}/workspaces/{{entryId}}"

READ = Access(platform_admin=True, snapshot=True)
DECIDE = Access(platform_admin=True, idempotent=True)
UPLOAD = replace(DECIDE, upload=True, bundles=commands.OBJECTS)


@router.post(
    RUNS,
    access=UPLOAD,
    status_code=201,
)
async def create_legacy_import(
    request: ApiRequest, body: queries.CreateLegacyImport | None = None
) -> Data[queries.LegacyImport]:
    """Upload a bundle of workspaces to validate and review.

    Send JSON that references an object in the store, or the bundle itself: as the body, or as the
    only part, named `file`, of a form. Nothing is imported before it is approved and started.
    """
    run_id = request.new_id
    if body is not None:
        return Data(await commands.create_run(request.work, request.principal, run_id, body))
    return Data(
        await commands.create_uploaded_run(request.work, request.principal, run_id, request.upload)
    )


@router.get(RUNS, access=READ, calls=queries.list_runs)
async def list_legacy_imports() -> None:
    """List legacy import runs, newest first."""


@router.get(RUN, access=READ)
async def get_legacy_import(request: ApiRequest) -> Data[queries.LegacyImport]:
    """Get a legacy import run with its dry run and the progress of each workspace."""
    found = await queries.get_run(request.work, request.ids["runId"])
    link = temporal_link(request.services.settings, found.temporal_workflow_id)
    found.temporal_url = link.get("uiUrl")
    return Data(found)


@router.get(f"{RUN}/events", access=READ, media_type="text/event-stream")
async def watch_legacy_import(request: ApiRequest) -> Response:
    """Watch a legacy import run with server-sent events until it ends or needs a decision.

    `state` has the run after each change; `end` is the last event. Reconnect if a stream stops
    without `end`.
    """
    await queries.find_run(request.work, request.ids["runId"])
    events = run_events(request.services, LegacyImportWatch(request.ids["runId"]))
    return EventStream(request.services.streams, request.share, with_keepalive(events))


@router.post(f"{RUN}/approve", access=DECIDE, errors=[ConflictError], calls=commands.approve)
async def approve_legacy_import() -> None:
    """Approve a run that awaits review, so that it can be started.

    At least one workspace must be selected, and no selected workspace can be blocked.
    """


@router.post(f"{RUN}/cancel", access=DECIDE, errors=[ConflictError], calls=commands.cancel)
async def cancel_legacy_import() -> None:
    """Cancel a run. A run that has ended is not changed.

    Unfinished workspaces are rolled back. Complete ones stay hidden until they are released or
    rolled back.
    """


@router.post(f"{RUN}/start", access=DECIDE, errors=[ConflictError], calls=commands.start)
async def start_legacy_import() -> None:
    """Import the selected workspaces of an approved run; they are hidden until verified."""


@router.post(f"{RUN}/dry-run", access=DECIDE, errors=[ConflictError], calls=commands.repeat_dry_run)
async def repeat_dry_run() -> None:
    """Repeat the dry run of the selected workspaces of a run that awaits review."""


@router.post(
    f"{RUN}/release", access=DECIDE, errors=[ConflictError], calls=commands.release_finished
)
async def release_legacy_import() -> None:
    """Publish the workspaces that were complete when a run was cancelled.

    They become `live`. The status of the run and its rollback period do not change.
    """


@router.post(f"{RUN}/rollback", access=DECIDE, errors=[ConflictError], calls=commands.roll_back)
async def roll_back_legacy_import() -> None:
    """Roll back an ended run, up to 30 days after its end.

    Data edited since is kept and reported, unless `force` is set.
    """


@router.patch(
    WORKSPACE,
    access=Access(platform_admin=True),
    errors=[ConflictError],
    calls=commands.update_workspace,
)
async def update_import_workspace() -> None:
    """Select a workspace of a run that awaits review, or set an existing target workspace.

    The workspace is validated again if needed. Returns the run.
    """


@router.post(
    f"{WORKSPACE}/retry", access=DECIDE, errors=[ConflictError], calls=commands.retry_workspace
)
async def retry_import_workspace() -> None:
    """Retry the failed import of a workspace from its last chunk, up to four times."""
