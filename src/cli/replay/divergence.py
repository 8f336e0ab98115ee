"""Finds where code and history differ, by a second replay that records what the code does."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CoroutineType, FrameType, TracebackType
from typing import Any

from temporalio.bridge.proto.workflow_activation import RemoveFromCache, WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)
from typing_extensions import override

from cli.families.registry import WORKFLOWS
from cli.replay.steps import Step, given_steps, recorded_steps
from cli.replay.verdicts import BUILD_ID, REPLAY_CONVERTER, quiet_runtime

WORKFLOW_SOURCE = Path(__file__).parents[2] / "workflows"


@dataclass(slots=True)
class Trace:
    """The trace of the code while a history was replayed."""

    commands: list[WorkflowCommand] = field(default_factory=list)
    raised: str = ""
    error: Exception | None = None
    """The error of the workflow's run, if that is what ended the replay."""
    standing: list[list[FrameType]] = field(default_factory=list)
    """The frames of workflow code of each task that waits, outermost first."""
    places: list[str] = field(default_factory=list)
    """The place each task waits at; written at once, because taking the workflow down moves on."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first step of each side that the other does not know."""

    recorded: Step | None
    requested: Step | None
    raised: str
    places: Sequence[str]
    """The places the code stands at, as file:line in function."""


async def explain(history: WorkflowHistory) -> Divergence:
    """Replay a history that does not replay once more, to see where."""
    trace = Trace()
    await traced(history, trace)
    return divergence(history, trace)


async def traced(
    history: WorkflowHistory,
    trace: Trace,
    interceptors: Sequence[Interceptor] = (),
    *,
    debug: bool = False,
    at_end: Callable[[RemoveFromCache], None] | None = None,
) -> Exception | None:
    """Replay outside the sandbox, writing into `trace`; gives what the replayer reported.

    `at_end` is called while the workflow still stands where the replay left it.
    """
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_runner=_TracedRunner(trace, at_end),
        data_converter=REPLAY_CONVERTER,
        interceptors=[_Listening(trace), *interceptors],
        debug_mode=debug,
        runtime=quiet_runtime(),
        build_id=BUILD_ID,
    )
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    return result.replay_failure


def divergence(history: WorkflowHistory, trace: Trace) -> Divergence:
    """Compare what was recorded with what the code gave.

    After the first difference nothing more of the code is known, so only the first counts.
    """
    recorded, requested = recorded_steps(history), given_steps(trace.commands)
    places = trace.places
    if trace.raised and trace.error is not None:
        places = [_place(frame) for frame in _frames_of(trace.error.__traceback__)[-1:]]
    return Divergence(
        recorded=next((step for step in recorded if step not in requested), None),
        requested=next((step for step in requested if step not in recorded), None),
        raised=trace.raised,
        places=list(dict.fromkeys(places)),
    )


def _place(frame: FrameType) -> str:
    """The place of a frame, as an editor opens it."""
    path = Path(frame.f_code.co_filename)
    inside = path.relative_to(WORKFLOW_SOURCE).as_posix()
    return f"src/workflows/{inside}:{frame.f_lineno} in {frame.f_code.co_qualname}"


def _frames_of(traceback: TracebackType | None) -> list[FrameType]:
    """The frames of workflow code that an error passed through, outermost first."""
    frames = []
    while traceback is not None:
        if _is_workflow_code(traceback.tb_frame):
            frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames


def _is_workflow_code(frame: FrameType) -> bool:
    return WORKFLOW_SOURCE in Path(frame.f_code.co_filename).parents


class _Listening(Interceptor):
    """Keeps what the workflow's run raises."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @override
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        trace = self._trace

        class Inbound(WorkflowInboundInterceptor):
            @override
            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
                try:
                    return await super().execute_workflow(input)
                except Exception as error:
                    trace.error = error
                    raise

        return Inbound


class _TracedRunner(WorkflowRunner):
    """Runs workflows outside the sandbox and notes every command."""

    def __init__(
        self, trace: Trace, at_end: Callable[[RemoveFromCache], None] | None = None
    ) -> None:
        self._trace = trace
        self._at_end = at_end
        self._runner = UnsandboxedWorkflowRunner()

    @override
    def prepare_workflow(self, defn: Any) -> None:
        self._runner.prepare_workflow(defn)

    @override
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = self._runner.create_instance(det)
        activate = instance.activate

        def noted(act: WorkflowActivation) -> WorkflowActivationCompletion:
            if act.jobs and act.jobs[0].HasField("remove_from_cache"):
                if self._at_end is not None:
                    self._at_end(act.jobs[0].remove_from_cache)
                return activate(act)
            completion = activate(act)
            self._trace.commands += completion.successful.commands
            self._trace.raised = completion.failed.failure.message
            self._trace.standing = [task for task in _standing(instance) if task]
            self._trace.places = [_place(task[-1]) for task in self._trace.standing]
            return completion

        instance.activate = noted  # type: ignore[method-assign]
        return instance


def _standing(instance: WorkflowInstance) -> Iterator[list[FrameType]]:
    """The frames of each suspended task: an instance is its own event loop."""
    assert isinstance(instance, asyncio.AbstractEventLoop)
    for task in sorted(asyncio.all_tasks(instance), key=lambda task: task.get_name()):
        frames = []
        awaited: Any = task.get_coro()
        while isinstance(awaited, CoroutineType):
            if awaited.cr_frame is not None and _is_workflow_code(awaited.cr_frame):
                frames.append(awaited.cr_frame)
            awaited = awaited.cr_await
        yield frames
