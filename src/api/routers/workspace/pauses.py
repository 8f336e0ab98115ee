"""Pauses of an automation, a connection and a workspace; what comes in waits meanwhile."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from api.routers.sources.connections import CONNECTION
from api.routers.sources.connections import READ as READ_CONNECTION
from api.routers.sources.connections import WRITE as WRITE_CONNECTION
from models.core.access.rules import Scope
from models.core.base import Id
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import PauseShape, PauseWork, ResumeWork, answer
from models.sources.outbound_limits.commands import pause_of
from models.sources.outbound_limits.queries import ResumeConnection
from models.workspace import pauses

router = Router(tags=["pauses"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
READ_WORKSPACE = Access(scopes=[Scope.WORKSPACE_READ])
WRITE_WORKSPACE = Access(scopes=[Scope.WORKSPACE_UPDATE], idempotent=True)


@router.get(f"{AUTOMATION}/pause", access=READ)
async def get_automation_pause(request: ApiRequest) -> Data[PauseShape]:
    """Get the pause of an automation, and the number of queued runs.

    An automation that is not paused itself is `running`, even if its workspace is paused or its
    circuit breaker is open.
    """
    return await _answer(request, request.ids["automationId"])


@router.post(f"{AUTOMATION}/pause", access=WRITE)
async def pause_automation(request: ApiRequest, body: PauseWork) -> Data[PauseShape]:
    """Pause an automation: new runs are queued in order.

    Running runs finish, and tests are not affected. Queued runs have the reason in
    `metadata.waitingFor`. Pausing again changes nothing.
    """
    return await _pause(request, PauseSubject.AUTOMATION, request.ids["automationId"], body)


@router.post(f"{AUTOMATION}/resume", access=WRITE)
async def resume_automation(request: ApiRequest, body: ResumeWork) -> Data[PauseShape]:
    """Resume an automation: queued runs start, oldest first, at once or at a rate.

    New runs are queued behind them. The rate is in starts per minute; another call changes it. An
    open circuit breaker is closed.
    """
    return await _resume(request, PauseSubject.AUTOMATION, request.ids["automationId"], body)


@router.get(f"{CONNECTION}/pause", access=READ_CONNECTION)
async def get_connection_pause(request: ApiRequest) -> Data[PauseShape]:
    """Get the pause of a connection, and the number of waiting calls."""
    return await _connection_answer(request)


@router.post(f"{CONNECTION}/pause", access=WRITE_CONNECTION)
async def pause_connection(request: ApiRequest, body: PauseWork) -> Data[PauseShape]:
    """Pause a connection: calls through it wait, without losing an attempt.

    Runs, refreshes and jobs wait at their next step that uses it; a call in progress finishes.
    `metadata.waitingFor` of a run has the reason. Tests and previews of the connection are not
    affected. Pausing again changes nothing.
    """
    connection_id = request.ids["connectionId"]
    await pauses.pause_connection(request.work, request.actor, connection_id, body)
    return await _connection_answer(request)


@router.post(f"{CONNECTION}/resume", access=WRITE_CONNECTION)
async def resume_connection(request: ApiRequest, body: ResumeConnection) -> Data[PauseShape]:
    """Resume a connection: waiting calls are made in order, at once or at a rate.

    The rate is in calls per minute; new calls wait until no other call does. Limits of the
    connection still apply. Another call changes the rate.
    """
    connection_id = request.ids["connectionId"]
    await pauses.resume_connection(request.work, request.actor, connection_id, body)
    return await _connection_answer(request)


@router.get(f"{WORKSPACE}/pause", access=READ_WORKSPACE)
async def get_workspace_pause(request: ApiRequest) -> Data[PauseShape]:
    """Get the pause of a workspace, and the number of queued runs."""
    return await _answer(request, request.actor.workspace_id)


@router.post(f"{WORKSPACE}/pause", access=WRITE_WORKSPACE)
async def pause_workspace(request: ApiRequest, body: PauseWork) -> Data[PauseShape]:
    """Pause a workspace: new runs of all its automations are queued in order.

    Running runs finish, and tests are not affected.
    """
    return await _pause(request, PauseSubject.WORKSPACE, request.actor.workspace_id, body)


@router.post(f"{WORKSPACE}/resume", access=WRITE_WORKSPACE)
async def resume_workspace(request: ApiRequest, body: ResumeWork) -> Data[PauseShape]:
    """Resume a workspace: queued runs start, oldest first, at once or at a rate.

    Runs of an automation that is paused itself stay queued.
    """
    return await _resume(request, PauseSubject.WORKSPACE, request.actor.workspace_id, body)


async def _pause(
    request: ApiRequest, kind: PauseSubject, subject_id: Id, body: PauseWork
) -> Data[PauseShape]:
    await pauses.pause(request.work, request.actor, kind, subject_id, body)
    return await _answer(request, subject_id)


async def _resume(
    request: ApiRequest, kind: PauseSubject, subject_id: Id, body: ResumeWork
) -> Data[PauseShape]:
    await pauses.resume(request.work, request.actor, kind, subject_id, body)
    return await _answer(request, subject_id)


async def _connection_answer(request: ApiRequest) -> Data[PauseShape]:
    return Data(await pause_of(request.work, request.actor, request.ids["connectionId"]))


async def _answer(request: ApiRequest, subject_id: Id) -> Data[PauseShape]:
    return Data(await answer(request.work, request.actor.workspace_id, subject_id))
