"""The activities and steps of workers, called for one piece of work as its workflow calls them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.action_runs.nodes import ActionNodeActivities
from activities.automation_runs.loop_parameters import loop_parameters
from activities.automation_runs.nodes.logic import COMPUTATIONS
from activities.automation_runs.waits import BEGINNINGS
from activities.contracts import NodeCall, NodeState, ParkCall, QuickNodesCall, WakeCall
from activities.data_source_runs.steps import CONTINUE, STAGE_AGAIN, DataSourceRunActivities
from activities.loop_contracts import LoopEndCall
from activities.parts import Parts
from activities.sources.fetchers import Fetchers
from cli.families.registry import registrations_of
from models.automation.action_runs.rules import StepStatus
from models.automation.automation_runs.reopening import RecordedNode
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automations.rules.graph.kinds import NodeKind, is_loop
from models.core.base import Id
from models.sources.data_source_runs.commands import execution
from models.sources.data_source_runs.rules import Stage
from runtime.clock import utc_now

CALLS_OUTSIDE = frozenset({NodeKind.HTTP_REQUEST, NodeKind.SEND_EMAIL, NodeKind.SEND_WEBHOOK})
OPEN = {NodeStatus.RUNNING, NodeStatus.WAITING, NodeStatus.CANCELLED, StepStatus.PENDING}
"""The states in which nothing is recorded of how a wait ends."""
CODE_OF_STAGES: Sequence[Callable[..., Any]] = (
    Fetchers.fetch,
    DataSourceRunActivities._read,  # where the rows of a run are read
    execution.apply_run,
)
"""The functions that the stages of a refresh or an import are written in."""


class NodeActivities:
    """The activities that a workflow calls for one node, in their order."""

    def __init__(self, parts: Parts, node: RecordedNode) -> None:
        queues = registrations_of(parts).activities.values()
        self._activities = {
            activity._Definition.must_from_callable(one).name: one
            for queue in queues
            for one in queue
        }
        self._node = node
        self._call = NodeCall(str(node.run_id), node.node_id, node.scope_key)

    async def execute(self) -> None:
        kind = self._node.node_kind
        if kind in CALLS_OUTSIDE:
            await self._activities[kind](self._call)
        elif is_loop(kind):
            await self._loop()
        elif kind in BEGINNINGS or kind == NodeKind.ACTION:
            await self._wait(kind)
        else:
            ready = [(self._node.node_id, self._node.scope_key)]
            # Nothing was applied so often: the nodes that follow are not executed.
            call = QuickNodesCall(self._call.run_id, ready, applied=-1)
            await self._activities["run_quick_nodes"](call)

    async def _loop(self) -> None:
        """Open a loop, and end it with what is recorded of its iterations."""
        reply = await self._activities["open_loop"](self._call)
        if reply.iterations is not None and self._node.status not in OPEN:
            output = self._node.output or {}
            succeeded = self._node.status == NodeStatus.SUCCEEDED
            opened = output.get("count", reply.iterations.count)
            await self._activities["close_loop"](LoopEndCall(self._call, succeeded, opened))

    async def _wait(self, kind: str) -> None:
        """Begin a wait, and end it as it ended."""
        if kind == NodeKind.ACTION:
            reply = await self._activities["begin_action_node"](self._call)
        else:
            now = (self._node.started_at or utc_now()).timestamp()
            reply = await self._activities["park_node"](ParkCall(self._call, now))
        if reply.state is NodeState.WAITING and self._node.status not in OPEN:
            wake = "end_action_node" if kind == NodeKind.ACTION else "wake_node"
            call = WakeCall(self._call.run_id, self._call.node_id, self._call.scope_key)
            await self._activities[wake](call)


async def execute_stages(steps: DataSourceRunActivities, run_id: Id, last: Stage) -> None:
    stages: Mapping[Stage, Callable[[str], Any]] = {
        Stage.FETCH: steps.fetch,
        Stage.STAGE: steps.stage,
        Stage.APPLY: steps.apply,
    }
    for stage, execute in stages.items():
        reply = await execute(str(run_id))
        if reply.status not in {CONTINUE, STAGE_AGAIN} or stage is last:
            return


def own_code(parts: Parts, kind: str) -> Sequence[Callable[..., Any]]:
    """The functions that a kind of node is written in."""
    functions: Mapping[str, Callable[..., Any]] = {
        **COMPUTATIONS,
        **parts.writes,
        **parts.calls,
        **BEGINNINGS,
        NodeKind.ACTION: ActionNodeActivities.begin,
    }
    return [functions.get(kind, loop_parameters)]
