"""Divergence of code and history: found by a second replay, printed, and opened in pdb."""

import asyncio
import difflib
import json
import pdb  # noqa: T100  # the debugger is what this is about
import sys
from bdb import BdbQuit
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CoroutineType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from rich.table import Table
from temporalio.bridge.proto.workflow_activation import RemoveFromCache, WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client, WorkflowHistory
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

from cli.console import say, terminal
from cli.replay import verdicts as replay_verdicts
from cli.replay.histories import Execution, fetch_history
from cli.replay.reexecution import NOT_COMPARED, SKIPPED
from cli.work_handlers.registry import WORKFLOWS

if TYPE_CHECKING:
    from cli.replay.reexecution import End, Reexecution


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

    recorded: replay_verdicts.Step | None
    requested: replay_verdicts.Step | None
    raised: str
    places: Sequence[str]
    """The current places of the code, as file:line in function."""


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
    """Replay outside the sandbox, writing into `trace`; returns the report of the replayer.

    `at_end` is called before the workflow is discarded.
    """
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_runner=_TracedRunner(trace, at_end),
        data_converter=replay_verdicts.REPLAY_CONVERTER,
        interceptors=[_Listening(trace), *interceptors],
        debug_mode=debug,
        runtime=replay_verdicts.quiet_runtime(),
        build_id=replay_verdicts.BUILD_ID,
    )
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    return result.replay_failure


def divergence(history: WorkflowHistory, trace: Trace) -> Divergence:
    """Compare the recorded commands with the commands of the code.

    After the first difference nothing more of the code is known, so only the first counts.
    """
    recorded, requested = (
        replay_verdicts.recorded_steps(history),
        replay_verdicts.given_steps(trace.commands),
    )
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

        instance.activate = noted  # type: ignore[method-assign]  # of this instance alone
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


ADVICE = """\
Open executions that reached this point would fail the same way. Keep the old code for them with
`if workflow.patched(<CONSTANT>): <new> else: <old>`, and a comment that says when the old code can
be removed. Then replay again. `--debug` stops in the code."""

GONE = """\
Unknown workflow type: {type}. Its open executions would fail. Keep the class registered in
workflows/registry.py until none is left."""

_EXPLAINED = 5
"""Divergences printed in full; the others are named."""

RAISED = """\
The code of this checkout fails on the recorded history. If an earlier build did not, keep its code
for executions that started with it. `--debug` stops where the error is raised."""


def print_verdict(verdict: replay_verdicts.Verdict, divergence: Divergence | None) -> None:
    """Print the verdict on one replay, and what to do about it."""
    end = "is still open" if verdict.end is None else f"ended as {verdict.end}"
    _print(f"{verdict.workflow_type}  {verdict.workflow_id}  ({verdict.execution_id})")
    if verdict.outcome is replay_verdicts.Outcome.SKIPPED:
        _print(f"skipped: {verdict.reason}.")
    elif not verdict.failed:
        _print(f"replays: {verdict.events} events, {end}.")
    elif verdict.workflow_type not in replay_verdicts.KNOWN:
        _print(GONE.format(type=verdict.workflow_type))
    else:
        what = "diverges" if verdict.outcome is replay_verdicts.Outcome.DIVERGES else "raises"
        _print(f"{what}: {verdict.events} events, {end}.")
        if divergence is not None:
            print_divergence(divergence)
        _print(ADVICE if verdict.outcome is replay_verdicts.Outcome.DIVERGES else RAISED)


async def print_failures(client: Client, verdicts: Sequence[replay_verdicts.Verdict]) -> None:
    """Print the executions that do not replay, the first ones with the place of the difference."""
    failures = [verdict for verdict in verdicts if verdict.failed]
    for verdict in failures[:_EXPLAINED]:
        history = await fetch_history(client, Execution(verdict.workflow_id, verdict.execution_id))
        print_verdict(verdict, await explain(history))
    for verdict in failures[_EXPLAINED:]:
        _print(f"also fails: {verdict.workflow_id} ({verdict.execution_id})")


def print_divergence(divergence: Divergence) -> None:
    """Print the place of the first difference."""
    if divergence.recorded is not None:
        step = divergence.recorded
        _print(f"  recorded      event {step.event_id}: {step.words()}")
    if divergence.raised:
        _print(f"  the code      raises: {divergence.raised}")
    elif divergence.requested is not None:
        _print(f"  the code now  requests: {divergence.requested.words()}")
    elif divergence.recorded is not None:
        _print("  the code now  does not request it")
    for place in divergence.places:
        _print(f"  at            {place}")


def print_reexecution(once: "Reexecution") -> None:
    """Print how a node ended when it was executed again, and what differs."""
    before, now = once.before, once.now
    _print(f"{once.name} ({once.kind}), executed again. Nothing was saved.")
    if once.calls:
        _print(f"  external calls {once.calls}")
    if once.is_reached is False:
        _print("  its own code   not reached")
    _print(f"  status         {_both(before.status, now.status)}")
    if before.outcome or now.outcome:
        _print(f"  outcome        {_both(before.outcome, now.outcome)}")
    _print(f"  error          {_both(_failure(before), _failure(now))}")
    for part in ("input", "output", "headers"):
        recorded, present = getattr(before, part), getattr(now, part)
        if part in NOT_COMPARED and present is None:
            # A node that continues an earlier attempt writes no input, and few have headers.
            continue
        differs = "differs"
        if part in NOT_COMPARED:
            differs = "differs (not compared)"
        elif once.has_same_output:
            differs = "same, except for new IDs and times"
        _print(f"  {part:<15}{'same' if recorded == present else differs}")
        if recorded != present:
            lines = difflib.unified_diff(
                _lines(recorded), _lines(present), "recorded", "now", lineterm=""
            )
            for line in lines:
                _print(f"    {line}")


def _both(recorded: str | None, now: str | None) -> str:
    if recorded == now:
        return f"{now or 'none'} (same)"
    return f"{now or 'none'} (recorded: {recorded or 'none'})"


def _failure(end: "End") -> str | None:
    return end.error and f"{end.code}: {end.error}"


def _lines(value: object) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()


def print_summary(verdicts: Sequence[replay_verdicts.Verdict]) -> None:
    """Print the number of executions of each type that replayed, failed or were skipped."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("workflow type")
    for column in ("replayed", "failed", "skipped"):
        table.add_column(column, justify="right")
    for workflow_type in sorted({verdict.workflow_type for verdict in verdicts}):
        of_type = [verdict for verdict in verdicts if verdict.workflow_type == workflow_type]
        counts = Counter(verdict.outcome for verdict in of_type)
        failed = sum(verdict.failed for verdict in of_type)
        table.add_row(
            workflow_type,
            str(counts[replay_verdicts.Outcome.REPLAYS]),
            f"[red]{failed}[/]" if failed else "0",
            str(counts[replay_verdicts.Outcome.SKIPPED]),
        )
    terminal().print(table)


def _print(text: str) -> None:
    say(terminal(), text)


_TROUBLE = frozenset(
    {RemoveFromCache.EvictionReason.NONDETERMINISM, RemoveFromCache.EvictionReason.LANG_FAIL}
)


class ReplayLeftError(Exception):
    """The person left the debugger before the replay ended."""

    retryable = False


async def debug(history: WorkflowHistory) -> tuple[replay_verdicts.Verdict, Divergence | None]:
    """Replay with a prompt at the start of the workflow's run, and one where it diverges.

    There is no sandbox and no deadlock detection, so that `breakpoint()` works everywhere, too.
    Raises LeftError.
    """
    trace = Trace()

    def at_end(eviction: RemoveFromCache) -> None:
        sys.settrace(None)
        left = isinstance(trace.error, BdbQuit)
        if eviction.reason in _TROUBLE and not left:
            print_divergence(divergence(history, trace))
            _post_mortem(trace)

    failure = await traced(history, trace, [_DebuggingInterceptor()], debug=True, at_end=at_end)
    if isinstance(trace.error, BdbQuit):
        raise ReplayLeftError
    verdict = replay_verdicts.judged(history, failure)
    return verdict, divergence(history, trace) if verdict.failed else None


def _post_mortem(trace: Trace) -> None:
    """A prompt in the frames of the exception, else of the task that came furthest."""
    traceback = None if trace.error is None else trace.error.__traceback__
    if traceback is None:
        traceback = _traceback(max(trace.standing, key=len, default=[]))
    if traceback is not None:
        debugger = pdb.Pdb(skip=SKIPPED)
        debugger.reset()
        debugger.interaction(None, traceback)


def _traceback(frames: list[FrameType]) -> TracebackType | None:
    """The traceback an error raised in the last of these suspended frames would have."""
    traceback = None
    for frame in reversed(frames):
        traceback = TracebackType(traceback, frame, max(frame.f_lasti, 0), frame.f_lineno)
    return traceback


class _DebuggingInterceptor(Interceptor):
    """Opens the prompt on the first line of the workflow's run."""

    @override
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return _DebuggingInbound


class _DebuggingInbound(WorkflowInboundInterceptor):
    @override
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        debugger = pdb.Pdb(skip=SKIPPED)
        # As a .pdbrc would say it, so that the first prompt is in the workflow itself.
        debugger.rcLines += ["tbreak input.run_fn", "continue"]
        debugger.set_trace()
        return await super().execute_workflow(input)
