"""Calls that leave the machine are handed to the worker that executes their workflow."""

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from runtime.temporal.executions import FAIRNESS_HEADER
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine, graph, node


async def test_a_call_is_on_the_queue_of_its_workflow_and_names_its_workspace(
    engine: Engine, serve: Serve
) -> None:
    server = await serve(reply(200))
    run = await engine.run(graph(node("call", "http_request", url=server.url)))
    assert run.status == "succeeded"
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run.id))
    events: list[HistoryEvent] = [event async for event in handle.fetch_history_events()]
    (call,) = (
        event.activity_task_scheduled_event_attributes
        for event in events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    )
    assert call.task_queue.name == Queue.AUTOMATION
    key = f"{engine.actor.workspace_id}/{WorkflowKind.AUTOMATION_RUN}"
    assert call.header.fields[FAIRNESS_HEADER].data.decode() == key
