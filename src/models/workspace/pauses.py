"""Pausing and resuming named resources, and writing the log of it."""

from models.automation.automations.queries import item_of_automation
from models.automation.circuit_breakers import close_breaker
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.pauses import store as pauses
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import Paused, PauseWork, ResumeWork
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from models.sources.connections.store import is_shared
from models.sources.outbound_limits import commands as connections
from models.sources.outbound_limits.queries import ResumeConnection
from runtime.database import UnitOfWork

_PAUSED = {
    PauseSubject.AUTOMATION: EventType.AUTOMATION_PAUSED,
    PauseSubject.WORKSPACE: EventType.WORKSPACE_PAUSED,
}
_RESUMED = {
    PauseSubject.AUTOMATION: EventType.AUTOMATION_RESUMED,
    PauseSubject.WORKSPACE: EventType.WORKSPACE_RESUMED,
}


async def pause(
    work: UnitOfWork, actor: Actor, kind: PauseSubject, subject_id: Id, body: PauseWork
) -> None:
    """Pause something that the actor may change; what is paused stays as it is."""
    subject = Paused(actor.workspace_id, kind, subject_id)
    if await pauses.begin_pause(work, subject, body.reason, actor.person) is not None:
        await _tell(work, actor, _PAUSED[kind], subject, reason=body.reason)


async def resume(
    work: UnitOfWork, actor: Actor, kind: PauseSubject, subject_id: Id, body: ResumeWork
) -> None:
    """Resume something that the actor may change, at a rate or at once."""
    subject = Paused(actor.workspace_id, kind, subject_id)
    if kind is PauseSubject.AUTOMATION:
        await close_breaker(work, actor.workspace_id, subject_id, body.rate)
    if await pauses.resume(work, subject, body.rate):
        await _tell(work, actor, _RESUMED[kind], subject, rate=body.rate)


async def pause_connection(
    work: UnitOfWork, actor: Actor, connection_id: Id, body: PauseWork
) -> None:
    """Pause a connection that the actor sees. Raises NotFoundError."""
    if await connections.pause_connection(work, actor, connection_id, body.reason):
        facts = {"reason": body.reason} if body.reason else {}
        await _tell_of_connection(work, actor, EventType.CONNECTION_PAUSED, connection_id, facts)


async def resume_connection(
    work: UnitOfWork, actor: Actor, connection_id: Id, body: ResumeConnection
) -> None:
    """Resume a connection that the actor sees, at a rate or at once. Raises NotFoundError."""
    if await connections.resume_connection(work, actor, connection_id, body):
        facts = {"rate": body.rate} if body.rate else {}
        await _tell_of_connection(work, actor, EventType.CONNECTION_RESUMED, connection_id, facts)


async def _tell_of_connection(
    work: UnitOfWork, actor: Actor, event: EventType, connection_id: Id, facts: JsonObject
) -> None:
    # One that is not shared is seen by who made it alone, and so is the actor.
    everyone = await is_shared(work, actor.workspace_id, connection_id)
    data = {"connectionId": str(connection_id), **facts}
    audience = None if everyone else actor.user_id
    await append_event(
        work, actor.principal, actor.workspace_id, event, data, audience_user_id=audience
    )


async def _tell(
    work: UnitOfWork, actor: Actor, event: EventType, subject: Paused, **facts: str | int | None
) -> None:
    item_id = None
    if subject.kind is PauseSubject.AUTOMATION:
        item_id = await item_of_automation(work, subject.workspace_id, subject.subject_id)
    data = {f"{subject.kind}Id": str(subject.subject_id)} | {
        name: fact for name, fact in facts.items() if fact not in (None, "")
    }
    await append_event(work, actor.principal, actor.workspace_id, event, data, item_id=item_id)
