"""Calls of activities as a workflow makes them, and outside calls answered by their record."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from temporalio import activity
from typing_extensions import override

from activities import contracts
from activities.action_runs.transactions import ActionNodeActivities
from activities.automation_runs.nodes.logic import COMPUTATIONS
from activities.automation_runs.nodes.resolution import loop_parameters
from activities.automation_runs.waits import BEGINNINGS
from activities.data_source_runs.steps import CONTINUE, STAGE_AGAIN, DataSourceRunActivities
from activities.parts import Parts
from activities.sources.fetchers import Fetchers
from cli.work_handlers.registry import registrations_of
from models.automation.action_runs.rules import StepStatus
from models.automation.automation_runs.node_writes import RecordedNode
from models.automation.automation_runs.rules import NodeError, NodeStatus
from models.automation.automations.rules.graph.kinds import NodeKind, is_loop
from models.core.base import Id, JsonObject
from models.sources.data_source_runs import execution
from models.sources.data_source_runs.rules import Stage
from runtime.clock import utc_now
from runtime.configuration.sections import MailServer
from runtime.errors import PlatformError
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError, ResponseTooLargeError
from runtime.outbound.mail import Mail, MailClient, Receipt, Refusal
from runtime.outbound.messages import OutboundRequest, OutboundResponse, Sink
from runtime.outbound_policy import Address, OutboundPolicy

CALLS_OUTSIDE = frozenset({NodeKind.HTTP_REQUEST, NodeKind.SEND_EMAIL, NodeKind.SEND_WEBHOOK})

OPEN_STATUSES = {NodeStatus.RUNNING, NodeStatus.WAITING, NodeStatus.CANCELLED, StepStatus.PENDING}
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
        self._call = contracts.NodeCall(str(node.run_id), node.node_id, node.scope_key)

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
            call = contracts.QuickNodesCall(self._call.run_id, ready, applied=-1)
            await self._activities["run_quick_nodes"](call)

    async def _loop(self) -> None:
        """Open a loop, and end it with its recorded iterations."""
        reply = await self._activities["open_loop"](self._call)
        if reply.iterations is not None and self._node.status not in OPEN_STATUSES:
            output = self._node.output or {}
            succeeded = self._node.status == NodeStatus.SUCCEEDED
            opened = output.get("count", reply.iterations.count)
            await self._activities["close_loop"](
                contracts.LoopEndCall(self._call, succeeded, opened)
            )

    async def _wait(self, kind: str) -> None:
        """Begin a wait, and end it as it ended."""
        if kind == NodeKind.ACTION:
            reply = await self._activities["begin_action_node"](self._call)
        else:
            now = (self._node.started_at or utc_now()).timestamp()
            reply = await self._activities["park_node"](contracts.ParkCall(self._call, now))
        if reply.state is contracts.NodeState.WAITING and self._node.status not in OPEN_STATUSES:
            wake = "end_action_node" if kind == NodeKind.ACTION else "wake_node"
            call = contracts.WakeCall(self._call.run_id, self._call.node_id, self._call.scope_key)
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


def code_of_kind(parts: Parts, kind: str) -> Sequence[Callable[..., Any]]:
    """The functions that a kind of node is written in."""
    functions: Mapping[str, Callable[..., Any]] = {
        **COMPUTATIONS,
        **parts.writes,
        **parts.calls,
        **BEGINNINGS,
        NodeKind.ACTION: ActionNodeActivities.begin,
    }
    return [functions.get(kind, loop_parameters)]


class NotRecordedError(OutboundError):
    """No answer was kept of a call that is made now."""

    code = "not_recorded"

    def __init__(self) -> None:
        super().__init__("No answer was recorded for this call.")


class RecordedAnswer:
    """The record of the call of a node or a step: its output, or its failure."""

    def __init__(
        self, output: JsonObject | None, error_code: str | None, error: str | None
    ) -> None:
        self.output = output or {}
        self._failure = None if error_code is None else (error_code, error or error_code)
        self.is_missing = False
        """True once a call found nothing that was recorded."""

    def response(self, url: str) -> OutboundResponse:
        """The answer of an HTTP server. Raises OutboundError."""
        is_kept = "status" in self.output and self.output.get("file") is None
        if not is_kept or (self._has_failed and self.output.get("body") is None):
            self.fail()
        headers: Mapping[str, str] = self.output.get("headers") or {}
        response = OutboundResponse(
            status=self.output["status"], headers=headers, body=b"", bytes_received=0, final_url=url
        )
        return replace(response, body=_bytes(response, self.output))

    @property
    def _has_failed(self) -> bool:
        return self._failure is not None and _is_of_call(self._failure[0])

    def fail(self) -> NoReturn:
        """Raise the recorded failure of the call, else NotRecordedError."""
        if self._failure is not None and self._has_failed:
            raise _failed(*self._failure, self.output)
        self.is_missing = True
        raise NotRecordedError


class RecordedClient(OutboundClient):
    """Answers HTTP calls, and refuses calls of other protocols."""

    def __init__(self, policy: OutboundPolicy, answer: RecordedAnswer) -> None:
        super().__init__(policy)
        self._recorded = answer

    @override
    async def send(self, request: OutboundRequest, sink: Sink | None = None) -> OutboundResponse:
        response = self._recorded.response(request.url)
        if sink is not None:
            await sink(response.body)
        return response

    @override
    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        return self._recorded.fail()


class RecordedMail(MailClient):
    """Answers for a mail server."""

    def __init__(self, server: MailServer, policy: OutboundPolicy, answer: RecordedAnswer) -> None:
        super().__init__(server, policy)
        self._recorded = answer

    @override
    async def send(self, mail: Mail) -> Receipt:
        output = self._recorded.output
        if "messageId" not in output:
            self._recorded.fail()
        refused = [Refusal(one["address"], one["status"]) for one in output["refused"]]
        return Receipt(output["accepted"], refused)


def mail_server(settings: MailServer | None, answer: RecordedAnswer) -> MailServer | None:
    """The server of the settings, or one that knows the sender of the mail that was accepted."""
    domain = str(answer.output.get("messageId", "")).strip("<>").rpartition("@")[2]
    if settings is None and domain:
        return MailServer(host=domain, port=25, sender=f"recorded@{domain}")
    return settings


def _bytes(response: OutboundResponse, output: JsonObject) -> bytes:
    """The body that was read as what the output has."""
    body, encoding = output.get("body"), output.get("bodyEncoding")
    if body is None and encoding is None:
        return b""
    if encoding == "base64":
        return base64.b64decode(str(body))
    if encoding == "text":
        return str(body).encode(response.content_type.charset or "utf-8", "replace")
    return json.dumps(body).encode()


def _is_of_call(code: str) -> bool:
    """True for the code of a failure by which a call has no answer."""
    return code.startswith("smtp_") or code in _by_code()


def _by_code() -> Mapping[str, type[OutboundError]]:
    """The kinds of failures of calls, the most general of each code."""
    kinds: dict[str, type[OutboundError]] = {}
    waiting: list[type[OutboundError]] = [OutboundError]
    while waiting:
        kind = waiting.pop(0)
        kinds.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return kinds


def _failed(code: str, message: str, output: JsonObject) -> PlatformError:
    """The failure as it was raised, with the message that was shown."""
    kind = _by_code().get(code)
    if kind is None:
        return NodeError(code, message)
    error = kind.__new__(kind)
    OutboundError.__init__(error, message)
    if isinstance(error, ResponseTooLargeError) and "status" in output:
        error.head = output["status"], output["headers"]
    return error
