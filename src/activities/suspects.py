"""The poison pill: work that ends every worker that executes it is failed (promise I7).

Every activity of every family passes here. Nothing is done for work that is not suspected.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import structlog
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from typing_extensions import override

from activities.maintenance.families import AbnormalEnd, EndKind, SweepContext, WorkFamily
from models.core.base import Id
from models.core.lifecycle import suspects
from runtime.database import Database
from runtime.ids import parse_id

log = structlog.get_logger()

ALONE_SECONDS = 15
"""How long the beginning of an activity keeps other suspects waiting."""
REFRESH_SECONDS = 3
"""Another worker takes over what a lost one did after five."""
_BEAT_SECONDS = 2

REASON = f"Its worker was lost {suspects.MOST_LOST} times while it was executed."


class Suspects:
    """The suspects that a worker process knows of, and the turn they take in it."""

    def __init__(
        self, database: Database, client: Client, families: Sequence[WorkFamily[Any]]
    ) -> None:
        self._database = database
        self._context = SweepContext(database, client, timedelta())
        self._families = {value.value: family for family in families for value in family.families}
        self._known: frozenset[Id] = frozenset()
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        """Suspect what is open now; before the workers of the process start."""
        kinds = {family.name: family.kind for family in self._families.values()}
        async with self._database.transaction() as work:
            await suspects.suspect(work, kinds.values())
            self._known = await suspects.suspected(work)

    async def run(self) -> None:
        """Learn for ever of what other processes suspect."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                async with self._database.transaction() as work:
                    self._known = await suspects.suspected(work)
            except Exception:  # noqa: BLE001  # the database is away: its users say so
                log.warning("suspects could not be read")

    async def execute(self, execution: Callable[[], Awaitable[Any]]) -> Any:
        """Execute an activity; that of a suspect begins while no other suspect's does."""
        info = activity.info()
        family, work_id = self._work_of(info.workflow_id or "")
        if family is None or work_id not in self._known:
            return await execution()
        async with self._alone():
            async with self._database.transaction() as work:
                trusted = await suspects.begin_alone(work, work_id)
            if not trusted:
                await self._stop(family, work_id, info.workflow_id or "")
                raise ApplicationError(REASON, type="lethal", non_retryable=True)
            executing = asyncio.ensure_future(execution())
            try:
                await asyncio.wait({executing}, timeout=ALONE_SECONDS)
            except asyncio.CancelledError:
                executing.cancel()
            finally:
                async with self._database.transaction() as work:
                    await suspects.report(work, work_id)
        return await executing

    def _work_of(self, workflow_id: str) -> tuple[WorkFamily[Any] | None, Id | None]:
        """An id is `<family>/<row id>`, and below it are the parts of a run's long loops."""
        name, _, rest = workflow_id.partition("/")
        return self._families.get(name), parse_id(rest.partition("/")[0])

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        while True:
            try:
                await asyncio.wait_for(self._turn.acquire(), _BEAT_SECONDS)
                break
            except TimeoutError:
                if not activity.info().is_local:
                    activity.heartbeat()
        try:
            yield
        finally:
            self._turn.release()

    async def _stop(self, family: WorkFamily[Any], work_id: Id, workflow_id: str) -> None:
        """Fail the work, and have nobody execute it again."""
        log.error("work was stopped that ends its workers", id=str(work_id), family=family.name)
        async with self._database.transaction() as work:
            statement = family.rows().where(family.kind.table.c.id == work_id)
            row = await work.first(statement, of=family.row)
        if row is None:
            return
        await family.close(self._context, row, AbnormalEnd(EndKind.FAILED, REASON))
        for each in dict.fromkeys((workflow_id, family.workflow_id(row))):
            try:
                # To cancel it would take a worker.
                await self._context.client.get_workflow_handle(each).terminate(reason=REASON)
            except RPCError:
                log.warning("an execution could not be terminated", workflow=each)


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
        return await self._known.execute(lambda: self.next.execute_activity(input))
