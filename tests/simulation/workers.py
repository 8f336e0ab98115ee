"""A worker: the SDK's own instances of our workflows, with the activities of one process.

A workflow task is one attempt to bring an execution forward. With its worker all that it did is
lost, also the ends of its local activities, which another attempt executes anew.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payloads
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.common import (
    Priority,
    SearchAttributePair,
    TypedSearchAttributes,
    _CompositeEvent,
)
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker._workflow_instance import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
)

from runtime.temporal.executions import data_converter
from tests.simulation.processes import Violation, step
from tests.simulation.temporal import Client, Execution, Server, end_of, payloads_of
from workflows.schedules import DUE

MOST_ATTEMPTS = 5
"""Tries of one local activity, after which the scenario is at fault."""
_RUNNER = UnsandboxedWorkflowRunner()
_EXTERN: Mapping[str, Any] = {
    "__temporal_get_metric_meter": lambda: None,
    "__temporal_assert_local_activity_valid": lambda _: None,
}


INFO = ActivityEnvironment.default_info()
_NEVER = _CompositeEvent(thread_event=threading.Event(), async_event=None)


async def as_activity(
    info: activity.Info, method: Callable[..., Awaitable[Any]], *arguments: Any
) -> Any:
    """Execute an activity where its caller stands; the SDK makes it a task of its own."""
    context = activity._Context(
        info=lambda: info,
        heartbeat=None,
        cancelled_event=_NEVER,
        worker_shutdown_event=_NEVER,
        shield_thread_cancel_exception=None,
        payload_converter_class_or_instance=data_converter.payload_converter,
        runtime_metric_meter=None,
        client=None,
        cancellation_details=activity._ActivityCancellationDetailsHolder(),
    )
    token = activity._Context.set(context)
    try:
        return await method(*arguments)
    finally:
        activity._Context.reset(token)


class Worker:
    """Executes workflow tasks with the activities of one process, and keeps instances between."""

    def __init__(
        self,
        server: Server,
        workflows: Sequence[type[Any]],
        activities: Sequence[Callable[..., Any]],
    ) -> None:
        self._server = server
        definitions = map(workflow._Definition.must_from_class, workflows)
        self._workflows = {str(one.name): one for one in definitions}
        # What the decorator noted; the SDK would copy it for each process.
        found = [(getattr(one, "__temporal_activity_definition"), one) for one in activities]
        self._activities = {str(one.name): (one, method) for one, method in found}
        self._cache: dict[str, tuple[int, WorkflowInstance]] = {}

    async def execute(self, execution: Execution, attempt: int) -> None:
        """Carry out one workflow task."""
        taken = len(execution.inbox)
        known = len(execution.history)
        instance = self._instance(execution)
        activations = [self._activation(execution, list(execution.inbox[:taken]))]
        commands: list[WorkflowCommand] = []
        local: list[Any] = []
        cancelled: set[int] = set()
        while True:
            fresh = _activate(instance, activations[-1])
            for command in fresh:
                if command.HasField("schedule_local_activity"):
                    local.append(command.schedule_local_activity)
                elif command.HasField("request_cancel_local_activity"):
                    cancelled.add(command.request_cancel_local_activity.seq)
                else:
                    commands.append(command)
            if not local or any(end_of(one) is not None for one in commands):
                break
            call = local.pop(0)
            if call.seq in cancelled:
                resolved = _cancelled(call.seq)
            else:
                resolved = await self._resolve(execution, call)
            activations.append(self._activation(execution, [resolved]))
        await step("completes a workflow task")
        done = self._server.complete(execution, attempt, taken, activations, commands)
        if done and execution.is_open:
            self._cache[execution.run_id] = (known + len(activations), instance)
        else:
            _evict(instance)

    def evict_all(self) -> None:
        """Let go of all instances."""
        for _, instance in self._cache.values():
            _evict(instance)
        self._cache.clear()

    def _instance(self, execution: Execution) -> WorkflowInstance:
        """The instance as it was after the last task; made anew from the history if need be."""
        length, kept = self._cache.pop(execution.run_id, (0, None))
        if kept is not None and length == len(execution.history):
            return kept
        if kept is not None:
            _evict(kept)
        made = _RUNNER.create_instance(self._details(execution))
        for one in execution.history:
            _activate(made, one)
        return made

    def _activation(
        self, execution: Execution, jobs: Sequence[WorkflowActivationJob]
    ) -> WorkflowActivation:
        made = WorkflowActivation(run_id=execution.run_id, jobs=jobs)
        made.timestamp.FromDatetime(self._server.now())
        return made

    async def _resolve(self, execution: Execution, call: Any) -> WorkflowActivationJob:
        job = WorkflowActivationJob()
        job.resolve_activity.seq = call.seq
        job.resolve_activity.is_local = True
        result = job.resolve_activity.result
        definition, method = self._activities[call.activity_type]
        arguments = data_converter.payload_converter.from_payloads(
            list(call.arguments), definition.arg_types
        )
        failure: Exception | None = None
        for attempt in range(MOST_ATTEMPTS):
            info = replace(
                INFO,
                workflow_id=execution.id,
                activity_type=call.activity_type,
                attempt=attempt + 1,
                started_time=self._server.now(),
            )
            try:
                value = await as_activity(info, method, *arguments)
            except Exception as error:  # noqa: BLE001  # it is tried again, as by Temporal
                failure = error
                if isinstance(error, ApplicationError) and error.non_retryable:
                    data_converter.failure_converter.to_failure(
                        error, data_converter.payload_converter, result.failed.failure
                    )
                    return job
                continue
            result.completed.result.CopyFrom(payloads_of([value])[0])
            return job
        raise Violation(f"{call.activity_type} of {execution.id} fails: {failure}") from failure

    def _details(self, execution: Execution) -> WorkflowInstanceDetails:
        due = [] if execution.due is None else [SearchAttributePair(DUE, execution.due)]
        info = workflow.Info(
            attempt=1,
            continued_run_id=None,
            cron_schedule=None,
            execution_timeout=None,
            first_execution_run_id=execution.run_id,
            headers={},
            namespace=Client.namespace,
            original_execution_run_id=execution.run_id,
            parent=None,
            root=None,
            priority=Priority(),
            raw_memo=dict(execution.memo),
            retry_policy=None,
            run_id=execution.run_id,
            run_timeout=None,
            search_attributes={},
            start_time=execution.started_at,
            task_queue="automation",
            task_timeout=timedelta(seconds=10),
            typed_search_attributes=TypedSearchAttributes(due),
            workflow_id=execution.id,
            workflow_start_time=execution.started_at,
            workflow_type=execution.type,
        )
        return WorkflowInstanceDetails(
            payload_converter_factory=data_converter._new_payload_converter,
            failure_converter_class=data_converter.failure_converter_class,
            interceptor_classes=(),
            defn=self._workflows[execution.type],
            info=info,
            randomness_seed=execution.number,
            extern_functions=_EXTERN,
            disable_eager_activity_execution=False,
            worker_level_failure_exception_types=(),
            patch_activation_callback=None,
            last_completion_result=Payloads(),
            last_failure=None,
        )


def _cancelled(seq: int) -> WorkflowActivationJob:
    """The end of a local activity that its workflow cancelled before it began."""
    job = WorkflowActivationJob()
    job.resolve_activity.seq = seq
    job.resolve_activity.is_local = True
    failure = job.resolve_activity.result.cancelled.failure
    failure.message = "Activity cancelled"
    failure.canceled_failure_info.SetInParent()
    return job


def _activate(instance: WorkflowInstance, activation: WorkflowActivation) -> list[WorkflowCommand]:
    """The commands of an activation. An instance is an event loop itself, within ours."""
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        completion = instance.activate(activation)
    finally:
        asyncio._set_running_loop(outer)
    if completion.HasField("failed"):
        raise Violation(f"a workflow task failed: {completion.failed.failure.message}")
    return list(completion.successful.commands)


def _evict(instance: WorkflowInstance) -> None:
    job = WorkflowActivationJob()
    job.remove_from_cache.SetInParent()
    _activate(instance, WorkflowActivation(jobs=[job]))
