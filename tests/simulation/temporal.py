"""A Temporal in memory: executions by id, their tasks, timers and children, and a client of it.

It does what Temporal's server does: starts once by id, tasks that are tried again, timers, signals,
cancels and children.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import (
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.client import WorkflowExecutionStatus as Status
from temporalio.common import (
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from runtime.temporal.executions import data_converter
from tests.simulation.processes import Violation, call_of_temporal

_CHILD_EXISTS = 1
_REJECT = int(WorkflowIDReusePolicy.REJECT_DUPLICATE)
_ABANDON = 2


@dataclass(eq=False)
class Execution:
    """One execution of a workflow id; `history` is what its tasks were given so far."""

    id: str
    type: str
    number: int
    arguments: Sequence[Payload]
    memo: dict[str, Payload]
    started_at: datetime
    due: datetime | None = None
    parent: "tuple[Execution, int] | None" = None
    abandoned: bool = False
    """It outlives its parent."""
    status: Status = Status.RUNNING
    failure: str = ""
    history: list[WorkflowActivation] = field(default_factory=list)
    inbox: list[WorkflowActivationJob] = field(default_factory=list)
    timers: dict[int, datetime] = field(default_factory=dict)
    children: "dict[int, Execution]" = field(default_factory=dict)
    attempt: int = 0
    """Of its workflow tasks; one that is not the last is refused."""
    busy: bool = False
    """A worker is on its task."""
    cancel_requested: bool = False

    @property
    def run_id(self) -> str:
        return f"{self.id}#{self.number}"

    @property
    def is_open(self) -> bool:
        return self.status is Status.RUNNING

    @property
    def has_task(self) -> bool:
        return self.is_open and bool(self.inbox) and not self.busy


class Server:
    """What Temporal remembers; `now` is the clock.

    Of signals and cancels that it takes the first `forgotten` are lost, as by a Temporal that was
    put back to an earlier state.
    """

    def __init__(self, now: Callable[[], datetime], forgotten: int) -> None:
        self.now = now
        self._forgotten = forgotten
        self.executions: dict[str, Execution] = {}
        """The latest of each id."""
        self._number = 0

    def open(self) -> list[Execution]:
        return [one for one in self.executions.values() if one.is_open]

    def start(
        self, id_: str, type_: str, arguments: Sequence[Payload], reuse: int, **more: Any
    ) -> Execution | None:
        """Start an execution; None when there is, or was, one that forbids it."""
        before = self.executions.get(id_)
        if before is not None and (before.is_open or reuse == _REJECT):
            return None
        self._number += 1
        made = Execution(id_, type_, self._number, arguments, more.pop("memo", {}), self.now())
        for name, value in more.items():
            setattr(made, name, value)
        job = WorkflowActivationJob()
        job.initialize_workflow.workflow_type = type_
        job.initialize_workflow.workflow_id = id_
        job.initialize_workflow.arguments.extend(arguments)
        job.initialize_workflow.randomness_seed = self._number
        job.initialize_workflow.attempt = 1
        job.initialize_workflow.start_time.FromDatetime(self.now())
        made.inbox.append(job)
        self.executions[id_] = made
        return made

    def forgets(self) -> bool:
        """Whether what it takes now is lost."""
        self._forgotten -= 1
        return self._forgotten >= 0

    def signal(self, execution: Execution, name: str, arguments: Sequence[Payload]) -> None:
        job = WorkflowActivationJob()
        job.signal_workflow.signal_name = name
        job.signal_workflow.originating_event_id = 1
        job.signal_workflow.input.extend(arguments)
        execution.inbox.append(job)

    def cancel(self, execution: Execution) -> None:
        if not execution.cancel_requested and execution.is_open:
            execution.cancel_requested = True
            job = WorkflowActivationJob()
            job.cancel_workflow.reason = "asked to"
            execution.inbox.append(job)

    def forget(self, execution: Execution) -> None:
        """Lose an execution, as a Temporal that was put back to an earlier state does."""
        self._stop(execution, Status.TERMINATED)
        del self.executions[execution.id]

    def terminate(self, execution: Execution) -> None:
        self._close(execution, Status.TERMINATED)

    def fire_timers(self) -> None:
        """Fire the timers that are due."""
        for execution in self.open():
            due = [seq for seq, at in execution.timers.items() if at <= self.now()]
            for seq in sorted(due, key=lambda seq: (execution.timers[seq], seq)):
                del execution.timers[seq]
                job = WorkflowActivationJob()
                job.fire_timer.seq = seq
                execution.inbox.append(job)

    def next_timer(self) -> datetime | None:
        return min((at for one in self.open() for at in one.timers.values()), default=None)

    def take(self, execution: Execution) -> int:
        """Begin a workflow task."""
        execution.busy = True
        execution.attempt += 1
        return execution.attempt

    def time_out(self, execution: Execution) -> None:
        """Wait no longer for the worker of a workflow task."""
        execution.busy = False

    def complete(
        self,
        execution: Execution,
        attempt: int,
        taken: int,
        activations: Sequence[WorkflowActivation],
        commands: Iterable[WorkflowCommand],
    ) -> bool:
        """End a workflow task and do what it asks for; False for one that was given away."""
        if not execution.is_open or not execution.busy or execution.attempt != attempt:
            return False
        execution.busy = False
        ends = [one for one in commands if end_of(one) is not None]
        if ends and len(execution.inbox) > taken:
            # Signals that arrived meanwhile are handled before an end, which Temporal refuses.
            return False
        del execution.inbox[:taken]
        execution.history.extend(activations)
        for command in commands:
            self._obey(execution, command)
        return True

    def _obey(self, execution: Execution, command: WorkflowCommand) -> None:
        if command.HasField("start_timer"):
            timer = command.start_timer
            after = timer.start_to_fire_timeout.ToTimedelta()
            execution.timers[timer.seq] = self.now() + after
        elif command.HasField("cancel_timer"):
            execution.timers.pop(command.cancel_timer.seq, None)
        elif command.HasField("start_child_workflow_execution"):
            self._start_child(execution, command.start_child_workflow_execution)
        elif command.HasField("cancel_child_workflow_execution"):
            child = execution.children.get(
                command.cancel_child_workflow_execution.child_workflow_seq
            )
            if child is not None:
                self.cancel(child)
        elif command.HasField("modify_workflow_properties"):
            execution.memo.update(command.modify_workflow_properties.upserted_memo.fields)
        elif (end := end_of(command)) is not None:
            failure = command.fail_workflow_execution.failure
            self._close(execution, end, failure.application_failure_info.type)
        elif not command.HasField("set_patch_marker"):
            raise Violation(f"Temporal here knows no {command.WhichOneof('variant')}")

    def _start_child(self, parent: Execution, command: Any) -> None:
        child = self.start(
            command.workflow_id,
            command.workflow_type,
            list(command.input),
            command.workflow_id_reuse_policy,
            memo=dict(command.memo),
            parent=(parent, command.seq),
            abandoned=command.parent_close_policy == _ABANDON,
        )
        job = WorkflowActivationJob()
        started = job.resolve_child_workflow_execution_start
        started.seq = command.seq
        if child is None:
            started.failed.workflow_id = command.workflow_id
            started.failed.workflow_type = command.workflow_type
            started.failed.cause = _CHILD_EXISTS  # type: ignore[assignment]  # an enumeration
        else:
            parent.children[command.seq] = child
            started.succeeded.run_id = child.run_id
        parent.inbox.append(job)

    def _stop(self, execution: Execution, status: Status) -> None:
        execution.status = status
        execution.inbox.clear()
        execution.timers.clear()
        for child in execution.children.values():
            if not child.abandoned:
                self.cancel(child)

    def _close(self, execution: Execution, status: Status, failure: str = "") -> None:
        execution.failure = failure
        self._stop(execution, status)
        if execution.parent is None:
            return
        parent, seq = execution.parent
        parent.children.pop(seq, None)
        if not parent.is_open:
            return
        job = WorkflowActivationJob()
        ended = job.resolve_child_workflow_execution
        ended.seq = seq
        if status is Status.COMPLETED:
            ended.result.completed.SetInParent()
        else:
            part = ended.result.cancelled if status is Status.CANCELED else ended.result.failed
            part.failure.message = "Child Workflow execution failed"
            part.failure.child_workflow_execution_failure_info.workflow_type.name = execution.type
            cause = part.failure.cause
            if status is Status.CANCELED:
                cause.canceled_failure_info.SetInParent()
            elif status is Status.TERMINATED:
                cause.terminated_failure_info.SetInParent()
            else:
                cause.application_failure_info.type = failure
        parent.inbox.append(job)


def end_of(command: WorkflowCommand) -> Status | None:
    if command.HasField("complete_workflow_execution"):
        return Status.COMPLETED
    if command.HasField("fail_workflow_execution"):
        return Status.FAILED
    return Status.CANCELED if command.HasField("cancel_workflow_execution") else None


class Client:
    """The client of one process. Each call may be lost on its way there or back."""

    namespace = "simulation"
    data_converter = data_converter

    def __init__(self, server: Server) -> None:
        self.server = server

    async def start_workflow(
        self, type_: str, argument: Any, *, id_reuse_policy: Any, memo: Any, **more: Any
    ) -> None:
        id_ = more["id"]
        encoded = {name: payloads_of([value])[0] for name, value in (memo or {}).items()}
        async with call_of_temporal():
            before = self.server.executions.get(id_)
            arguments = payloads_of([argument])
            reuse = int(id_reuse_policy)
            started = self.server.start(id_, type_, arguments, reuse, memo=encoded)
            if started is None:
                assert before is not None
                if not before.is_open:
                    raise WorkflowAlreadyStartedError(id_, type_)
            signal = more.get("start_signal")
            if signal is not None and (started is not None or not self.server.forgets()):
                self.server.signal(self.server.executions[id_], signal, ())

    def get_workflow_handle(self, workflow_id: str) -> "Handle":
        return Handle(self.server, workflow_id)

    async def list_workflows(self, query: str) -> AsyncIterator[Any]:
        """The open executions that are older than the query says."""
        before = datetime.fromisoformat(re.search(r"StartTime < '([^']+)'", query)[1])
        async with call_of_temporal():
            found = [one for one in self.server.open() if one.started_at < before]
        for one in found:
            yield one

    async def list_activities(self, _query: str) -> AsyncIterator[Any]:
        """None: nothing is delivered in a scenario."""
        async with call_of_temporal():
            standalone: list[Any] = []
        for one in standalone:
            yield one


@dataclass(frozen=True)
class Handle:
    """The latest execution of an id."""

    server: Server
    id: str

    async def describe(self) -> "Described":
        async with call_of_temporal():
            return Described(self._found())

    async def fetch_history_events(self, **_: Any) -> AsyncIterator[Any]:
        async with call_of_temporal():
            yield Closed(self._found().failure)

    async def signal(self, name: str, *, args: Sequence[Any], **_: Any) -> None:
        async with call_of_temporal():
            execution = self._open()
            if not self.server.forgets():
                self.server.signal(execution, name, payloads_of(args))

    async def cancel(self, **_: Any) -> None:
        async with call_of_temporal():
            execution = self._open()
            if not self.server.forgets():
                self.server.cancel(execution)

    async def terminate(self, **_: Any) -> None:
        async with call_of_temporal():
            self.server.terminate(self._open())

    def _found(self) -> Execution:
        found = self.server.executions.get(self.id)
        if found is None:
            raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
        return found

    def _open(self) -> Execution:
        found = self._found()
        if not found.is_open:
            raise RPCError("ended", RPCStatusCode.NOT_FOUND, b"")
        return found


class Closed:
    """The last event of an execution, as far as it is read."""

    def __init__(self, failure: str) -> None:
        self.workflow_execution_failed_event_attributes = self
        self.failure = self
        self.application_failure_info = self
        self.type = failure


class Described:
    """The description of an execution, as far as it is read."""

    def __init__(self, execution: Execution) -> None:
        self.status = execution.status
        self.raw_description = self
        self.pending_activities: tuple[()] = ()
        self.pending_children = tuple(execution.children)
        self.pending_workflow_task = self
        self.attempt = 1 if execution.is_open and (execution.inbox or execution.busy) else 0
        self._memo = dict(execution.memo)

    async def memo_value(self, name: str, default: Any, type_hint: type) -> Any:
        if name not in self._memo:
            return default
        return data_converter.payload_converter.from_payload(self._memo[name], type_hint)


def payloads_of(values: Sequence[Any]) -> list[Payload]:
    return data_converter.payload_converter.to_payloads(values)
