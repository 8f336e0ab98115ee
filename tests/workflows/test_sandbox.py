"""What the workflow runner leaves out, and what it does not."""

import time
import uuid
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowFailureError
from temporalio.converter import SerializationContext, WithSerializationContext
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import (
    RestrictedWorkflowAccessError,
    SandboxRestrictions,
)

from runtime.temporal.executions import data_converter
from workflows.runners import sandboxed_runner


@workflow.defn
class LooksAtTheClock:
    """What replays differently every time."""

    @workflow.run
    async def run(self) -> float:
        return time.time()


@pytest.mark.long
async def test_a_workflow_cannot_look_at_the_clock(temporal: WorkflowEnvironment) -> None:
    queue = f"sandbox-{uuid.uuid4()}"
    async with Worker(
        temporal.client,
        task_queue=queue,
        workflows=[LooksAtTheClock],
        workflow_runner=sandboxed_runner(),
        workflow_failure_exception_types=[RestrictedWorkflowAccessError],
    ):
        with pytest.raises(WorkflowFailureError) as failed:
            await temporal.client.execute_workflow(LooksAtTheClock.run, id=queue, task_queue=queue)
    assert "RestrictedWorkflowAccessError" in str(failed.value.cause)


def test_nothing_is_passed_through_by_name() -> None:
    own = SandboxRestrictions.default.passthrough_modules
    assert sandboxed_runner().restrictions.passthrough_modules == own


def test_nothing_that_converts_payloads_asks_what_they_belong_to() -> None:
    assert data_converter.payload_codec is None
    assert data_converter.external_storage is None
    context = SerializationContext()
    composite: Any = data_converter.payload_converter_class()
    for converter in composite.converters.values():
        asks = isinstance(converter, WithSerializationContext)
        assert not asks or converter.with_context(context) is converter
