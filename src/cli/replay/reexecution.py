"""Re-execution of a node, a step, a refresh or an import, whose writes are rolled back.

Workers have the same activities and steps. The transaction they write in is rolled back here.
"""

import base64
import dataclasses
import inspect
import math
import pdb  # noqa: T100  # the debugger is what this is about
import sys
from bdb import BdbQuit
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any
from uuid import UUID

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from typing_extensions import override

from activities.action_runs.steps import CALLS, ActionSteps, Attempt, StepState, node_kind
from activities.automation_runs.nodes.invocation import failure_of
from activities.data_source_runs.steps import DataSourceRunActivities
from activities.parts import Parts, Periods
from cli.replay import activity_calls
from cli.replay.histories import HistoryUnavailableError
from models.automation.action_runs import execution as action_run_execution
from models.automation.automation_runs import node_writes
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automations.rules.planner.plan import PlanEdge, reached
from models.automation.automations.rules.planner.protocol import loop_of, own_scopes
from models.core.base import Id, JsonObject
from models.registrations import register_models
from models.sources.data_source_runs.rules import Stage, workflow_kind_of
from models.sources.data_source_runs.tables import SourceRunRow, recorded_run, reopen_source_run
from runtime.clock import utc_now
from runtime.configuration.resources import platform_policy
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.ids import least_id, parse_id
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient
from runtime.processes import bounded_processes
from runtime.rehearsal import RehearsalDatabase, rehearsal
from runtime.temporal.client import connect
from runtime.temporal.workflow_kinds import WorkflowKind

_TIMEOUT = timedelta(days=1)

_STAGES = ", ".join(Stage)
NOT_COMPARED = ("input", "headers")
"""Parts of an end that are shown, and may differ."""
_PRECISION = timedelta(milliseconds=1)
"""Of ids, and of times in an output."""


@dataclass(frozen=True, slots=True)
class Options:
    """The way to execute a node once more; `rows` is a file that takes the place of its source."""

    scope: str | None = None
    live: bool = False
    debug: bool = False
    rows: Path | None = None


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
    """May be written otherwise than before."""
    headers: JsonObject | None = None
    """Of the response to a call, of which the date and others differ with each call."""


@dataclass(frozen=True, slots=True)
class Reexecution:
    """The two ends of one piece of work: `before` is the recorded one."""

    name: str
    kind: str
    before: End
    now: End
    calls: str
    """The source of the answers to outside calls; empty where the kind makes none."""
    is_reached: bool | None
    """True when the debugger came to its own code; None without a debugger."""
    began: datetime

    @property
    def is_same(self) -> bool:
        before, now = self.before, self.now
        ends = [(end.status, end.code, end.error, end.outcome) for end in (before, now)]
        return ends[0] == ends[1] and self.has_same_output

    @property
    def has_same_output(self) -> bool:
        """True also for other ids and times, if this execution made the present ones."""
        return self._is_same(self.before.output, self.now.output)

    def _is_same(self, before: object, now: object) -> bool:
        if isinstance(before, dict) and isinstance(now, dict):
            return before.keys() == now.keys() and all(
                self._is_same(before[key], now[key]) for key in before
            )
        if isinstance(before, list) and isinstance(now, list):
            return len(before) == len(now) and all(map(self._is_same, before, now))
        if before == now:
            return True
        old, new, since = _parsed(before), _parsed(now), self.began - _PRECISION
        if isinstance(old, UUID) and isinstance(new, UUID):
            return new.version == 7 and new >= least_id(since)
        return isinstance(old, datetime) and isinstance(new, datetime) and new >= since


def _parsed(value: object) -> UUID | datetime | None:
    """An id, or a time with its zone."""
    if not isinstance(value, str):
        return None
    if (found := parse_id(value)) is not None:
        return found
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo else None


async def reexecute(settings: Settings, request: Request) -> Reexecution:
    """Execute a node of a run once more, and keep nothing. Raises HistoryUnavailableError."""
    register_models()
    url, store = settings.database_url.get_secret_value(), ObjectStore(settings.object_store)
    async with rehearsal(url, store, application="workspace-replay") as (database, copies):
        async with database.reading() as work:
            nodes = await node_writes.recorded_nodes(work, request.run_id)
            steps = await action_run_execution.recorded_steps(work, request.run_id)
            source = await recorded_run(work, request.run_id)
            known = source is not None or await node_writes.is_run(work, request.run_id)
        if not (nodes or steps or known):
            raise HistoryUnavailableError(
                f"Run {request.run_id} not found in this database. Use the id of a run of an"
                " automation, an action, a data source or an import."
            )
        if request.options.scope is not None and (steps or source):
            raise HistoryUnavailableError("--scope is for nodes of automations. Leave it out.")
        if request.options.rows is not None and source is None:
            raise HistoryUnavailableError("--rows is for refreshes and imports. Leave it out.")
        doing = _Executor(settings, request, database, copies)
        if source is not None:
            return await doing.source_run(source)
        if steps:
            return await doing.step(_chosen_step(steps, request.node))
        return await doing.node(_chosen_node(nodes, request))


class _Executor:
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
        self._began = utc_now()

    async def node(self, node: node_writes.RecordedNode) -> Reexecution:
        """A node of an automation run."""
        run_id, answer = (
            node.run_id,
            activity_calls.RecordedAnswer(node.output, node.error_code, node.error),
        )
        async with self._parts(answer) as parts:
            async with self._database.transaction() as work:
                await node_writes.reopen_run(work, run_id)
            run = await parts.runs.get(run_id)
            async with self._database.transaction() as work:
                await node_writes.forget_node(work, node, _nodes_before(run.graph.plan.edges, node))
            own = activity_calls.code_of_kind(parts, node.node_kind)
            doing = activity_calls.NodeActivities(parts, node)
            await self._do(
                doing.execute, own, WorkflowKind.AUTOMATION_RUN.workflow_id(run_id), node.attempt
            )
        async with self._database.reading() as work:
            rows = await node_writes.recorded_nodes(work, run_id)
        now = next(
            row for row in rows if (row.node_id, row.scope_key) == (node.node_id, node.scope_key)
        )
        name = f"node {node.node_id}" + (f" in {node.scope_key}" if node.scope_key else "")
        return self._once(name, node.node_kind, _end_of_node(node), _end_of_node(now), answer)

    async def step(self, step: action_run_execution.RecordedStep) -> Reexecution:
        answer = activity_calls.RecordedAnswer(step.result, step.error_code, step.error)
        async with self._parts(answer) as parts:
            async with self._database.transaction() as work:
                await action_run_execution.reopen_step(work, step)
                header = await action_run_execution.load_header(work, step.run_id)
            steps = ActionSteps(self._database, parts.writes, parts.effects)
            attempt = Attempt(header, header.step(step.step_id), max(step.attempt, 1))

            async def execute() -> None:
                reply = await steps.attempt(attempt)
                if (
                    reply.state is StepState.WAITING
                    and step.status not in activity_calls.OPEN_STATUSES
                ):
                    await steps.end_call(attempt)

            kind = attempt.step.kind
            own = (
                [CALLS[kind].begin]
                if kind in CALLS
                else activity_calls.code_of_kind(parts, node_kind(kind))
            )
            await self._do(
                execute, own, WorkflowKind.ACTION_RUN.workflow_id(step.run_id), step.attempt
            )
        async with self._database.reading() as reading:
            rows = await action_run_execution.recorded_steps(reading, step.run_id)
        now = next(row for row in rows if row.step_id == step.step_id)
        return self._once(
            f"step {step.step_id}", step.kind, _end_of_step(step), _end_of_step(now), answer
        )

    async def source_run(self, run: SourceRunRow) -> Reexecution:
        """A refresh of a data source or an import, as far as the stage that is named."""
        if self._request.node not in set(Stage):
            raise HistoryUnavailableError(
                f"{self._request.node} is not a stage. Name the last stage to execute: {_STAGES}."
            )
        config = dict(run.plan["config"])
        if self._request.options.rows is not None:
            config["content"] = base64.b64encode(self._request.options.rows.read_bytes()).decode()
        answer = activity_calls.RecordedAnswer(None, None, None)
        if not {"content", "fileId"} & config.keys():
            self._require_source(run)
        async with self._parts(answer) as parts:
            async with self._database.transaction() as work:
                await reopen_source_run(work, run, {**run.plan, "config": config})
            steps = DataSourceRunActivities(self._database, self._store, parts.fetchers)
            last = Stage(self._request.node)
            workflow_id = workflow_kind_of(run.data_source_id).workflow_id(run.id)
            await self._do(
                lambda: activity_calls.execute_stages(steps, run.id, last),
                activity_calls.CODE_OF_STAGES,
                workflow_id,
                1,
            )
        async with self._database.reading() as work:
            now = await recorded_run(work, run.id)
        assert now is not None
        kind = "import" if run.data_source_id is None else "refresh"
        return self._once(
            f"{kind} {run.id}", kind, _end_of_source_run(run), _end_of_source_run(now), answer
        )

    def _require_source(self, run: SourceRunRow) -> None:
        """Raise HistoryUnavailableError where the inputs do not exist any more."""
        is_import = run.data_source_id is None
        if self._request.options.live and not is_import:
            return
        again = "" if is_import else "--live to read them again, or "
        raise HistoryUnavailableError(
            f"The rows that this {'import' if is_import else 'refresh'} read were not recorded. Use"
            f" {again}--rows FILE to provide them."
        )

    @asynccontextmanager
    async def _parts(self, answer: activity_calls.RecordedAnswer) -> AsyncIterator[Parts]:
        settings = self._settings
        policy, mail = platform_policy(settings), settings.mail
        async with (
            OutboundClient(policy)
            if self._request.options.live
            else activity_calls.RecordedClient(policy, answer) as outbound
        ):
            client: MailClient | None = None if mail is None else MailClient(mail, policy)
            server = activity_calls.mail_server(mail, answer)
            if not self._request.options.live and server is not None:
                client = activity_calls.RecordedMail(server, policy, answer)
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
            start_to_close_timeout=_TIMEOUT,
        )

        async def within() -> None:
            try:
                await execute()
            except ApplicationError:
                activity.logger.debug("the work failed, as its row says")

        if not self._request.options.debug:
            await environment.run(within)
            return
        debugger = NodeDebugger(own)
        with debugger.watching():
            await environment.run(within)
        self._stopped = debugger.has_stopped

    def _once(
        self, name: str, kind: str, before: End, now: End, answer: activity_calls.RecordedAnswer
    ) -> Reexecution:
        if answer.is_missing:
            raise HistoryUnavailableError(
                f"The response to the call of {name} was not recorded. Use --live to make the call."
            )
        calls = ""
        if kind in activity_calls.CALLS_OUTSIDE or kind == "refresh":
            calls = "made" if self._request.options.live else "replayed from the recording"
        return Reexecution(name, kind, before, now, calls, self._stopped, self._began)


def _chosen_node(
    nodes: Sequence[node_writes.RecordedNode], request: Request
) -> node_writes.RecordedNode:
    """The chosen node. Raises HistoryUnavailableError, which lists the nodes."""
    candidates = [node for node in nodes if node.node_id == request.node]
    if not candidates:
        there = ", ".join(dict.fromkeys(f"{node.node_id} ({node.status})" for node in nodes))
        raise HistoryUnavailableError(
            f"The run did not reach the node {request.node}. It reached: {there or 'none'}."
        )
    scope = request.options.scope
    if scope is not None:
        matches = [node for node in candidates if node.scope_key == scope]
    else:
        matches = [node for node in candidates if node.status == NodeStatus.FAILED] or candidates
    if len(matches) != 1:
        scopes = ", ".join(f'"{node.scope_key}" ({node.status})' for node in candidates[:10])
        raise HistoryUnavailableError(
            f"Choose an iteration of {request.node} by --scope: {scopes}."
        )
    if matches[0].status == NodeStatus.SKIPPED:
        raise HistoryUnavailableError(f"The run skipped {request.node}.")
    return matches[0]


def _nodes_before(edges: Sequence[PlanEdge], node: node_writes.RecordedNode) -> set[str]:
    """The nodes that lead to a node, without the loops around it, which had not ended."""
    back: dict[str, list[str]] = {}
    for edge in edges:
        back.setdefault(edge.target, []).append(edge.source)
    around = {loop_of(scope).node_id for scope in own_scopes(node.scope_key)[:-1]}
    return set(reached([node.node_id], back)) - around


def _chosen_step(
    steps: Sequence[action_run_execution.RecordedStep], step_id: str
) -> action_run_execution.RecordedStep:
    found = next((step for step in steps if step.step_id == step_id), None)
    if found is None:
        there = ", ".join(f"{step.step_id} ({step.status})" for step in steps)
        raise HistoryUnavailableError(f"Step {step_id} not found. Steps of the action: {there}.")
    return found


def _end_of_node(node: node_writes.RecordedNode) -> End:
    output, headers = _without_headers(node.node_kind, node.output)
    return End(node.status, node.error_code, node.error, output, node.outcome, node.input, headers)


def _end_of_step(step: action_run_execution.RecordedStep) -> End:
    output, headers = _without_headers(step.kind, step.result)
    return End(step.status, step.error_code, step.error, output, headers=headers)


def _without_headers(
    kind: str, output: JsonObject | None
) -> tuple[JsonObject | None, JsonObject | None]:
    """The output of a call without the headers of its response, and these."""
    if output is None or kind not in activity_calls.CALLS_OUTSIDE:
        return output, None
    rest = {name: value for name, value in output.items() if name != "headers"}
    return rest, output.get("headers")


def _end_of_source_run(run: SourceRunRow) -> End:
    """The end of a refresh or import, without the time that it took."""
    counts = {name: count for name, count in run.stats.items() if name != "durationMs"}
    return End(run.status, run.error_kind, run.error, {"stats": counts, "result": run.result})


SKIPPED = ["temporalio.*", "asyncio.*", "concurrent.*", "contextlib", "types"]
"""Modules that stepping passes over."""

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class DebuggerLeft(BaseException):  # no error: what catches errors is to let it pass
    """The person left the debugger; what would have followed is not done."""


class NodeDebugger(pdb.Pdb):
    """Stops where the code of a node begins, and shows the frames from there on alone.

    A node that fails before it comes to its own code stops where it failed.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        super().__init__(skip=SKIPPED)
        self._codes = {_code_of(function) for function in functions}
        self.has_stopped = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Stop in each of the functions that the block comes to; it raises Left when left."""
        frame = sys._getframe()  # as pdb itself begins
        while frame.f_code.co_flags & _SUSPENDED and frame.f_back:
            # Left at one of these, pdb would stop wherever an iteration ends.
            frame = frame.f_back
        self.reset()
        self.botframe = frame
        for code in self._codes:
            self.set_break(code.co_filename, _first_line(code), temporary=True)
        self.set_break(_FAILURE.co_filename, _first_line(_FAILURE))
        self._set_stopinfo(frame, None, -1)  # type: ignore[attr-defined]  # private to bdb
        # A person at the prompt takes longer than an evaluation may stop the loop.
        patience, bounded_processes.LOOP_SECONDS = bounded_processes.LOOP_SECONDS, math.inf
        sys.settrace(self.trace_dispatch)
        try:
            yield
        finally:
            sys.settrace(None)
            bounded_processes.LOOP_SECONDS = patience

    @override
    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:
        try:
            return super().trace_dispatch(frame, event, arg)
        except BdbQuit:
            raise DebuggerLeft from None

    @override
    def user_line(self, frame: FrameType) -> None:
        if frame.f_code is not _FAILURE:
            self.has_stopped = True
            super().user_line(frame)
        elif self.has_stopped:
            self.set_continue()
        else:
            self.interaction(None, frame.f_locals["error"].__traceback__)

    @override
    def get_stack(
        self, f: FrameType | None, t: TracebackType | None
    ) -> tuple[list[tuple[FrameType, int]], int]:
        stack, current = super().get_stack(f, t)
        first = next((at for at, (frame, _) in enumerate(stack) if frame.f_code in self._codes), 0)
        return stack[first:], current - first


def _code_of(function: Callable[..., Any]) -> CodeType:
    while isinstance(function, partial):
        function = function.func
    found = getattr(function, "__func__", function)
    code: CodeType = found.__code__
    return code


_FAILURE = _code_of(failure_of)
"""The function that every failure of a node or a step passes."""


def _first_line(code: CodeType) -> int:
    """The line of the first statement, behind the signature and the docstring."""
    lines = (line for _, _, line in code.co_lines() if line is not None)
    return min((line for line in lines if line > code.co_firstlineno), default=code.co_firstlineno)
