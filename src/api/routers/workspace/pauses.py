"""Pauses of an automation, a connection and a workspace; what comes in waits meanwhile."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from api.routers.sources.connections import CONNECTION
from api.routers.sources.connections import READ as READ_CONNECTION
from api.routers.sources.connections import WRITE as WRITE_CONNECTION
from models.core.access.rules import Scope
from models.core.base import Id
from models.core.pauses.queries import answer
from models.core.pauses.rules import PauseSubject
from models.core.pauses.shapes import PauseShape, PauseWork, ResumeWork
from models.sources.outbound_limits.commands import pause_of
from models.sources.outbound_limits.queries import ResumeConnection
from models.workspace import pauses

router = Router(tags=["pauses"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
READ_WORKSPACE = Access(scopes=[Scope.WORKSPACE_READ])
WRITE_WORKSPACE = Access(scopes=[Scope.WORKSPACE_UPDATE], idempotent=True)


@router.get(f"{AUTOMATION}/pause", access=READ)
async def get_automation_pause(request: ApiRequest) -> Data[PauseShape]:
    """Get the pause of an automation, and how many runs rest under it.

    An automation that nobody paused is `running`, though its workspace may be paused, or its
    circuit breaker open.
    """
    return await _answer(request, request.ids["automationId"])


@router.post(f"{AUTOMATION}/pause", access=WRITE)
async def pause_automation(request: ApiRequest, body: PauseWork) -> Data[PauseShape]:
    """Pause an automation: its runs are accepted, and rest in their order.

    Runs under way go on to their end, and tests are not held up. Runs that rest are `queued`;
    `metadata.waitingFor` says why. Pausing what is paused changes nothing.
    """
    return await _pause(request, PauseSubject.AUTOMATION, request.ids["automationId"], body)


@router.post(f"{AUTOMATION}/resume", access=WRITE)
async def resume_automation(request: ApiRequest, body: ResumeWork) -> Data[PauseShape]:
    """Resume an automation: what rests starts, the oldest first, at once or at a rate.

    New runs stand behind the resting ones. The rate counts starts a minute; another call changes
    it. An open circuit breaker is closed.
    """
    return await _resume(request, PauseSubject.AUTOMATION, request.ids["automationId"], body)


@router.get(f"{CONNECTION}/pause", access=READ_CONNECTION)
async def get_connection_pause(request: ApiRequest) -> Data[PauseShape]:
    """Get the pause of a connection, and how many calls wait for it."""
    return await _connection_answer(request)


@router.post(f"{CONNECTION}/pause", access=WRITE_CONNECTION)
async def pause_connection(request: ApiRequest, body: PauseWork) -> Data[PauseShape]:
    """Pause a connection: what would call through it waits in line, and loses no attempt.

    Runs, refreshes and jobs wait at their next step that calls through it; a step that has called
    already goes on. `metadata.waitingFor` of a run says why. Tests and previews of the connection
    itself are not held up. Pausing what is paused changes nothing.
    """
    connection_id = request.ids["connectionId"]
    await pauses.pause_connection(request.work, request.actor, connection_id, body)
    return await _connection_answer(request)


@router.post(f"{CONNECTION}/resume", access=WRITE_CONNECTION)
async def resume_connection(request: ApiRequest, body: ResumeConnection) -> Data[PauseShape]:
    """Resume a connection: calls that wait are made in their order, at once or at a rate.

    The rate counts calls a minute; new calls stand in line until nobody waits. Limits of the
    connection hold beside it. Another call changes the rate.
    """
    connection_id = request.ids["connectionId"]
    await pauses.resume_connection(request.work, request.actor, connection_id, body)
    return await _connection_answer(request)


@router.get(f"{WORKSPACE}/pause", access=READ_WORKSPACE)
async def get_workspace_pause(request: ApiRequest) -> Data[PauseShape]:
    """Get the pause of a workspace, and how many runs rest under it."""
    return await _answer(request, request.actor.workspace_id)


@router.post(f"{WORKSPACE}/pause", access=WRITE_WORKSPACE)
async def pause_workspace(request: ApiRequest, body: PauseWork) -> Data[PauseShape]:
    """Pause a workspace: the runs of all its automations are accepted, and rest in their order.

    Runs under way go on to their end, and tests are not held up.
    """
    return await _pause(request, PauseSubject.WORKSPACE, request.actor.workspace_id, body)


@router.post(f"{WORKSPACE}/resume", access=WRITE_WORKSPACE)
async def resume_workspace(request: ApiRequest, body: ResumeWork) -> Data[PauseShape]:
    """Resume a workspace: what rests starts, the oldest first, at once or at a rate.

    Runs of an automation that is paused itself rest on.
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
