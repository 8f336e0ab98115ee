"""`workspace replay` and `workspace history`: recorded executions, judged or saved."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import complain, terminal

if TYPE_CHECKING:
    from temporalio.client import WorkflowHistory

    from cli.replay.reexecution import Options
    from cli.replay.verdicts import Recent


STATE_DIR = typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of a local platform.")
ADDRESS = typer.Option(
    envvar="TEMPORAL_ADDRESS", help="Address of Temporal. Default: that of the local platform."
)
EXECUTION = typer.Option("--execution", help="Temporal run ID, if the workflow ID has several.")

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}

Since = Annotated[
    str | None,
    typer.Option(help="Replay executions open, started or ended in this period: 90m, 24h, 7d."),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Break in pdb at the start of the workflow, or of --node."),
]
Children = Annotated[bool, typer.Option("--children", help="Also replay child workflows.")]
Type = Annotated[str | None, typer.Option("--type", help="With --since: workflow type.")]
Limit = Annotated[int | None, typer.Option(min=1, help="With --since: maximum number.")]
Parallel = Annotated[int, typer.Option(min=1, max=64, help="With --since: parallel processes.")]
Node = Annotated[
    str | None,
    typer.Option(
        help="Execute a node or action step again without saving anything. For a refresh or"
        " import, the last stage: fetch, stage or apply."
    ),
]
Scope = Annotated[str | None, typer.Option(help="With --node: loop iteration, e.g. items:3.")]
Live = Annotated[
    bool,
    typer.Option("--live", help="With --node: make real external calls."),
]
Rows = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="With --node of a refresh or import: file with the rows to read.",
    ),
]


def replay(
    name: Annotated[
        str | None,
        typer.Argument(help="ID of a run, action run, job or workflow, or a history file."),
    ] = None,
    *,
    since: Since = None,
    debug: Debug = False,
    children: Children = False,
    execution: Annotated[str | None, EXECUTION] = None,
    workflow_type: Type = None,
    limit: Limit = None,
    parallel: Parallel = 1,
    node: Node = None,
    scope: Scope = None,
    live: Live = False,
    rows: Rows = None,
    state_dir: Annotated[Path, STATE_DIR] = Path(".state"),
    temporal_address: Annotated[str | None, ADDRESS] = None,
) -> None:
    """Replay executions against the code of this checkout, or execute one node again.

    Exits with 1 if an execution diverges or the node ends differently, and with 2 if there is
    nothing to replay.
    """
    from cli.replay.histories import reported_errors, sdk_logs_muted
    from cli.replay.reexecution import Options
    from cli.replay.verdicts import Recent

    if bool(name) == (since is not None):
        raise typer.BadParameter("Enter one execution, or use --since.")
    options = Options(scope, live, debug, rows)
    _check(node, options, is_one_run=since is None)
    with reported_errors(), sdk_logs_muted():
        if name is None:
            selection = Recent(_period(since or ""), workflow_type, limit, parallel)
            passed = asyncio.run(_gate(state_dir, temporal_address, selection))
        elif node is not None:
            passed = _reexecute(state_dir, name, node, options)
        else:
            histories = asyncio.run(
                _named(state_dir, temporal_address, name, execution, children=children)
            )
            passed = asyncio.run(_debug(histories) if debug else _judge(histories))
    raise typer.Exit(0 if passed else 1)


def _check(node: str | None, options: "Options", *, is_one_run: bool) -> None:
    """Raise BadParameter for options that do not go together."""
    if node is None and options.debug and not is_one_run:
        raise typer.BadParameter("--debug needs one execution instead of --since.")
    if node is None and (options.scope is not None or options.live or options.rows is not None):
        raise typer.BadParameter("--scope, --live and --rows need --node.")
    if node is not None and not is_one_run:
        raise typer.BadParameter("--node needs the ID of one run.")


def _reexecute(state_dir: Path, run: str, node: str, options: "Options") -> bool:
    from cli.doctor import settings_of
    from cli.replay.divergence import print_reexecution
    from cli.replay.reexecution import DebuggerLeft, Request, reexecute
    from runtime.ids import parse_id
    from runtime.observability.logs import configure_logging

    run_id = parse_id(run)
    if run_id is None:
        raise typer.BadParameter(f"--node takes the ID of a run, and {run} is not one.")
    settings, _ = settings_of(state_dir)
    configure_logging("console", "ERROR")
    try:
        once = asyncio.run(reexecute(settings, Request(run_id, node, options)))
    except DebuggerLeft:
        complain("Interrupted. No result.")
        return False
    print_reexecution(once)
    return once.is_same


async def _named(
    state_dir: Path, address: str | None, name: str, execution: str | None, *, children: bool
) -> "list[WorkflowHistory]":
    from cli.replay.histories import choose_execution, read_history, temporal_of, workflow_kind_of

    if name.endswith(".json") or await asyncio.to_thread(Path(name).is_file):
        return [await asyncio.to_thread(read_history, Path(name))]
    client = await temporal_of(state_dir, address)
    return await workflow_kind_of(
        client, await choose_execution(client, name, execution), children=children
    )


async def _judge(histories: "list[WorkflowHistory]") -> bool:
    from cli.replay.divergence import explain, print_verdict
    from cli.replay.verdicts import replay as replay_one
    from cli.replay.verdicts import require_judged

    verdicts = []
    for history in histories:
        verdict = await replay_one(history)
        print_verdict(verdict, await explain(history) if verdict.failed else None)
        verdicts.append(verdict)
    require_judged(verdicts)
    return not any(verdict.failed for verdict in verdicts)


async def _debug(histories: "list[WorkflowHistory]") -> bool:
    from cli.replay.divergence import ReplayLeftError, debug, print_verdict

    passed = True
    for history in histories:
        try:
            verdict, divergence = await debug(history)
        except ReplayLeftError:
            complain("Interrupted. No result.")
            return False
        print_verdict(verdict, divergence)
        passed = passed and not verdict.failed
    return passed


async def _gate(state_dir: Path, address: str | None, selection: "Recent") -> bool:
    from cli.replay.divergence import print_failures, print_summary
    from cli.replay.histories import temporal_of
    from cli.replay.verdicts import replay_recent, require_judged

    client = await temporal_of(state_dir, address)
    with terminal().status("Replaying…") as status:
        verdicts = await replay_recent(
            client, selection, lambda done: status.update(f"Replaying… {done} done")
        )
    await print_failures(client, verdicts)
    print_summary(verdicts)
    require_judged(verdicts)
    return not any(verdict.failed for verdict in verdicts)


def _period(text: str) -> timedelta:
    matched = re.fullmatch(r"(\d{1,5})([mhd])", text)
    if matched is None:
        raise typer.BadParameter(f"Invalid period {text}. Enter a period such as 90m, 24h or 7d.")
    return timedelta(**{_UNITS[matched[2]]: int(matched[1])})


def history(
    name: Annotated[str, typer.Argument(help="ID of a run, action run, job or workflow.")],
    output: Annotated[
        Path | None, typer.Option(help="File to write, e.g. temporal/histories/x.json.")
    ] = None,
    execution: Annotated[str | None, EXECUTION] = None,
    state_dir: Annotated[Path, STATE_DIR] = Path(".state"),
    temporal_address: Annotated[str | None, ADDRESS] = None,
) -> None:
    """Save the history of an execution, without names of machines and processes.

    It contains ids, labels of nodes and small facts.
    """
    from cli.replay.histories import reported_errors

    with reported_errors():
        text = asyncio.run(_history_text(name, execution, state_dir, temporal_address))
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"{output} cannot be written: {error.strerror}.")
        raise typer.Exit(1) from None
    typer.echo(f"Saved the history of {name} to {output}.")


async def _history_text(
    name: str, execution: str | None, state_dir: Path, address: str | None
) -> str:
    from cli.replay.histories import choose_execution, fetch_history, golden, temporal_of

    client = await temporal_of(state_dir, address)
    return golden(await fetch_history(client, await choose_execution(client, name, execution)))
