"""The engine as a test drives it: commands in, rows out, real workers and Temporal in between."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

from sqlalchemy import select
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from activities.automation_runs.nodes.effects import RecordNodes
from activities.automation_runs.runs import GraphCache, RunCache
from activities.automation_runs.transactions import AutomationRunActivities
from activities.deliveries.push import WebPush
from activities.outbox.relay import RunStarts
from activities.parts import Parts, Periods
from cli.deploy.versioning import WorkerVersion, default_build
from cli.work_handlers.registry import MAINTENANCE_SCHEDULES
from cli.worker_process import running_workers
from models.automation.automation_runs import commands as runs
from models.automation.automation_runs import queries as run_queries
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.shapes import (
    AutomationRunDetail,
    RunFromNode,
    RunNow,
    TestRun,
)
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import commands as automations
from models.automation.automations.shapes import (
    AutomationDetail,
    CreateAutomation,
    PublishAutomation,
    UpdateAutomation,
)
from models.automation.waits.queries import show_waits
from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.push_devices import PushProvider
from runtime.configuration.sections import MailServer, ProviderSettings
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient
from runtime.outbound_policy import OutboundPolicy
from runtime.temporal.outbox import Intent, outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.browsers import VAPID
from tests.support.hang_report import report_tasks
from tests.support.patience import ENOUGH, eventually, found_when
from tests.support.spaces import MASTER_SECRET, make_space

KEYS = KeyRing([MASTER_SECRET])
PUBLIC_URL = "https://platform.test"
"""Where people reach the console."""
PERIODS = Periods(
    trash=timedelta(days=30), request_logs=timedelta(days=30), runs=timedelta(days=90)
)
RUN_LIMIT = timedelta(days=30)
RUNNING_CAP = 200
RETENTION = WorkflowKind.RETENTION.workflow_id("sweep")
"""The id of the schedule that removes what is past its time."""

VERSION = WorkerVersion("workspace", default_build())
"""The version of the workers of every engine, as those of a process have it by default."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Engine:
    """Commands of one workspace against running workers."""

    database: Database
    client: Client
    actor: Actor
    store: ObjectStore = field(default_factory=lambda: ObjectStore("memory://"))

    async def publish(self, graph: Json, **fields: Any) -> AutomationDetail:
        """A published, enabled automation with this graph."""
        body = CreateAutomation.model_validate(
            {"label": "Test", "enabled": True, "graph": graph, **fields}
        )
        async with self.database.transaction() as work:
            created = await automations.create_automation(work, self.actor, KEYS, body)
        async with self.database.transaction() as work:
            return await automations.publish(
                work, self.actor, KEYS, created.id, PublishAutomation.model_validate({})
            )

    async def draft(self, graph: Json, **fields: Any) -> Id:
        """The id of an automation with this graph as its draft; never published, disabled."""
        body = CreateAutomation.model_validate({"label": "Test", "graph": graph, **fields})
        async with self.database.transaction() as work:
            return (await automations.create_automation(work, self.actor, KEYS, body)).id

    async def change(self, automation_id: Id, **fields: Any) -> AutomationDetail:
        """Update an automation; a graph goes to its draft."""
        body = UpdateAutomation.model_validate(fields)
        async with self.database.transaction() as work:
            return await automations.update_automation(work, self.actor, KEYS, automation_id, body)

    async def start(self, automation_id: Id, payload: Json | None = None) -> Id:
        """Accept a run of the published version."""
        async with self.database.transaction() as work:
            return (await self.accept(work, automation_id, payload)).id

    async def accept(
        self, work: UnitOfWork, automation_id: Id, payload: Json | None = None
    ) -> AutomationRunDetail:
        """Accept a run inside the caller's transaction."""
        body = RunNow.model_validate({"triggerPayload": payload})
        return await runs.run_now(work, self.actor, automation_id, body)

    async def test(self, automation_id: Id, **body: Any) -> AutomationRunDetail:
        """Test-run and wait for the end."""
        async with self.database.transaction() as work:
            run = await runs.test_run(work, self.actor, automation_id, TestRun.model_validate(body))
        return await self.ended(automation_id, run.id)

    async def from_node(self, automation_id: Id, **body: Any) -> AutomationRunDetail:
        """Run from a node and wait for the end."""
        async with self.database.transaction() as work:
            run = await runs.run_from_node(
                work, self.actor, automation_id, RunFromNode.model_validate(body)
            )
        return await self.ended(automation_id, run.id)

    async def cancel(self, automation_id: Id, run_id: Id) -> AutomationRunDetail:
        async with self.database.transaction() as work:
            return await self.cancel_within(work, automation_id, run_id)

    async def cancel_within(
        self, work: UnitOfWork, automation_id: Id, run_id: Id
    ) -> AutomationRunDetail:
        """Cancel inside the caller's transaction."""
        run = await runs.cancel(work, self.actor, automation_id, run_id)
        await show_waits(work, self.actor, run.node_runs)
        return run

    async def get(self, automation_id: Id, run_id: Id) -> AutomationRunDetail:
        async with self.database.snapshot() as work:
            run = await run_queries.detail(work, self.actor, automation_id, run_id)
            await show_waits(work, self.actor, run.node_runs)
            return run

    async def ended(self, automation_id: Id, run_id: Id) -> AutomationRunDetail:
        """The run once it has ended, as our own rows say; fails when it takes too long."""
        await eventually(partial(self._has_ended, run_id), what="the end of the run")
        return await self.get(automation_id, run_id)

    async def _has_ended(self, run_id: Id) -> bool:
        """Asked over and over: reading the whole run takes ten times as long."""
        async with self.database.reading() as work:
            status = select(automation_run.c.status).where(automation_run.c.id == run_id)
            return await work.scalar(status) not in OPEN_RUN

    async def until(self, automation_id: Id, run_id: Id, condition: Any) -> AutomationRunDetail:
        """The run once it satisfies `condition`."""
        return await found_when(partial(self.get, automation_id, run_id), condition)

    async def completed_tasks(self, run_id: Id, count: int = 1) -> list[int]:
        """The events that ended workflow tasks of a run, once there are this number.

        A row says that its run waits within a task, which may end later.
        """
        handle = self.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
        completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED

        async def events() -> list[int]:
            history = await handle.fetch_history()
            return [one.event_id for one in history.events if one.event_type == completed]

        return await found_when(events, lambda found: len(found) >= count, what="a task's end")

    async def run(
        self, graph: Json, payload: Json | None = None, **fields: Any
    ) -> AutomationRunDetail:
        """Publish, run, wait."""
        automation = await self.publish(graph, **fields)
        return await self.ended(automation.id, await self.start(automation.id, payload))

    async def delivered(self, workflow_kind: WorkflowKind) -> None:
        """Wait until the outbox holds no start of a kind: a sweep leaves what it may start."""

        async def is_delivered() -> bool:
            async with self.database.transaction() as work:
                starts = select(outbox.c.id).where(
                    outbox.c.intent == Intent.START, outbox.c.workflow_kind == workflow_kind
                )
                return await work.first(starts) is None

        await eventually(is_delivered, what="the delivery of all starts")

    async def open_runs(self) -> Sequence[Any]:
        async with self.database.transaction() as work:
            return await work.rows(
                select(automation_run.c.id).where(
                    automation_run.c.workspace_id == self.actor.workspace_id,
                    automation_run.c.status.in_(OPEN_RUN),
                )
            )


@asynccontextmanager
async def running_engine(
    database: Database,
    url: str,
    client: Client,
    allow: Sequence[str] = ("127.0.0.0/8",),
    store: str = "memory://",
    mail: MailServer | None = None,
    run_limit: timedelta = timedelta(days=30),
    providers: Mapping[str, ProviderSettings] = MappingProxyType({}),
) -> AsyncIterator[Engine]:
    """Workers, relay and an actor of a fresh workspace, until the block ends."""
    policy = OutboundPolicy.from_entries(allow)
    async with OutboundClient(policy) as outbound:
        post = None if mail is None else MailClient(mail, policy)
        objects = ObjectStore(store)
        parts = Parts(
            database,
            client,
            outbound,
            KEYS,
            objects,
            PERIODS,
            RUNNING_CAP,
            post,
            run_limit,
            providers=providers,
            pushers={PushProvider.WEBPUSH: WebPush(outbound, VAPID)},
            public_url=PUBLIC_URL,
        )
        workers = AsyncExitStack()
        await workers.enter_async_context(running_workers(parts, VERSION, url))
        try:
            # What tests make old, or break, stays so until one of them asks for the sweep.
            for swept in MAINTENANCE_SCHEDULES:
                await client.get_schedule_handle(swept.schedule_id).pause()
            actor = (await make_space(database, KEYS)).actor
            yield Engine(database, client, actor, objects)
        finally:
            await _stop(workers)


async def _stop(workers: AsyncExitStack) -> None:
    """Stop workers. Those that do not end are left, as a process of ours cuts off what remains.

    A worker of the SDK that has failed may wait for ever for its local activities.
    """
    stopping = asyncio.create_task(workers.aclose())
    await asyncio.wait({stopping}, timeout=ENOUGH)
    if stopping.done():
        stopping.result()
    else:
        report_tasks("The stop of workers", ENOUGH)


def separate_worker(engine: Engine, starts: RunStarts | None = None) -> AutomationRunActivities:
    """The activities as a process of their own would hold them: nothing shared but PostgreSQL.

    `starts` are those that its relay has made.
    """
    cache = RunCache(engine.database, GraphCache())
    writes = RecordNodes(KEYS).transactions()
    return AutomationRunActivities(engine.database, cache, writes, starts or RunStarts(), RUN_LIMIT)


def graph(*nodes: Json, edges: Sequence[Any] = ()) -> Json:
    """A graph of nodes given as keywords and edges as (from, to[, outcome[, caseKey]])."""
    return {
        "nodes": list(nodes),
        "edges": [
            {
                "from": edge[0],
                "to": edge[1],
                **({"outcome": edge[2]} if len(edge) > 2 else {}),
                **({"caseKey": edge[3]} if len(edge) > 3 else {}),
            }
            for edge in edges
        ],
    }


def node(id_: str, kind: str, /, **fields: Any) -> Json:
    """A node; keywords that are no node fields make up its config."""
    own = {"label", "retry", "timeoutSeconds", "disabled", "mock", "input"}
    config = {key: value for key, value in fields.items() if key not in own}
    return {
        "id": id_,
        "kind": kind,
        "config": config,
        **{key: value for key, value in fields.items() if key in own},
    }


def by_node(run: AutomationRunDetail) -> dict[str, Any]:
    """Node runs by node id."""
    return {node_run.node_id: node_run for node_run in run.node_runs}
