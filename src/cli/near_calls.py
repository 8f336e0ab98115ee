"""Calls of outside servers made by the worker that executes their workflow, while it has room.

Temporal hands an activity over with the answer to the workflow task that schedules it, where both
have one queue and the worker a free slot. On a queue of its own it costs another write and a poll.
What is handed over comes without its priority, which therefore stands in a header.
"""

from dataclasses import replace
from typing import Any

from temporalio import workflow
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle
from typing_extensions import override

from runtime.fairness import header_of
from runtime.families import Queue


class NearCallInterceptor(Interceptor):
    """Leaves what workflows put on `io` on their own queue; replays need not do the same."""

    @override
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    @override
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    @override
    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:
        if input.task_queue != Queue.IO:
            return super().start_activity(input)
        headers = {**input.headers, **header_of(workflow.info().priority)}
        return super().start_activity(replace(input, task_queue=None, headers=headers))
