"""Sends the clients of a workspace who else is connected to it, in this process or another."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress

import structlog

from api.realtime.hub import Hub
from api.realtime.messages import Message
from models.core.base import Id
from models.messages.presence.commands import REPORT_SECONDS, report_presence
from models.messages.presence.queries import present_in
from models.messages.workspace_events.rules import EventType
from runtime.database import Database
from runtime.ids import new_id
from runtime.telemetry import describe

log = structlog.get_logger()

PAUSE_SECONDS = 0.2
"""The pause in which arrivals and departures are gathered and published together."""
MOST_NAMED = 100


class Presence:
    """Says who is connected here, and hears who is elsewhere."""

    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._hub = hub
        self._process_id = new_id()
        self._reported: frozenset[tuple[Id, Id]] = frozenset()
        self._published: Mapping[Id, frozenset[Id]] = {}

    async def run(self) -> None:
        """Report and publish until it is cancelled."""
        while True:
            try:
                await self._turn()
            except Exception as error:  # noqa: BLE001  # the next turn may go well
                log.warning("presence_not_published", **describe(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hub.presence_due.wait(), REPORT_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)
            self._hub.presence_due.clear()

    async def _turn(self) -> None:
        here = self._hub.present()
        changed_places = {place for place, _ in here ^ self._reported}
        places = {place for place, _ in here}
        if here or self._reported:
            async with self._database.transaction() as work:
                await report_presence(work, self._process_id, here)
                present = await present_in(work, places)
            self._reported = here
            self._database.notify_readers(
                {f"{self._hub.PRESENCE}{place}" for place in changed_places}
            )
            self._publish(present)

    def _publish(self, present: Mapping[Id, Collection[Id]]) -> None:
        for place, users in present.items():
            now = frozenset(users)
            newcomers_only = now == self._published.get(place)
            message = _message(now)
            for feed in self._hub.feeds_of(place):
                may = EventType.MEMBER_ADDED in feed.viewer.types
                if may and not (newcomers_only and feed.knows_presence):
                    feed.knows_presence = True
                    feed.offer([message])
        self._published = {place: frozenset(users) for place, users in present.items()}


def _message(users: Collection[Id]) -> Message:
    named = [str(one) for one in sorted(users)[:MOST_NAMED]]
    return Message.of({"type": "presence", "count": len(users), "userIds": named})
