"""The relay: delivers the outbox to Temporal, fairly between workspaces (design sections 1 and 3).

Any number of relays may run. A row is claimed, delivered, then deleted; a relay that dies in
between leaves a claim that expires, and the repeated delivery is absorbed by the workflow id.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import structlog
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Integer,
    Interval,
    UpdateBase,
    bindparam,
    delete,
    func,
    select,
    update,
)
from temporalio.client import Client
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from models.automation_runs.rules import RunStatus
from models.automation_runs.tables import automation_run
from runtime.database import Database
from runtime.families import Family, SearchAttribute
from runtime.outbox import CHANNEL, Intent, outbox
from runtime.prepared import Prepared
from runtime.trigger_points import Point, reach

log = structlog.get_logger()

BATCH = 20
"""Rows claimed at once, and so the starts under way at once."""
CLAIM = timedelta(seconds=10)
"""How long a claim holds if its relay never comes back."""
POLL_SECONDS = 1.0
"""The fallback when a notification was lost."""
LONGEST_BACKOFF = timedelta(seconds=5)
START_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Route:
    """How a family is started: its workflow by type name, and the queue of its workflow tasks."""

    workflow: str
    task_queue: str


class Relay:
    """Delivers until stopped; `wake` makes it look at once."""

    def __init__(
        self,
        database: Database,
        client: Client,
        routes: Mapping[Family, Route],
        *,
        running_cap: int = 200,
    ) -> None:
        self._database = database
        self._client = client
        self._routes = routes
        self._running_cap = running_cap
        self._wake = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._delivered: list[int] = []

    def wake(self) -> None:
        """Look for new rows now."""
        self._wake.set()

    async def run(self) -> None:
        """Claim and deliver for ever; an unreachable database or Temporal only delays delivery."""
        while True:
            self._wake.clear()
            room = BATCH - len(self._under_way)
            claimed = await self._claim(room)
            for row in claimed:
                task = asyncio.create_task(self._deliver(row))
                self._under_way.add(task)
                task.add_done_callback(self._done)
            if len(claimed) < room or len(self._under_way) >= BATCH:
                # wait_for swallows a cancel that meets a wake-up, until Python 3.12 (gh-86296).
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._wake.set()

    async def _claim(self, limit: int) -> Sequence[Any]:
        """Delete what was delivered since the last time, and claim what is next."""
        delivered, self._delivered = self._delivered, []
        parameters = {"limit": limit, "cap": self._running_cap, "delivered": delivered}
        try:
            async with self._database.statement() as work:
                return await _CLAIM.rows(work, parameters)
        except psycopg.Error:
            log.warning("the outbox could not be read", exc_info=True)
            self._delivered += delivered
            await asyncio.sleep(POLL_SECONDS)
            return []

    async def _deliver(self, row: Any) -> None:
        try:
            if row.intent == Intent.START:
                reach(Point.AFTER_COMMIT_BEFORE_START, row.subject_id)
                await self._start(row)
                reach(Point.AFTER_START_BEFORE_MARK, row.subject_id)
            else:
                await self._cancel(row)
        except RPCError as error:
            log.warning("Temporal did not take an intent", id=row.id, code=error.status.name)
            await self._put_back(row)
        except Exception:
            log.exception("an intent could not be delivered", id=row.id)
            await self._put_back(row)
        else:
            self._delivered.append(row.id)

    async def _put_back(self, row: Any) -> None:
        backoff = min(LONGEST_BACKOFF, timedelta(seconds=0.1 * 2 ** min(row.attempts, 10)))
        # Without this the claim itself runs out, only later.
        with contextlib.suppress(psycopg.Error):
            async with self._database.statement() as work:
                await _PUT_BACK.execute(work, {"row_id": row.id, "backoff": backoff})

    async def _start(self, row: Any) -> None:
        family = Family(row.family)
        route = self._routes[family]
        facts = row.facts
        with contextlib.suppress(WorkflowAlreadyStartedError):
            await self._client.start_workflow(
                route.workflow,
                str(row.subject_id),
                id=family.workflow_id(row.subject_id),
                task_queue=route.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                request_eager_start=True,
                static_summary=facts.get("summary"),
                priority=Priority(
                    priority_key=facts.get("priority", 3), fairness_key=str(row.workspace_id)
                ),
                search_attributes=_search_attributes(row, family),
                rpc_timeout=START_TIMEOUT,
            )

    async def _cancel(self, row: Any) -> None:
        handle = self._client.get_workflow_handle(Family(row.family).workflow_id(row.subject_id))
        try:
            await handle.cancel(rpc_timeout=START_TIMEOUT)
        except RPCError as error:
            # Never started or already ended: there is nothing to cancel.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise


async def listen(url: str, wake: Callable[[], None]) -> None:
    """Wake a relay on every NOTIFY of the outbox, reconnecting for ever."""
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                async for _ in connection.notifies():
                    wake()
        except psycopg.OperationalError:
            log.warning("the outbox listener lost its connection")
            await asyncio.sleep(POLL_SECONDS)


def _claim_statement() -> UpdateBase:
    """Delete what was delivered; claim what is next, one row per workspace in turn.

    Cancels go before starts, and no workspace past the running cap starts more.
    """
    running = (
        select(automation_run.c.workspace_id)
        .where(automation_run.c.status == RunStatus.RUNNING)
        .group_by(automation_run.c.workspace_id)
        .having(func.count() >= bindparam("cap", type_=Integer))
    )
    turn = func.row_number().over(
        partition_by=(outbox.c.workspace_id, outbox.c.intent), order_by=outbox.c.id
    )
    due = (
        select(outbox.c.id, outbox.c.intent, turn.label("turn"))
        .where(
            (outbox.c.claimed_until.is_(None)) | (outbox.c.claimed_until < func.now()),
            (outbox.c.intent != Intent.START) | outbox.c.workspace_id.not_in(running),
        )
        .subquery()
    )
    next_rows = (
        select(outbox.c.id)
        .join(due, due.c.id == outbox.c.id)
        .order_by(due.c.intent, due.c.turn, outbox.c.id)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(of=outbox, skip_locked=True)
    )
    delivered = delete(outbox).where(
        outbox.c.id == func.any(bindparam("delivered", type_=ARRAY(BigInteger)))
    )
    return (
        update(outbox)
        .where(outbox.c.id.in_(next_rows))
        .values(claimed_until=func.now() + CLAIM, attempts=outbox.c.attempts + 1)
        .returning(*outbox.c)
        .add_cte(delivered.cte("delivered"))
    )


_CLAIM = Prepared(_claim_statement())
_PUT_BACK = Prepared(
    update(outbox)
    .where(outbox.c.id == bindparam("row_id"))
    .values(claimed_until=func.now() + bindparam("backoff", type_=Interval))
)


def _search_attributes(row: Any, family: Family) -> TypedSearchAttributes:
    values = {
        SearchAttribute.WORKSPACE_ID: str(row.workspace_id),
        SearchAttribute.RESOURCE_ID: row.facts.get("resourceId"),
        SearchAttribute.RUN_KIND: family.value,
        SearchAttribute.RUN_SOURCE: row.facts.get("source"),
    }
    return TypedSearchAttributes(
        [
            SearchAttributePair(SearchAttributeKey.for_keyword(name), value)
            for name, value in values.items()
            if value is not None
        ]
    )
