"""Runs and node runs on the wire, and their metadata."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from models.automation.automation_runs.rules import OPEN_RUN, NodeStatus, RunSource, RunStatus
from models.automation.automations.rules.attributes import Attributes
from models.automation.automations.rules.graph.configs import MAX_ITEMS
from models.core.base import Id, Input, InputId, JsonObject, Moment, Nullable, Shape, example
from models.core.openapi import COUNT, FLAG, ID, MOMENT, TEMPORAL, TEXT, array_of, object_of
from models.core.pagination import Listed
from models.core.pauses.store import WAITING_FOR

_WAITING = object_of(
    "nodeId scopeKey reason", nodeId=TEXT, scopeKey=TEXT, reason=TEXT, until=MOMENT
)

_QUESTION = object_of(
    "key label", key=TEXT, label=TEXT, kind=TEXT, required=FLAG, options=array_of(TEXT)
)

SCHEDULE_NOTE = "scheduleNote"
"""Among the options and in the metadata of a run: why its due time differs from the expression."""

REDACTED_PATHS = "redactedPaths"
"""Among the options and in the metadata of a run: where its payload lacks the values that came."""

RunMetadata = Annotated[
    JsonObject,
    WithJsonSchema(
        object_of(
            "temporalWorkflowId chain waiting",
            temporalWorkflowId=TEXT,
            failureRunId=ID,
            operationId=ID,
            scheduleNote=TEXT,
            redactedPaths=array_of(TEXT),
            parentRunId=ID,
            chain=array_of(ID),
            concurrencyKey=TEXT,
            admittedAt=MOMENT,
            waitingForWorkerSince=MOMENT,
            waiting=array_of(_WAITING),
            waitingFor=WAITING_FOR,
            progress=object_of("done total", done=COUNT, total=COUNT),
            trimmed=FLAG,
            temporal=TEMPORAL,
            pageUrl=TEXT,
        )
    ),
]
"""`progress` and `trimmed` are given of a single run, and in no list.

The metadata says how a run is executed, and what it waits for. `redactedPaths` are the places of
the payload of a replayed event where `[redacted]` is in place of what came.
"""

NodeRunMetadata = Annotated[
    JsonObject,
    WithJsonSchema(
        object_of(
            "",
            reused=FLAG,
            errorCode=TEXT,
            lastError=TEXT,
            wait=object_of(
                "",
                eventKey=TEXT,
                byUrl=FLAG,
                resumeUrl=TEXT,
                assignees=array_of(ID),
                role=TEXT,
                form=array_of(_QUESTION),
                required=COUNT,
                allowEditors=FLAG,
                decisions=array_of(
                    object_of("decision at", userId=ID, decision=TEXT, comment=TEXT, at=MOMENT)
                ),
                resolution=TEXT,
            ),
        )
    ),
]
"""`wait` is that of a node that waits, or waited, for an event or for people."""


class RunNow(Input):
    """Body of run now."""

    model_config = example({"triggerPayload": {"name": "Ada"}, "attributes": {"order": "4711"}})

    trigger_payload: JsonObject | None = None
    attributes: Attributes = Field(default_factory=dict)
    """Short texts to find the run by."""


MOST_RUNS = 1_000
"""Runs of one batch."""


class RunBatch(Input):
    """Body of run batch: the payloads of up to 1,000 runs, and the attributes of each."""

    model_config = example({"payloads": [{"name": "Ada"}, {"name": "Grace"}]})

    payloads: Annotated[list[JsonObject], Field(min_length=1, max_length=MOST_RUNS)]
    attributes: Annotated[list[Attributes], Field(max_length=MOST_RUNS)] | None = None
    """As many as there are payloads, in the same order."""

    @model_validator(mode="after")
    def _for_each_payload(self) -> Self:
        if self.attributes is not None and len(self.attributes) != len(self.payloads):
            raise ValueError("attributes and payloads must have the same length")
        return self


class PayloadFault(Shape):
    """A part of a payload that the input schema of the trigger refuses."""

    path: str
    message: str


class BatchedRun(Shape):
    """The answer for one payload: its run, or the reason why none was started."""

    accepted: bool
    run_id: Id | None = None
    status: RunStatus | None = None
    error: str | None = None
    """The code of the refusal."""
    message: str | None = None
    details: list[PayloadFault] | None = None


class RunsBatched(Shape):
    """The numbers of payloads accepted and refused, and `results` in the order of the payloads."""

    id: Id
    """The id of the batch, under which its runs can be read together."""
    accepted: int
    refused: int
    results: list[BatchedRun]


class RunOfBatch(Shape):
    """One run of a batch."""

    run_id: Id
    status: RunStatus


class RunBatchDetail(Shape):
    """The runs of a batch as they are now; it has ended when none is `open`.

    `statuses` has the number of runs by status. Runs that were removed are not counted.
    """

    id: Id
    created_at: Moment
    accepted: int
    open: int
    statuses: dict[RunStatus, int]
    runs: list[RunOfBatch]

    def open_ids(self) -> Iterator[Id]:
        """The ids of the runs that have not ended."""
        return (run.run_id for run in self.runs if run.status in OPEN_RUN)


class TestRun(Input):
    """Body of test-run. Payload choice: explicit, then `testPayloadId`, then the first, then {}."""

    model_config = example({"payload": {"name": "Ada"}, "simulate": True})

    payload: JsonObject | None = None
    trigger_payload: JsonObject | None = None
    test_payload_id: str | None = None
    stop_at_node_id: str | None = None
    mocks: dict[str, JsonObject] = Field(default_factory=dict, max_length=200)
    simulate: bool = False
    trigger_failure_automation: bool = False
    automation_version_id: InputId | None = None


class RunScope(Input):
    """Values for the bindings of a run from a node; `trigger` is the payload."""

    trigger: Any = None
    item: Any = None
    index: Annotated[int, Field(ge=0, lt=MAX_ITEMS)] | None = None
    variables: JsonObject = Field(default_factory=dict)


class RunFromNode(Input):
    """Body of run-from-node.

    `nodes` as an object pins outputs, as an array restricts execution to those ids; `scope` is
    the binding context of the run's own scope.
    """

    model_config = example({"nodeId": "pause", "nodes": {"greet": {"text": "Hello Ada!"}}})

    node_id: Annotated[str, Field(min_length=1, max_length=64)]
    automation_version_id: InputId | None = None
    scope: RunScope | str | None = None
    nodes: JsonObject | list[str] | None = None
    replay_of_run_id: InputId | None = None
    trigger_payload: JsonObject | None = None


class NodeRunShape(Shape):
    """One node in one scope; `attempt` counts the last attempt from 1.

    While a node runs, `metadata.lastError` says why the attempt before failed.
    """

    id: Id
    run_id: Id
    node_id: str
    node_kind: str
    scope_key: str
    status: NodeStatus
    attempt: int
    input: JsonObject | None
    output: JsonObject | None
    error: str | None
    started_at: Moment | None
    completed_at: Moment | None
    metadata: NodeRunMetadata


class NodeRunAttemptShape(Shape):
    """An attempt of a node that did not succeed and was followed by another."""

    attempt: int
    error: str
    error_code: str
    started_at: Moment
    completed_at: Moment


class NodeRunWithAttempts(NodeRunShape):
    """One node in one scope with the attempts that failed before its last."""

    attempts: list[NodeRunAttemptShape]


class NodeRunList(Listed):
    node_runs: list[NodeRunWithAttempts]


class AutomationRunShape(Shape):
    """One run without its node runs, as lists show it."""

    id: Id
    automation_id: Id
    automation_version_id: Id
    workspace_id: Id
    status: RunStatus
    source: RunSource
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    trigger_payload: JsonObject
    attributes: dict[str, str] | None = None
    output: JsonObject | None
    error: str | None
    start_node_id: str | None
    replay_of_run_id: Id | None
    metadata: RunMetadata


class AutomationRunDetail(AutomationRunShape):
    """One run with its node runs, in the order they began.

    The node runs that a queued run starts with are `queued`, with `attempt` 0.
    Of very many or very large node runs only the most relevant are included, and
    `metadata.trimmed` says so. It also says when outputs in `output` are null for lack of room.
    `metadata.waitingForWorkerSince` is set while the run is stuck because its worker is lost.
    """

    node_runs: list[NodeRunShape]


class AutomationRunList(Shape):
    """A page of runs.

    Filters without an index search ten thousand runs per page. `searchedUntil` is the moment of the
    last of them if the page ends there; the next page continues from it.
    """

    runs: list[AutomationRunShape]
    cursor: Nullable[str]
    searched_until: Moment | None = None


class RetryRun(Input):
    """Body of retry: everything again, or what failed; on the version of then or of now.

    `cancelFirst` ends a run that is still open.
    """

    model_config = example({"from": "failed", "version": "original"})

    from_: Annotated[Literal["failed", "start"], Field(alias="from")] = "failed"
    version: Literal["original", "published", "draft"] = "original"
    cancel_first: bool = False
