"""The database of scenarios, what it remembers of every change, and the processes around it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast
from uuid import UUID

import psycopg

from activities.endings import CalledRunActivities, EndingActivities
from activities.maintenance.reconciler import Reconciler
from activities.outbox.claims import Limits
from activities.outbox.relay import ExecutionDeliveries, Relay
from activities.parts import Parts
from activities.pollers import PausePoller
from activities.schedules import ScheduleFires
from cli.work_handlers.registry import routes_of
from cli.work_handlers.runs import AutomationRuns
from models.automation.automation_runs.tables import AUTOMATION_RUNS
from models.core.base import Id
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from runtime.database import libpq_url
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from runtime.temporal.outbox import Intent, Outbox
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from tests.simulation.processes import LOCKED_SECONDS, Clock, SteppedDatabase, Task
from tests.simulation.temporal import Client, Server
from tests.simulation.workers import Worker
from tests.support.engine import KEYS, PERIODS, RUN_LIMIT, Engine, graph, node
from tests.support.spaces import Space, make_space
from workflows.automation_runs.automation_run import AutomationRun
from workflows.schedules import ScheduleFire

ROOM = 2
"""Runs under way in a workspace, above which no more start."""

_WATCHED = """
CREATE SCHEMA simulation;
CREATE TABLE simulation.clock (moment timestamptz);
INSERT INTO simulation.clock VALUES (to_timestamp(0));
CREATE FUNCTION simulation.now() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT moment FROM simulation.clock';
CREATE FUNCTION simulation.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT moment FROM simulation.clock';
CREATE TABLE simulation.change (
    number bigserial, transaction xid8 DEFAULT pg_current_xact_id(), kind text, id uuid,
    before text, after text, facts jsonb);
CREATE FUNCTION simulation.run_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO simulation.change (kind, id, before, after, facts)
    VALUES ('run', NEW.id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status,
        jsonb_build_object('automation', NEW.automation_id, 'key', NEW.concurrency_key,
            'test', NEW.source = 'test' OR NEW.options ? 'test',
            'admitted', NEW.admitted_at IS NOT NULL));
    RETURN NULL;
END $$;
CREATE FUNCTION simulation.node_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO simulation.change (kind, id, before, after, facts)
    VALUES ('node', NEW.run_id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status,
        jsonb_build_object('node', NEW.node_id));
    RETURN NULL;
END $$;
CREATE FUNCTION simulation.pause_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed pause := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO simulation.change (kind, id, after, facts)
    VALUES ('pause', changed.subject_id,
        CASE WHEN TG_OP = 'DELETE' OR changed.resumed_at IS NOT NULL THEN 'over' ELSE 'on' END,
        '{}');
    RETURN NULL;
END $$;
CREATE FUNCTION simulation.pause_committed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO simulation.change (kind, id, after, facts)
    SELECT 'left', subject_id, 'in line', '{}' FROM outbox
    WHERE NEW.resumed_at IS NULL AND intent = 'start' AND attempts = 0
        AND NOT request ? 'restarts' AND request ->> 'source' <> 'test'
        AND NEW.subject_id IN (workspace_id, (request ->> 'resourceId')::uuid);
    RETURN NULL;
END $$;
CREATE FUNCTION simulation.rest_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed resting_intent := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO simulation.change (kind, id, after, facts)
    SELECT 'rest', changed.work_id, CASE WHEN TG_OP = 'DELETE' THEN 'over' ELSE 'rests' END,
        jsonb_build_object('subjects', changed.subject_ids,
            'open', EXISTS (SELECT FROM automation_run WHERE id = changed.work_id
                AND status = 'queued'))
    WHERE changed.intent = 'start';
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER simulation_committed AFTER INSERT OR UPDATE ON pause
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION simulation.pause_committed();
CREATE TRIGGER simulation AFTER INSERT OR UPDATE OF status, admitted_at ON automation_run
    FOR EACH ROW EXECUTE FUNCTION simulation.run_changed();
CREATE TRIGGER simulation AFTER INSERT OR UPDATE OF status ON node_run
    FOR EACH ROW EXECUTE FUNCTION simulation.node_changed();
CREATE TRIGGER simulation AFTER INSERT OR UPDATE OR DELETE ON pause
    FOR EACH ROW EXECUTE FUNCTION simulation.pause_changed();
CREATE TRIGGER simulation AFTER INSERT OR DELETE ON resting_intent
    FOR EACH ROW EXECUTE FUNCTION simulation.rest_changed();
"""

_CHANGED = (
    "simulation.change",
    "outbox",
    "resting_intent",
    "pause",
    "circuit_breaker",
    "run_wait",
    "suspended_execution",
    "node_run_attempt",
    "node_run",
    "trigger_event",
    "notification",
    "ungrouped_failure",
    "ended_run",
    "automation_run",
    "record_change",
    "record",
    "record_count",
    "workspace_event",
)
"""The tables that scenarios write to."""
VACUUMED_AFTER = 100
"""Scenarios whose removed rows are left in the tables, and read past by later ones."""

_CLEARED = """
CREATE FUNCTION simulation.clear() RETURNS void SET session_replication_role = replica
    LANGUAGE plpgsql AS $$ BEGIN {} END $$
""".format("".join(map("DELETE FROM {}; ".format, _CHANGED)))

_SETTINGS = (
    "search_path = simulation, pg_catalog, public",
    "synchronous_commit = off",
    # Planning takes longer than executing here.
    "plan_cache_mode = force_generic_plan",
    f"lock_timeout = ''{LOCKED_SECONDS}s''",
)
"""Of every connection to the database of scenarios."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a row; those of one transaction are seen together."""

    number: int
    transaction: int
    kind: str
    id: UUID
    before: str | None
    after: str
    facts: dict[str, Any]


class Process:
    """A worker: it relays, executes workflow tasks, sweeps and attends to pauses."""

    def __init__(self, name: str, world: "World", server: Server) -> None:
        self.name = name
        self.tasks: list[Task] = []
        self.delivering = 0
        client = cast("Any", Client(server))
        parts = Parts(
            world.database, client, world.outbound, KEYS, world.store, PERIODS, ROOM,
            run_limit=RUN_LIMIT,
        )  # fmt: skip
        handlers = AutomationRuns()
        database = world.database
        self.worker = Worker(
            server,
            [AutomationRun, ScheduleFire],
            [
                *handlers.activities(parts)[Queue.AUTOMATION],
                ScheduleFires(database).accept,
                *CalledRunActivities(database).all(),
                EndingActivities(database, {WorkflowKind.AUTOMATION_RUN: AUTOMATION_RUNS}).read_end,
            ],
        )
        deliveries = ExecutionDeliveries(client, routes_of([AutomationRuns]))
        self.relay = Relay(
            database,
            deliveries.by_intent(),
            parts.starts,
            Limits(20, 8, 10, {WorkflowKind.AUTOMATION_RUN: ROOM}),
        )
        self.reconciler = Reconciler(database, client, [handlers])
        self.pauses = PausePoller(database)

    def note_start(self, row: Outbox) -> None:
        if row.intent == Intent.START:
            self.relay._note_start(row)


class World:
    """What scenarios of one process share; each begins with its automations and nothing else."""

    database: SteppedDatabase
    outbound: OutboundClient
    space: Space
    engine: Engine
    table: Id
    automations: dict[str, Id]

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self.store = ObjectStore("memory://")
        self._cleared = 0

    async def make(self) -> None:
        """The workspace, its database and its automations."""
        # One step at a time has one transaction, whose statements stay prepared.
        self.database = SteppedDatabase(self.url, pool_size=1)
        self.connection = await psycopg.AsyncConnection.connect(
            libpq_url(self.url), autocommit=True
        )
        self.space = await make_space(self.database, KEYS)
        self.engine = Engine(self.database, cast("Any", None), self.space.actor)
        body = CreateDatabase.model_validate({"label": "Effects", "fields": []})
        async with self.database.transaction() as work:
            self.table = (await create_database(work, self.engine.actor, body)).id
        handler = await self._publish(self._graph("handle"))
        failing = graph(
            self._record("make"), node("stop", "stop", result="failed"), edges=[("make", "stop")]
        )
        limited = {"kind": "manual", "concurrency": {"limit": 2}}
        newest = {"kind": "manual", "concurrency": {"limit": 1, "policy": "cancel_oldest"}}
        schedule = {"kind": "schedule", "cron": "* * * * *", "concurrency": {"limit": 1}}
        self.automations = {
            "handler": handler,
            "quick": await self._publish(self._quick()),
            "slow": await self._publish(self._slow()),
            "limited": await self._publish(self._slow(), triggerConfig=limited),
            "newest": await self._publish(self._slow(), triggerConfig=newest),
            "failing": await self._publish({**failing, "failureAutomationId": str(handler)}),
            "scheduled": await self._publish(self._slow(), triggerConfig=schedule),
        }

    async def _publish(self, shape: Any, **fields: Any) -> Id:
        return UUID(str((await self.engine.publish(shape, **fields)).id))

    def _record(self, name: str) -> Any:
        return node(name, "create_record", databaseId=str(self.table), title=name, data={})

    def _graph(self, *names: str) -> Any:
        edges = list(pairwise(names))
        return graph(*map(self._record, names), edges=edges)

    def _quick(self) -> Any:
        nodes = (node(name, "transform", output={"ok": True}) for name in ("first", "last"))
        first, last = nodes
        edges = [("first", "make"), ("make", "last")]
        return graph(first, self._record("make"), last, edges=edges)

    def _slow(self) -> Any:
        pause = node("pause", "delay", seconds=20)
        return graph(pause, self._record("make"), edges=[("pause", "make")])

    async def clear(self) -> None:
        """Remove what a scenario left."""
        await self.connection.execute("SELECT simulation.clear()")
        if self._cleared % VACUUMED_AFTER == 0:
            await self.connection.execute(f"VACUUM {', '.join(_CHANGED)}")
        self._cleared += 1

    async def tell_time(self) -> None:
        """Have PostgreSQL know what time it is."""
        await self.connection.execute(
            "UPDATE simulation.clock SET moment = %s", (self.clock.moment,)
        )

    async def ask(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        """The rows of a query, in a transaction of its own."""
        return await (await self.connection.execute(query, parameters)).fetchall()

    async def changes(self) -> Sequence[Change]:
        """All changes of the scenario, in their order."""
        found = await self.ask(
            "SELECT number, transaction::text::bigint, kind, id, before, after, facts"
            " FROM simulation.change ORDER BY number"
        )
        return [Change(*row) for row in found]


@asynccontextmanager
async def a_world(url: str, clock: Clock) -> AsyncIterator[World]:
    """A world in a migrated database of its own."""
    async with await psycopg.AsyncConnection.connect(libpq_url(url), autocommit=True) as connection:
        await connection.execute(_WATCHED)
        await connection.execute(_CLEARED)
        for setting in _SETTINGS:
            await connection.execute(
                f"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET {setting}',"
                " current_database()); END $$"
            )
    world = World(url, clock)
    async with OutboundClient(OutboundPolicy.from_entries([])) as world.outbound:
        await world.make()
        try:
            yield world
        finally:
            await world.connection.close()
            await world.database.close()
