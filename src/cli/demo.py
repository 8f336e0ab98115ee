"""`workspace demo`: the main job on real data."""

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
    from cli.demonstration.platform import demonstrate

    with reported():
        asyncio.run(demonstrate(state_dir))
