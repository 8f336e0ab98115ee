"""Work that ends its workers continues in quarantine, and fails when it ends that too (ADR 0035).

Every activity of durable work passes here. Nothing is done for work that is not suspected.
"""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import structlog
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from typing_extensions import override

from activities.maintenance.work_handlers import AbnormalEnd, EndKind, SweepContext, WorkHandler
from activities.turns import turn
from models.core.base import Id
from models.core.lifecycle import lost_workers
from runtime.database import Database
from runtime.ids import parse_id
from runtime.processes.exit_codes import end_of, ended_by_itself
from runtime.temporal.executions import execution_of

log = structlog.get_logger()

ALONE_SECONDS = 15
"""Seconds for which the beginning of an activity keeps other suspects waiting."""
REFRESH_SECONDS = 3
"""Another worker takes over what a lost one did after five."""


class QuarantineDeathError(Exception):
    """The quarantine ended with this code at this step."""

    retryable = True

    def __init__(self, step: str, code: int) -> None:
        super().__init__(step, code)
        self.step = step
        self.code = code

    @property
    def reason(self) -> str:
        """The error in the row of the work."""
        end = end_of(self.code)
        workers = lost_workers.MOST_LOST
        return f"{self.step} crashed {workers} workers, and then the quarantine: {end}."


class Quarantine(Protocol):
    """A process apart that executes an activity. Raises QuarantineDeathError when it ends."""

    async def execute(self, call: ExecuteActivityInput) -> object:
        """Return or raise what the activity does there."""
        ...


class Suspects:
    """The suspects that a worker process knows of, and the turn they take in it."""

    def __init__(
        self,
        database: Database,
        handlers: Sequence[WorkHandler[Any]],
        client: Client,
        quarantine: Quarantine,
    ) -> None:
        self._database = database
        self._handlers = {name.value: handler for handler in handlers for name in handler.workflows}
        self._context = SweepContext(database, client, timedelta())
        self._quarantine = quarantine
        self._host = socket.gethostname()
        self._known: Mapping[Id, bool] = {}
        """Suspects, and which are quarantined."""
        self._unreported: set[Id] = set()
        self._turn = asyncio.Lock()

    async def begin(self, predecessor: int | None) -> None:
        """Suspect the open work, before the workers of the process start.

        Suspects nothing after a worker that was ended from outside: its work is not the cause.
        """
        handlers = {handler.name: handler for handler in self._handlers.values()}.values()
        guilty = ended_by_itself(predecessor)
        if guilty and predecessor is not None:
            log.error("the worker before this one died of itself", end=end_of(predecessor))
        async with self._database.transaction() as work:
            await lost_workers.settle_suspects(work, self._host, guilty=guilty)
            if guilty:
                await lost_workers.suspect_work(
                    work, [(each.kind, each.rows()) for each in handlers]
                )
            self._known = await lost_workers.suspected_work(work)

    async def run(self) -> None:
        """Learn for ever of what other processes suspect."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            if self._unreported:
                await self._report()
            try:
                async with self._database.statement() as work:
                    self._known = await lost_workers.suspected_work(work)
            except Exception:  # noqa: BLE001  # the database is away: its users say so
                log.warning("suspects could not be read")

    async def execute(self, call: ExecuteActivityInput, here: ActivityInboundInterceptor) -> object:
        """Execute an activity, that of a suspect while no other suspect's begins."""
        info = activity.info()
        handler, work_id = self._work_of(execution_of(info))
        if handler is None or work_id is None or work_id not in self._known:
            return await here.execute_activity(call)
        if not self._known[work_id]:
            async with turn(self._turn, "Other suspected work is starting."):
                async with self._database.transaction() as work:
                    holder = f"{self._host}:{os.getpid()}"
                    trusted = await lost_workers.begin_alone(work, work_id, holder)
                if trusted:
                    executing = asyncio.ensure_future(here.execute_activity(call))
                    await self._watch(work_id, executing)
            if trusted:
                return await executing
            # This process has just learned it; the next refresh is seconds away.
            self._known = {**self._known, work_id: True}
            log.error("work continues in quarantine", id=str(work_id), handler=handler.name)
        return await self._apart(call, handler, work_id)

    async def _watch(self, work_id: Id, executing: "asyncio.Future[Any]") -> None:
        try:
            await asyncio.wait({executing}, timeout=ALONE_SECONDS)
        except asyncio.CancelledError:
            # A task is not cancelled with the wait for it.
            executing.cancel()
        self._unreported.add(work_id)
        await self._report()

    async def _report(self) -> None:
        """Remove the suspicions of work that did not end this process; retried later after an
        error.
        """
        # Others may be added while these are written.
        reported = sorted(self._unreported)
        try:
            async with self._database.transaction() as work:
                for work_id in reported:
                    await lost_workers.report_alive(work, work_id)
        except Exception:  # noqa: BLE001  # the database is away: its users say so
            log.warning("suspects could not be cleared")
        else:
            self._unreported.difference_update(reported)

    async def _apart(
        self, call: ExecuteActivityInput, handler: WorkHandler[Any], id_: Id
    ) -> object:
        try:
            return await self._quarantine.execute(call)
        except QuarantineDeathError as death:
            if not ended_by_itself(death.code):
                raise ApplicationError("The quarantine was stopped.", type="interrupted") from None
            await self._fail(handler, id_, death.reason)
            raise ApplicationError(death.reason, type="lethal", non_retryable=True) from None

    def _work_of(self, execution: str) -> tuple[WorkHandler[Any] | None, Id | None]:
        """An id is `<workflow kind>/<row id>`, and below it are the parts of a run's long loops."""
        name, _, rest = execution.partition("/")
        return self._handlers.get(name), parse_id(rest.partition("/")[0])

    async def _fail(self, handler: WorkHandler[Any], work_id: Id, reason: str) -> None:
        """Fail the work; its execution then fails with the activity, as its row has."""
        log.error("work failed in quarantine", id=str(work_id), handler=handler.name, reason=reason)
        async with self._database.transaction() as work:
            statement = handler.rows().where(handler.kind.table.c.id == work_id)
            row = await work.first(statement, of=handler.row)
        if row is not None:
            await handler.close(self._context, row, AbnormalEnd(EndKind.FAILED, reason))
        async with self._database.transaction() as work:
            await lost_workers.clear_suspicion(work, work_id)
        self._known = {id_: known for id_, known in self._known.items() if id_ != work_id}


class SuspectInterceptor(Interceptor):
    """Lets every activity of a worker pass through its `Suspects`."""

    def __init__(self, known: Suspects) -> None:
        self._known = known

    @override
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Passing(next, self._known)


class _Passing(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, known: Suspects) -> None:
        super().__init__(following)
        self._known = known

    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await self._known.execute(input, self.next)
