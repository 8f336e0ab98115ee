"""A replay under pdb: it stops where the workflow begins, and where code and history part."""

import pdb  # noqa: T100  # the debugger is what this is about
import sys
from bdb import BdbQuit
from types import FrameType, TracebackType
from typing import Any

from temporalio.bridge.proto.workflow_activation import RemoveFromCache
from temporalio.client import WorkflowHistory
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)
from typing_extensions import override

from cli.replay.divergence import Divergence, Trace, divergence, traced
from cli.replay.own_code import SKIPPED
from cli.replay.report import print_divergence
from cli.replay.verdicts import Verdict, judged

_TROUBLE = frozenset(
    {RemoveFromCache.EvictionReason.NONDETERMINISM, RemoveFromCache.EvictionReason.LANG_FAIL}
)


class LeftError(Exception):
    """The person left the debugger before the replay ended."""

    retryable = False


async def debug(history: WorkflowHistory) -> tuple[Verdict, Divergence | None]:
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

    failure = await traced(history, trace, [_Stopping()], debug=True, at_end=at_end)
    if isinstance(trace.error, BdbQuit):
        raise LeftError
    verdict = judged(history, failure)
    return verdict, divergence(history, trace) if verdict.failed else None


def _post_mortem(trace: Trace) -> None:
    """A prompt in the frames of what was raised, else of the task that came furthest."""
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


class _Stopping(Interceptor):
    """Opens the prompt on the first line of the workflow's run."""

    @override
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    @override
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        debugger = pdb.Pdb(skip=SKIPPED)
        # As a .pdbrc would say it, so that the first prompt is in the workflow itself.
        debugger.rcLines += ["tbreak input.run_fn", "continue"]
        debugger.set_trace()
        return await super().execute_workflow(input)
