"""`workspace history`: writes the history of an execution to a file that can be replayed."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.console import complain
from cli.replay.command import ADDRESS, EXECUTION, STATE_DIR


def history(
    name: Annotated[
        str, typer.Argument(help="A run's id, an action run's or a job's; or a workflow id.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="File to write, as temporal/histories/x.json.")
    ] = None,
    execution: Annotated[str | None, EXECUTION] = None,
    state_dir: Annotated[Path, STATE_DIR] = Path(".state"),
    temporal_address: Annotated[str | None, ADDRESS] = None,
) -> None:
    """Save an execution's history without the names of machines and processes.

    What it holds beyond that are ids, labels of nodes and small facts.
    """
    from cli.replay.errors import reported_errors

    with reported_errors():
        text = asyncio.run(_read(name, execution, state_dir, temporal_address))
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"{output} cannot be written: {error.strerror}.")
        raise typer.Exit(1) from None
    typer.echo(f"{output} holds the history of {name}.")


async def _read(name: str, execution: str | None, state_dir: Path, address: str | None) -> str:
    from cli.replay.executions import choose, fetch, temporal_of
    from cli.replay.golden import golden

    client = await temporal_of(state_dir, address)
    return golden(await fetch(client, await choose(client, name, execution)))
