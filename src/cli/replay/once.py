"""Recorded work, executed once more: a node, a step, a refresh or an import.

Workers have the same activities and steps. The transaction they write in is rolled back.
"""

import base64
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.action_runs.calls import CALLS
from activities.action_runs.steps import ActionSteps, Attempt, StepState, node_kind
from activities.data_source_runs.steps import DataSourceRunActivities
from activities.parts import Parts, Periods
from cli.replay.errors import HistoryUnavailableError
from cli.replay.executed import (
    CALLS_OUTSIDE,
    CODE_OF_STAGES,
    OPEN,
    NodeActivities,
    execute_stages,
    own_code,
)
from cli.replay.own_code import Options, OwnCode
from cli.replay.recorded import Answer, RecordedClient, RecordedMail, mail_server
from models.automation.action_runs.execution import load_header
from models.automation.action_runs.reopening import RecordedStep, recorded_steps, reopen_step
from models.automation.automation_runs.reopening import (
    RecordedNode,
    forget_node,
    is_run,
    recorded_nodes,
    reopen_run,
)
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automations.rules.graph.loop_nesting import reached
from models.automation.automations.rules.language.visible_scopes import loop_of, own_scopes
from models.automation.automations.rules.planner.plan import PlanEdge
from models.core.base import Id, JsonObject
from models.registrations import register_models
from models.sources.data_source_runs.commands.reopening import recorded_run, reopen_source_run
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import Stage, family_of
from runtime.crypto import KeyRing
from runtime.families import Family
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient
from runtime.platform_policy import platform_policy
from runtime.rehearsal import RehearsalDatabase, rehearsal
from runtime.settings import Settings
from runtime.temporal_client import connect

_LONG = timedelta(days=1)
_STAGES = ", ".join(Stage)


@dataclass(frozen=True, slots=True)
class Request:
    """The work to execute once more, and the way to do it."""

    run_id: Id
    node: str
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class End:
    """An end as a row has it."""

    status: str
    code: str | None
    error: str | None
    output: JsonObject | None
    outcome: str | None = None
    input: JsonObject | None = None

    def as_before(self, before: "End") -> bool:
        """True for the same end. What the node was given may be written otherwise."""
        return dataclasses.replace(self, input=None) == dataclasses.replace(before, input=None)


@dataclass(frozen=True, slots=True)
class Once:
    """The two ends of one piece of work: `before` is what was recorded."""

    name: str
    kind: str
    before: End
    now: End
    calls: str
    """The source of the answers to outside calls; empty where the kind makes none."""
    is_reached: bool | None
    """True when the debugger came to its own code; None without a debugger."""


async def execute_once(settings: Settings, request: Request) -> Once:
    """Execute a node of a run once more, and keep nothing. Raises HistoryUnavailableError."""
    register_models()
    url, store = settings.database_url.get_secret_value(), ObjectStore(settings.object_store)
    async with rehearsal(url, store, application="workspace-replay") as (database, copies):
        async with database.reading() as work:
            nodes = await recorded_nodes(work, request.run_id)
            steps = await recorded_steps(work, request.run_id)
            source = await recorded_run(work, request.run_id)
            known = source is not None or await is_run(work, request.run_id)
        if not (nodes or steps or known):
            raise HistoryUnavailableError(
                f"There is no run {request.run_id} of an automation, an action, a data source or"
                " an import in this database."
            )
        doing = _Doing(settings, request, database, copies)
        if source is not None:
            return await doing.source_run(source)
        if steps:
            return await doing.step(_step(steps, request.node))
        return await doing.node(_node(nodes, request))


class _Doing:
    """One request, in a database that is rolled back."""

    def __init__(
        self,
        settings: Settings,
        request: Request,
        database: RehearsalDatabase,
        store: ObjectStore,
    ) -> None:
        self._settings = settings
        self._request = request
        self._database = database
        self._store = store
        self._stopped: bool | None = None

    async def node(self, node: RecordedNode) -> Once:
        """A node of an automation run."""
        run_id, answer = node.run_id, Answer(node.output, node.error_code, node.error)
        async with self._parts(answer) as parts:
            async with self._database.transaction() as work:
                await reopen_run(work, run_id)
            run = await parts.runs.get(run_id)
            async with self._database.transaction() as work:
                await forget_node(work, node, _earlier(run.graph.plan.edges, node))
            own = own_code(parts, node.node_kind)
            doing = NodeActivities(parts, node)
            await self._do(
                doing.execute, own, Family.AUTOMATION_RUN.workflow_id(run_id), node.attempt
            )
        async with self._database.reading() as work:
            rows = await recorded_nodes(work, run_id)
        now = next(
            row for row in rows if (row.node_id, row.scope_key) == (node.node_id, node.scope_key)
        )
        name = f"node {node.node_id}" + (f" in {node.scope_key}" if node.scope_key else "")
        return self._once(name, node.node_kind, _end_of(node), _end_of(now), answer)

    async def step(self, step: RecordedStep) -> Once:
        """A step of an action run."""
        answer = Answer(step.result, step.error_code, step.error)
        async with self._parts(answer) as parts:
            async with self._database.transaction() as work:
                await reopen_step(work, step)
                header = await load_header(work, step.run_id)
            steps = ActionSteps(self._database, parts.writes, parts.effects)
            attempt = Attempt(header, header.step(step.step_id), max(step.attempt, 1))

            async def execute() -> None:
                reply = await steps.attempt(attempt)
                if reply.state is StepState.WAITING and step.status not in OPEN:
                    await steps.end_call(attempt)

            kind = attempt.step.kind
            own = [CALLS[kind].begin] if kind in CALLS else own_code(parts, node_kind(kind))
            await self._do(execute, own, Family.ACTION_RUN.workflow_id(step.run_id), step.attempt)
        async with self._database.reading() as reading:
            rows = await recorded_steps(reading, step.run_id)
        now = next(row for row in rows if row.step_id == step.step_id)
        return self._once(f"step {step.step_id}", step.kind, _end(step), _end(now), answer)

    async def source_run(self, run: SourceRunRow) -> Once:
        """A refresh of a data source or an import, as far as the stage that is named."""
        if self._request.node not in set(Stage):
            raise HistoryUnavailableError(
                f"{self._request.node} is not a stage. Name the last stage to execute: {_STAGES}."
            )
        config = dict(run.plan["config"])
        if self._request.options.rows is not None:
            config["content"] = base64.b64encode(self._request.options.rows.read_bytes()).decode()
        answer = Answer(None, None, None)
        if not {"content", "fileId"} & config.keys():
            self._require_source(run)
        async with self._parts(answer) as parts:
            async with self._database.transaction() as work:
                await reopen_source_run(work, run, {**run.plan, "config": config})
            steps = DataSourceRunActivities(self._database, self._store, parts.fetchers)
            last = Stage(self._request.node)
            workflow_id = family_of(run.data_source_id).workflow_id(run.id)
            await self._do(
                lambda: execute_stages(steps, run.id, last), CODE_OF_STAGES, workflow_id, 1
            )
        async with self._database.reading() as work:
            now = await recorded_run(work, run.id)
        assert now is not None
        kind = "import" if run.data_source_id is None else "refresh"
        return self._once(f"{kind} {run.id}", kind, _source_end(run), _source_end(now), answer)

    def _require_source(self, run: SourceRunRow) -> None:
        """Raise HistoryUnavailableError where what was read is not there any more."""
        is_import = run.data_source_id is None
        if self._request.options.live and not is_import:
            return
        again = "" if is_import else "--live to ask it again, or "
        raise HistoryUnavailableError(
            f"Nothing was recorded of the rows that this {'import' if is_import else 'refresh'}"
            f" read. Say {again}--rows FILE with a file that holds them."
        )

    @asynccontextmanager
    async def _parts(self, answer: Answer) -> AsyncIterator[Parts]:
        settings = self._settings
        policy, mail = platform_policy(settings), settings.mail
        async with (
            OutboundClient(policy)
            if self._request.options.live
            else RecordedClient(policy, answer) as outbound
        ):
            client: MailClient | None = None if mail is None else MailClient(mail, policy)
            server = mail_server(mail, answer)
            if not self._request.options.live and server is not None:
                client = RecordedMail(server, policy, answer)
            yield Parts(
                self._database,
                await connect(settings, lazy=True),
                outbound,
                KeyRing(settings.secret_keys),
                self._store,
                Periods.of(settings),
                settings.running_cap,
                client,
                providers=settings.providers,
                public_url=settings.public_url,
            )

    async def _do(
        self,
        execute: Callable[[], Any],
        own: Sequence[Callable[..., Any]],
        workflow_id: str,
        attempt: int,
    ) -> None:
        """Execute in an activity; what it raises it has written before."""
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(
            environment.info,
            workflow_id=workflow_id,
            attempt=max(attempt, 1),
            start_to_close_timeout=_LONG,
        )

        async def within() -> None:
            try:
                await execute()
            except ApplicationError:
                activity.logger.debug("the work failed, as its row says")

        if not self._request.options.debug:
            await environment.run(within)
            return
        debugger = OwnCode(own)
        with debugger.watching():
            await environment.run(within)
        self._stopped = debugger.has_stopped

    def _once(self, name: str, kind: str, before: End, now: End, answer: Answer) -> Once:
        if answer.is_missing:
            raise HistoryUnavailableError(
                f"Nothing was recorded of the answer to the call of {name}. Say --live to really"
                " make the call."
            )
        calls = ""
        if kind in CALLS_OUTSIDE or kind == "refresh":
            calls = (
                "really made" if self._request.options.live else "answered from what was recorded"
            )
        return Once(name, kind, before, now, calls, self._stopped)


def _node(nodes: Sequence[RecordedNode], request: Request) -> RecordedNode:
    """The node that is meant. Raises HistoryUnavailableError, and says which there are."""
    candidates = [node for node in nodes if node.node_id == request.node]
    if not candidates:
        there = ", ".join(dict.fromkeys(f"{node.node_id} ({node.status})" for node in nodes))
        raise HistoryUnavailableError(
            f"The run did not come to a node {request.node}. It came to: {there or 'no node'}."
        )
    scope = request.options.scope
    if scope is not None:
        matches = [node for node in candidates if node.scope_key == scope]
    else:
        matches = [node for node in candidates if node.status == NodeStatus.FAILED] or candidates
    if len(matches) != 1:
        scopes = ", ".join(f'"{node.scope_key}" ({node.status})' for node in candidates[:10])
        raise HistoryUnavailableError(f"Name one iteration of {request.node} by --scope: {scopes}.")
    if matches[0].status == NodeStatus.SKIPPED:
        raise HistoryUnavailableError(f"The run skipped {request.node}: it was not executed.")
    return matches[0]


def _earlier(edges: Sequence[PlanEdge], node: RecordedNode) -> set[str]:
    """The nodes that lead to a node, without the loops around it, which had not ended."""
    back: dict[str, list[str]] = {}
    for edge in edges:
        back.setdefault(edge.target, []).append(edge.source)
    around = {loop_of(scope).node_id for scope in own_scopes(node.scope_key)[:-1]}
    return set(reached([node.node_id], back)) - around


def _step(steps: Sequence[RecordedStep], step_id: str) -> RecordedStep:
    found = next((step for step in steps if step.step_id == step_id), None)
    if found is None:
        there = ", ".join(f"{step.step_id} ({step.status})" for step in steps)
        raise HistoryUnavailableError(f"The action has no step {step_id}. It has: {there}.")
    return found


def _end_of(node: RecordedNode) -> End:
    return End(node.status, node.error_code, node.error, node.output, node.outcome, node.input)


def _end(step: RecordedStep) -> End:
    return End(step.status, step.error_code, step.error, step.result)


def _source_end(run: SourceRunRow) -> End:
    """The end of a refresh or import, without the time that it took."""
    counts = {name: count for name, count in run.stats.items() if name != "durationMs"}
    return End(run.status, run.error_kind, run.error, {"stats": counts, "result": run.result})
