"""Prints what a replay found, and what to do about it."""

import difflib
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from temporalio.client import Client

from cli.console import say, terminal
from cli.replay.divergence import Divergence, explain
from cli.replay.executions import Execution, fetch
from cli.replay.verdicts import KNOWN, Outcome, Verdict

if TYPE_CHECKING:
    from cli.replay.once import End, Once

ADVICE = """\
An execution that is open now and has come this far would fail the same way. Keep the old way for
it by `if workflow.patched(<CONSTANT>): <new> else: <old>`, with a comment that says when the old
way may go. Then replay again. `--debug` stops in the code."""

GONE = """\
This checkout has no workflow of the type {type}. Executions of it that are open would fail: keep
the class, registered in workflows/registry.py, until none is left."""

_EXPLAINED = 5
"""Divergences told in full; the others are named."""

RAISED = """\
The code of this checkout cannot carry on what was recorded. If an earlier build could, keep its way
for executions that began with it; `--debug` stops where it is raised."""


def print_verdict(verdict: Verdict, divergence: Divergence | None) -> None:
    """Print the verdict on one replay, and what to do about it."""
    end = "is still open" if verdict.end is None else f"ended as {verdict.end}"
    _print(f"{verdict.workflow_type}  {verdict.workflow_id}  ({verdict.execution_id})")
    if verdict.outcome is Outcome.SKIPPED:
        _print(f"skipped: {verdict.reason}.")
    elif not verdict.failed:
        _print(f"replays: {verdict.events} events, {end}.")
    elif verdict.workflow_type not in KNOWN:
        _print(GONE.format(type=verdict.workflow_type))
    else:
        what = "diverges" if verdict.outcome is Outcome.DIVERGES else "raises"
        _print(f"{what}: {verdict.events} events, {end}.")
        if divergence is not None:
            print_divergence(divergence)
        _print(ADVICE if verdict.outcome is Outcome.DIVERGES else RAISED)


async def print_failures(client: Client, verdicts: Sequence[Verdict]) -> None:
    """Print the executions that do not replay, the first ones with the place where they part."""
    failures = [verdict for verdict in verdicts if verdict.failed]
    for verdict in failures[:_EXPLAINED]:
        history = await fetch(client, Execution(verdict.workflow_id, verdict.execution_id))
        print_verdict(verdict, await explain(history))
    for verdict in failures[_EXPLAINED:]:
        _print(f"also fails: {verdict.workflow_id} ({verdict.execution_id})")


def print_divergence(divergence: Divergence) -> None:
    """Print the place at which the two sides part."""
    if divergence.recorded is not None:
        step = divergence.recorded
        _print(f"  recorded      event {step.event_id}: {step.words()}")
    if divergence.raised:
        _print(f"  the code      raises: {divergence.raised}")
    elif divergence.requested is not None:
        _print(f"  the code now  asks for: {divergence.requested.words()}")
    elif divergence.recorded is not None:
        _print("  the code now  does not ask for it")
    for place in divergence.places:
        _print(f"  at            {place}")


def print_once(once: "Once") -> None:
    """Print how a node ended when it was executed once more, and how that differs."""
    before, now = once.before, once.now
    _print(f"{once.name} ({once.kind}), executed once more. Nothing was kept.")
    if once.calls:
        _print(f"  outside calls  {once.calls}")
    if once.is_reached is False:
        _print("  its own code   was not reached: it ended before")
    _print(f"  status         {_both(before.status, now.status)}")
    if before.outcome or now.outcome:
        _print(f"  outcome        {_both(before.outcome, now.outcome)}")
    _print(f"  error          {_both(_failure(before), _failure(now))}")
    for what in ("input", "output"):
        recorded, present = getattr(before, what), getattr(now, what)
        if what == "input" and present is None:
            # A node that goes on with what it began before writes none.
            continue
        _print(f"  {what:<15}{'same' if recorded == present else 'differs'}")
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


def summarise(verdicts: Sequence[Verdict]) -> None:
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
            str(counts[Outcome.REPLAYS]),
            f"[red]{failed}[/]" if failed else "0",
            str(counts[Outcome.SKIPPED]),
        )
    terminal().print(table)


def _print(text: str) -> None:
    say(terminal(), text)
