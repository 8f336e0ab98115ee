"""Many runs at once: statistics, comparisons, saved filters, and operations over them."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Data, QueryId, Router, WaitSeconds
from api.routers.automation.automation_runs import RUN, WORKSPACE_RUNS
from api.routers.automation.automations import AUTOMATION, READ
from models.automation import run_statistics as statistics
from models.automation import saved_run_filters
from models.automation.run_comparisons import RunComparison, compare
from models.automation.run_operations import commands, queries
from models.automation.run_operations.rules import OPEN_OPERATION
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.core.values import InputMoment
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError

router = Router(tags=["automation runs"])


@router.get(
    f"{WORKSPACE_RUNS}/statistics",
    access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, heavy=True),
)
async def get_run_statistics(
    request: ApiRequest,
    by: statistics.Grain = statistics.Grain.HOUR,
    since: InputMoment | None = None,
    until: InputMoment | None = None,
    automation_id: QueryId | None = None,
) -> Data[statistics.RunStatistics]:
    """Count the runs that ended, by outcome, with percentiles of durations and of queueing.

    The period is rounded to whole hours or days of UTC: by default the last 24 hours or 30 days,
    at most 168 hours or 366 days. Hours are kept for 35 days, days for 400.
    """
    over = statistics.span(request.work.now, by, since, until)
    return Data(await statistics.get_statistics(request.work, request.actor, automation_id, over))


@router.get(f"{AUTOMATION}/runs/statistics", access=replace(READ, heavy=True))
async def get_automation_statistics(
    request: ApiRequest,
    by: statistics.Grain = statistics.Grain.HOUR,
    since: InputMoment | None = None,
    until: InputMoment | None = None,
) -> Data[statistics.RunStatistics]:
    """Count the runs of an automation that ended, as for a workspace."""
    over = statistics.span(request.work.now, by, since, until)
    automation_id = request.ids["automationId"]
    return Data(await statistics.get_statistics(request.work, request.actor, automation_id, over))


@router.get(f"{RUN}/comparison", access=replace(READ, snapshot=True, heavy=True))
async def compare_automation_runs(
    request: ApiRequest, with_: QueryId | None = None
) -> Data[RunComparison]:
    """Compare a run with another one of its automation, node by node.

    Without `with` that is the last run before it that succeeded and was no test. Nodes are the same
    by id and scope. Values are compared by path, as far as they are not too large.
    """
    place = request.ids["automationId"], request.ids["runId"]
    return Data(await compare(request.work, request.actor, *place, with_))


FILTERS = "/v1/workspaces/{workspaceId}/run-filters"
FILTER = f"{FILTERS}/{{filterId}}"

READ_FILTERS = Access(scopes=[Scope.AUTOMATIONS_READ])

CHANGE_FILTERS = Access(scopes=[Scope.AUTOMATIONS_READ], idempotent=True)


@router.get(FILTERS, access=READ_FILTERS, calls=saved_run_filters.list_filters)
async def list_run_filters() -> None:
    """List the saved filters of runs by name: the shared ones, and the caller's own."""


@router.post(
    FILTERS,
    access=CHANGE_FILTERS,
    status_code=201,
    errors=[ConflictError, DeniedError],
    calls=saved_run_filters.create_filter,
)
async def create_run_filter() -> None:
    """Save a filter of runs, for oneself or shared; that needs automations:write."""


@router.patch(
    FILTER, access=READ_FILTERS, errors=[DeniedError], calls=saved_run_filters.update_filter
)
async def update_run_filter() -> None:
    """Rename a saved filter, or give it other parameters."""


@router.delete(
    FILTER, access=READ_FILTERS, errors=[DeniedError], calls=saved_run_filters.delete_filter
)
async def delete_run_filter() -> None:
    """Delete a saved filter; runs stay as they are."""


OPERATIONS = "/v1/workspaces/{workspaceId}/run-operations"
OPERATION = f"{OPERATIONS}/{{runOperationId}}"

READ_OPERATIONS = Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW)

WRITE_OPERATIONS = Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True)


@router.post(
    f"{OPERATIONS}/preview",
    access=replace(WRITE_OPERATIONS, idempotent=False, heavy=True, safe=True),
    batch=True,
    calls=commands.preview_operation,
)
async def preview_run_operation() -> None:
    """Preview an operation over runs: the runs it would select now, and what it would repeat.

    Nothing is changed. Runs that the caller may not act on are not counted. `repeats` names the
    nodes whose effects outside the platform succeeded and would happen again.
    """


@router.post(OPERATIONS, access=WRITE_OPERATIONS, status_code=202, batch=True)
async def create_run_operation(
    request: ApiRequest, body: queries.CreateRunOperation
) -> Data[queries.RunOperationShape]:
    """Cancel, retry, resume or undo many runs, or replay many trigger events.

    The runs are named by a filter, as it finds them now, or by up to 100,000 ids. A filter selects
    the runs that the action applies to: open ones to cancel, ended ones to retry or undo, running
    and waiting ones to resume. Each is treated at most once, the oldest first, to undo the newest
    first, with the rights that the caller has then. A replay takes events of one automation instead
    of runs, and starts a run for each. `GET …/run-operations/{runOperationId}` shows
    the progress.
    """
    await commands.accept_operation(request.work, request.actor, request.new_id, body)
    return await _shown(request, request.new_id)


@router.get(OPERATIONS, access=READ_OPERATIONS, calls=queries.list_operations)
async def list_run_operations() -> None:
    """List operations over runs, newest first.

    They are the caller's own; owners and administrators see all.
    """


@router.get(OPERATION, access=READ_OPERATIONS)
async def get_run_operation(
    request: ApiRequest, wait: WaitSeconds = 0
) -> Data[queries.RunOperationShape]:
    """Get an operation over runs, with its progress.

    With `wait=30` the answer comes when it has ended, and after 30 seconds as it is then;
    at most 60.
    """
    operation_id, actor = request.ids["runOperationId"], request.actor

    async def poll(work: UnitOfWork, last: bool) -> queries.RunOperationShape | None:
        operation = await queries.operation_detail(work, actor, operation_id)
        return operation if last or operation.status not in OPEN_OPERATION else None

    shown = await _shown(request, operation_id)
    seconds = wait if shown.data.status in OPEN_OPERATION else 0
    return request.awaited(operation_id, poll, seconds=seconds) or shown


@router.get(f"{OPERATION}/results", access=READ_OPERATIONS, calls=queries.list_results)
async def list_run_operation_results() -> None:
    """List the runs of an operation in the order in which they are treated.

    A run without an outcome has not been treated yet. `reason` says why one was skipped or failed.
    """


@router.post(f"{OPERATION}/pause", access=WRITE_OPERATIONS, errors=[ConflictError])
async def pause_run_operation(request: ApiRequest) -> Data[queries.RunOperationShape]:
    """Pause an operation over runs after the runs that it treats now."""
    operation_id = request.ids["runOperationId"]
    await commands.pause_operation(request.work, request.actor, operation_id)
    return await _shown(request, operation_id)


@router.post(f"{OPERATION}/resume", access=WRITE_OPERATIONS, errors=[ConflictError])
async def resume_run_operation(request: ApiRequest) -> Data[queries.RunOperationShape]:
    """Resume a paused operation over runs from where it stopped."""
    operation_id = request.ids["runOperationId"]
    await commands.resume_operation(request.work, request.actor, operation_id)
    return await _shown(request, operation_id)


@router.post(f"{OPERATION}/cancel", access=WRITE_OPERATIONS)
async def cancel_run_operation(request: ApiRequest) -> Data[queries.RunOperationShape]:
    """Cancel an operation over runs; a finished one does not change.

    What it has done stays; undo takes that back.
    """
    operation_id = request.ids["runOperationId"]
    await commands.cancel_operation(request.work, request.actor, operation_id)
    return await _shown(request, operation_id)


@router.post(f"{OPERATION}/undo", access=WRITE_OPERATIONS, status_code=202, errors=[ConflictError])
async def undo_run_operation(
    request: ApiRequest, body: queries.UndoRunOperation
) -> Data[queries.RunOperationShape]:
    """Take an ended operation over runs back by another one, which is answered.

    The runs that a retry started are cancelled while they are open; the effects that they had
    stay. The runs that were cancelled are retried from where they stopped, as new runs. Undone runs
    get back what they wrote. What runs were resumed with stays sent.
    """
    operation_id, new_id = request.ids["runOperationId"], request.new_id
    await commands.undo_operation(request.work, request.actor, operation_id, new_id, body)
    return await _shown(request, new_id)


async def _shown(request: ApiRequest, operation_id: Id) -> Data[queries.RunOperationShape]:
    return Data(await queries.operation_detail(request.work, request.actor, operation_id))
