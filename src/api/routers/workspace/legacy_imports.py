"""Legacy import runs, for platform administrators."""

from dataclasses import replace

from starlette.responses import Response

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from api.realtime.event_streams import EventStream, with_keepalive
from api.run_events import LegacyImportWatch, run_events, temporal_link
from models.workspace.legacy_imports import commands, queries
from models.workspace.legacy_imports.shapes import (
    ApproveLegacyImport,
    CancelLegacyImport,
    CreateLegacyImport,
    LegacyImport,
    LegacyImportList,
    RollBackLegacyImport,
    UpdateImportWorkspace,
)
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
    request: ApiRequest, body: CreateLegacyImport | None = None
) -> Data[LegacyImport]:
    """Accept a bundle of workspaces, which is then checked and awaits review.

    Send JSON that names an object of the store, or the bundle: as it is, or as the only part,
    named `file`, of a form. Nothing of it is imported before it is approved and started.
    """
    run_id = request.new_id
    if body is not None:
        return Data(await commands.create_run(request.work, request.principal, run_id, body))
    return Data(
        await commands.create_uploaded_run(request.work, request.principal, run_id, request.upload)
    )


@router.get(RUNS, access=READ)
async def list_legacy_imports(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[LegacyImportList]:
    """List legacy import runs, newest first."""
    page = request.page("legacy imports", limit, cursor)
    return Data(await queries.list_runs(request.work, page))


@router.get(RUN, access=READ)
async def get_legacy_import(request: ApiRequest) -> Data[LegacyImport]:
    """Get a legacy import run with what the dry run found, and how far each workspace is."""
    found = await queries.get_run(request.work, request.ids["runId"])
    link = temporal_link(request.services.settings, found.temporal_workflow_id)
    found.temporal_url = link.get("uiUrl")
    return Data(found)


@router.get(f"{RUN}/events", access=READ, media_type="text/event-stream")
async def watch_legacy_import(request: ApiRequest) -> Response:
    """Watch a legacy import run: server-sent events until it is at rest.

    `state` holds the run each time it has changed; `end` says that it is at rest. A stream that
    stops without `end` is to be opened again.
    """
    await queries.find_run(request.work, request.ids["runId"])
    events = run_events(request.services, LegacyImportWatch(request.ids["runId"]))
    return EventStream(request.services.streams, request.share, with_keepalive(events))


@router.post(f"{RUN}/approve", access=DECIDE, errors=[ConflictError])
async def approve_legacy_import(
    request: ApiRequest, body: ApproveLegacyImport
) -> Data[LegacyImport]:
    """Approve a run that awaits review, which can then be started.

    At least one workspace must be selected, and none of the selected may be blocked.
    """
    return Data(await commands.approve(request.work, request.principal, request.ids["runId"], body))


@router.post(f"{RUN}/cancel", access=DECIDE, errors=[ConflictError])
async def cancel_legacy_import(request: ApiRequest, body: CancelLegacyImport) -> Data[LegacyImport]:
    """Cancel a run. A finished one stays as it is.

    What an import has not finished is taken back; workspaces that are whole stay hidden, until they
    are released or rolled back.
    """
    return Data(await commands.cancel(request.work, request.principal, request.ids["runId"], body))


@router.post(f"{RUN}/start", access=DECIDE, errors=[ConflictError])
async def start_legacy_import(request: ApiRequest) -> Data[LegacyImport]:
    """Import the selected workspaces of an approved run; they are hidden until verified."""
    return Data(await commands.start(request.work, request.ids["runId"]))


@router.post(f"{RUN}/dry-run", access=DECIDE, errors=[ConflictError])
async def repeat_dry_run(request: ApiRequest) -> Data[LegacyImport]:
    """Check the selected workspaces of a run that awaits review once more."""
    return Data(await commands.repeat_dry_run(request.work, request.ids["runId"]))


@router.post(f"{RUN}/release", access=DECIDE, errors=[ConflictError])
async def release_legacy_import(request: ApiRequest) -> Data[LegacyImport]:
    """Let people see the workspaces that were finished before a run was cancelled.

    They are `live` from then on. The status of the run stays as it is, and so does how long it can
    be rolled back.
    """
    return Data(
        await commands.release_finished(request.work, request.ids["runId"], request.services.keys)
    )


@router.post(f"{RUN}/rollback", access=DECIDE, errors=[ConflictError])
async def roll_back_legacy_import(
    request: ApiRequest, body: RollBackLegacyImport
) -> Data[LegacyImport]:
    """Take back what an ended run has imported, within 30 days of its end.

    What was changed since is kept and reported, unless `force` is set.
    """
    return Data(
        await commands.roll_back(request.work, request.principal, request.ids["runId"], body)
    )


@router.patch(WORKSPACE, access=Access(platform_admin=True), errors=[ConflictError])
async def update_import_workspace(
    request: ApiRequest, body: UpdateImportWorkspace
) -> Data[LegacyImport]:
    """Select a workspace of a run that awaits review, or import it into one that is there.

    What was not checked so is checked again. The answer is the run.
    """
    run_id, entry_id = request.ids["runId"], request.ids["entryId"]
    return Data(await commands.update_workspace(request.work, run_id, entry_id, body))


@router.post(f"{WORKSPACE}/retry", access=DECIDE, errors=[ConflictError])
async def retry_import_workspace(request: ApiRequest) -> Data[LegacyImport]:
    """Go on with a workspace whose import failed, from its last chunk; at most four times."""
    run_id, entry_id = request.ids["runId"], request.ids["entryId"]
    return Data(await commands.retry_workspace(request.work, run_id, entry_id))
