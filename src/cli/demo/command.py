"""`workspace demo`: an automation on real data, whose worker is killed in the middle."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.console import reported


def demo(
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
) -> None:
    """Run an automation over a real table and kill the worker in the middle.

    Takes the platform that runs on the state directory, else starts one and stops it afterwards.
    """
    from cli.demo.platform import run_demo

    with reported():
        asyncio.run(run_demo(state_dir))
