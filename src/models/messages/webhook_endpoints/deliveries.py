"""Deliveries for endpoints from the log of a workspace, and what their answers do (ADR 0057).

An endpoint remembers up to where the log became deliveries to it. One turn is one transaction:
deliveries and the new place are written together, so an event becomes one delivery for each
endpoint, after any crash.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import chain, takewhile
from typing import Protocol

import sqlalchemy as sa

from models.core.access.rules import MANAGERS
from models.core.base import Id, JsonObject
from models.messages.deliveries import commands
from models.messages.deliveries.rules import EXPIRED, DeliveryChannel
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.webhook_endpoints.rules import DISABLED, DisabledReason, is_given_up
from models.messages.webhook_endpoints.store import WebhookEndpoint, webhook_endpoint
from models.messages.workspace_events import log
from models.messages.workspace_events.rules import EventType
from models.people.members import members_with
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork, Work
from runtime.derived_ids import derived_id
from runtime.postgresql.statements import PreparedStatement

MOST_DELIVERIES = 500
"""Deliveries of one workspace in one turn: other work of the worker waits while it makes them."""
MOST_EXPIRED = 500
"""Events that one call ends because the log is about to forget them."""
MOST_WORKSPACES = 1_000
"""Workspaces that are looked at in one turn."""
MOST_OPEN = 1_000
"""Deliveries on their way to one endpoint. It gets no more until some have ended, so that an
endpoint that does not answer piles up places in the log, and not executions."""
MOST_FAILING = 50
"""The same while the circuit of the endpoint is not closed. The rest is made when it takes one."""
FIRST_WORKSPACE = Id(int=0)

_endpoint = webhook_endpoint.c

_lies_behind = _endpoint.enabled & log.has_grown(_endpoint.workspace_id, _endpoint.log_position)
ENDPOINTS_BEHIND = sa.exists(sa.select(_endpoint.id).where(_lies_behind))
_BEHIND = PreparedStatement(
    sa.select(_endpoint.workspace_id)
    .distinct()
    .where(
        _lies_behind,
        _endpoint.workspace_id > sa.bindparam("after", type_=sa.Uuid),
    )
    .order_by(_endpoint.workspace_id)
    .limit(MOST_WORKSPACES)
)


async def workspaces_behind(work: Work, after: Id = FIRST_WORKSPACE) -> Sequence[Id]:
    """The next workspaces with an endpoint that lies behind its log, in order."""
    return [row.workspace_id for row in await _BEHIND.rows(work, {"after": after})]


async def make_deliveries(work: UnitOfWork, workspace_id: Id) -> int:
    """Make deliveries of what endpoints have not been sent; returns the number of events looked at.

    Call it until it returns 0. Endpoints that another worker serves are left to it.
    """
    until = await log.head(work, workspace_id)
    statement = (
        sa.select(webhook_endpoint)
        .where(
            _endpoint.workspace_id == workspace_id,
            _endpoint.enabled,
            _endpoint.log_position < until,
            commands.has_room(
                _endpoint.workspace_id,
                DeliveryChannel.WEBHOOK,
                _endpoint.id,
                most=MOST_OPEN,
                most_failing=MOST_FAILING,
            ),
        )
        .order_by(_endpoint.id)
        .with_for_update(skip_locked=True)
    )
    endpoints = await work.rows(statement, of=WebhookEndpoint)
    if not endpoints:
        return 0
    events = await log.events_between(
        work,
        workspace_id,
        min(endpoint.log_position for endpoint in endpoints),
        until,
        types=list(EventType),
        user_ids=[],
        most=max(1, MOST_DELIVERIES // len(endpoints)),
    )
    if not events:
        return 0
    deliveries = (_deliveries(event, endpoints) for event in events)
    await commands.accept_deliveries(work, [*chain.from_iterable(deliveries)])
    await work.execute(
        sa.update(webhook_endpoint)
        .where(_endpoint.id.in_([one.id for one in endpoints]))
        .values(log_position=sa.func.greatest(_endpoint.log_position, events[-1].seq))
    )
    return len(events)


class WantedEvents(Protocol):
    """Events of one type about one item, if any, which an endpoint would be sent."""

    endpoint_id: Id
    type: str
    item_id: Id | None
    number: int


_OWN = _endpoint.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid), _endpoint.enabled
_TRIED = log.events_of_dry_run("workspace_id").subquery()
_WANTED = PreparedStatement(
    sa.select(_endpoint.id.label("endpoint_id"), _TRIED.c.type, _TRIED.c.item_id, _TRIED.c.number)
    .join(
        _TRIED,
        sa.or_(
            sa.func.cardinality(_endpoint.event_types) == 0,
            _TRIED.c.type == sa.func.any(_endpoint.event_types),
        ),
    )
    .where(*_OWN)
    .order_by(_endpoint.id),
    WantedEvents,
)


def has_endpoints(workspace_id: str) -> sa.ColumnElement[bool]:
    """True for a workspace, whose id the parameter of this name has, with an enabled endpoint."""
    own = _endpoint.workspace_id == sa.bindparam(workspace_id, type_=sa.Uuid)
    return sa.exists(sa.select(_endpoint.id).where(own, _endpoint.enabled))


async def wanted_events(work: UnitOfWork, workspace_id: Id) -> Sequence[WantedEvents]:
    """The events of this dry run that endpoints would be sent."""
    return await _WANTED.rows(work, {"workspace_id": workspace_id})


async def expire_untold(work: UnitOfWork, before: datetime, limit: int = MOST_EXPIRED) -> int:
    """End events that the log is about to forget, untold to an endpoint; returns their number.

    Each becomes a delivery that failed, so that its loss is seen. Call it until it returns 0.
    """
    old = log.has_grown(_endpoint.workspace_id, _endpoint.log_position, before)
    behind = sa.select(webhook_endpoint).where(_endpoint.enabled, old).limit(1)
    # Another process serves a locked endpoint at this moment.
    endpoint = await work.first(behind.with_for_update(skip_locked=True), of=WebhookEndpoint)
    if endpoint is None:
        return 0
    here, place = endpoint.workspace_id, endpoint.log_position
    until, types = await log.head(work, here), list(EventType)
    following = await log.events_between(
        work, here, place, until, types=types, user_ids=[], most=limit
    )
    events = list(takewhile(lambda event: event.at < before, following))
    if not events:
        return 0
    deliveries = [*chain.from_iterable(_deliveries(event, [endpoint]) for event in events)]
    await commands.accept_deliveries(work, deliveries)
    await commands.end_unsent(work, [one.id for one in deliveries], EXPIRED)
    this = sa.update(webhook_endpoint).where(_endpoint.id == endpoint.id)
    await work.execute(this.values(log_position=events[-1].seq))
    return len(events)


def payload_of(event: log.EventRow) -> JsonObject:
    """The body of a call about an event (Standard Webhooks: type, timestamp, data)."""
    actor = {"type": event.actor_type}
    if event.actor_user_id is not None:
        actor["userId"] = str(event.actor_user_id)
    return {
        "type": event.type,
        "timestamp": wire_timestamp(event.at),
        "workspaceId": str(event.workspace_id),
        "seq": event.seq,
        "actor": actor,
        "data": event.data,
    }


def _wants(endpoint: WebhookEndpoint, event: log.EventRow) -> bool:
    chosen = not endpoint.event_types or event.type in endpoint.event_types
    return chosen and event.seq > endpoint.log_position


def _deliveries(
    event: log.EventRow, endpoints: Sequence[WebhookEndpoint]
) -> list[commands.NewDelivery]:
    """The deliveries of an event to the endpoints among these that want it."""
    wanting = [endpoint for endpoint in endpoints if _wants(endpoint, event)]
    if not wanting:
        return []
    payload = payload_of(event)
    event_id = derived_id("workspace-event", event.workspace_id, event.seq)
    return [
        commands.NewDelivery(
            workspace_id=event.workspace_id,
            channel=DeliveryChannel.WEBHOOK,
            subject_id=event_id,
            target_id=endpoint.id,
            input=payload,
        )
        for endpoint in wanting
    ]


_WHY = {
    DisabledReason.GONE: "The endpoint returned 410 (Gone).",
    DisabledReason.FAILING: "All deliveries failed for three days.",
}


async def endpoint_succeeded(work: UnitOfWork, endpoint_id: Id) -> None:
    """The endpoint has taken an event."""
    failing = _endpoint.id == endpoint_id, _endpoint.failing_since.is_not(None)
    await work.execute(sa.update(webhook_endpoint).where(*failing).values(failing_since=None))


async def endpoint_failed(work: UnitOfWork, workspace_id: Id, endpoint_id: Id) -> None:
    """The endpoint has not taken an event; after days of that it is disabled."""
    since = await work.scalar(
        sa.update(webhook_endpoint)
        .where(_endpoint.id == endpoint_id, _endpoint.enabled)
        .values(failing_since=sa.func.coalesce(_endpoint.failing_since, work.now))
        .returning(_endpoint.failing_since)
    )
    if is_given_up(since, work.now):
        await disable_endpoint(work, workspace_id, endpoint_id, DisabledReason.FAILING)


async def disable_endpoint(
    work: UnitOfWork, workspace_id: Id, endpoint_id: Id, reason: DisabledReason
) -> None:
    """Disable an endpoint and notify owners and administrators, once; pending deliveries end."""
    enabled = _endpoint.id == endpoint_id, _endpoint.enabled
    url = await work.scalar(
        sa.update(webhook_endpoint)
        .where(*enabled)
        .values(enabled=False, disabled_at=work.now, disabled_reason=reason.value)
        .returning(_endpoint.url)
    )
    if url is None:
        return
    await commands.give_up_waiting(
        work, workspace_id, DeliveryChannel.WEBHOOK, endpoint_id, DISABLED
    )
    notice = Notice(
        kind=NotificationKind.SYSTEM,
        title="Webhook endpoint disabled",
        body=_WHY[reason],
        data={"webhookEndpointId": str(endpoint_id), "reason": reason.value},
        key=f"webhook-endpoint|{endpoint_id}|{work.now.isoformat()}",
    )
    managers = [
        user_id
        for role in sorted(MANAGERS)
        for user_id in await members_with(work, workspace_id, role)
    ]
    await notify(work, workspace_id, managers, notice)
