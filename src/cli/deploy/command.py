"""`workspace deploy`: which build of the workers takes new work, and the end of another."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import say, terminal
from cli.replay.command import ADDRESS, STATE_DIR

if TYPE_CHECKING:
    from cli.deploy.deployment import Deployment

deploy = typer.Typer(
    name="deploy",
    help="Manage worker builds: status, ramp, promote, roll back, drain."
    " Exits with 1 on an error, or if work stays open on a drained build.",
    no_args_is_help=True,
)

_BUILD = Annotated[str, typer.Argument(metavar="BUILD", help="Build ID, see `status`.")]
_STATE_DIR = Annotated[Path, STATE_DIR]
_ADDRESS = Annotated[str | None, ADDRESS]
_HERE = Path(".state")


@deploy.command()
def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    state_dir: _STATE_DIR = _HERE,
    temporal_address: _ADDRESS = None,
) -> None:
    """Show the share of new work, open work and workers of each build."""

    async def show() -> None:
        from cli.deploy.deployment import overview, overview_json, print_overview

        async with _deployment(state_dir, temporal_address) as (deployment, _):
            rows = await overview(deployment)
        if as_json:
            typer.echo(json.dumps(overview_json(deployment.name, rows), indent=2))
        else:
            print_overview(deployment.name, rows)

    asyncio.run(show())


@deploy.command()
def promote(
    build: _BUILD, *, state_dir: _STATE_DIR = _HERE, temporal_address: _ADDRESS = None
) -> None:
    """Route all new work to a build, and open work that is not pinned."""
    from cli.deploy import versioning

    _change(state_dir, temporal_address, lambda deployment: versioning.promote(deployment, build))


@deploy.command()
def ramp(
    build: _BUILD,
    *,
    percent: Annotated[float, typer.Option(min=0, max=100, help="Share; 0 ends the ramp.")],
    state_dir: _STATE_DIR = _HERE,
    temporal_address: _ADDRESS = None,
) -> None:
    """Route a share of new work to a build, and of open work that is not pinned."""
    from cli.deploy import versioning

    _change(
        state_dir, temporal_address, lambda deployment: versioning.ramp(deployment, build, percent)
    )


@deploy.command()
def rollback(*, state_dir: _STATE_DIR = _HERE, temporal_address: _ADDRESS = None) -> None:
    """Promote the previous build."""
    from cli.deploy import versioning

    _change(state_dir, temporal_address, versioning.roll_back)


@deploy.command()
def drain(
    build: _BUILD,
    *,
    move: Annotated[
        bool, typer.Option("--move", help="Move what replays on this checkout.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until no work is open.")] = False,
    state_dir: _STATE_DIR = _HERE,
    temporal_address: _ADDRESS = None,
) -> None:
    """Show open work on a build that takes no new work, move it, or wait for it.

    Exits with 1 if work stays open.
    """

    async def end() -> int:
        async with _deployment(state_dir, temporal_address) as (deployment, own_build):
            staying = await _move(deployment, build, own_build) if move else None
            if staying is None or wait:
                staying = await _remainder(deployment, build, wait=wait)
            return staying

    raise typer.Exit(1 if asyncio.run(end()) else 0)


async def _move(deployment: "Deployment", build: str, own_build: str) -> int:
    """The number of executions that stay, after all others were moved."""
    from cli.deploy.versioning import move_to_current
    from cli.replay.divergence import print_failures, print_summary

    with terminal().status("Replaying…") as line:
        move = await move_to_current(
            deployment, build, own_build, lambda count: line.update(f"Replaying… {count} done")
        )
    await print_failures(deployment.client, move.verdicts)
    if move.verdicts:
        print_summary(move.verdicts)
    say(terminal(), f"Moved: {move.moved}. Still on {build}: {len(move.staying)}.")
    return len(move.staying)


async def _remainder(deployment: "Deployment", build: str, *, wait: bool) -> int:
    """The number of executions that stay with a build, printed by type."""
    from cli.deploy.versioning import open_by_type, require_drainable, wait_until_drained

    await require_drainable(deployment, build)
    if wait:
        with terminal().status("Waiting…") as line:
            await wait_until_drained(
                deployment, build, lambda count: line.update(f"{count} open on {build}…")
            )
    counts = await open_by_type(deployment, build)
    types = ", ".join(f"{count} {name}" for name, count in counts.items())
    say(terminal(), f"Open on {build}: {types or 'none. You can stop its workers.'}")
    return sum(counts.values())


def _change(
    state_dir: Path, address: str | None, change: "Callable[[Deployment], Awaitable[str]]"
) -> None:
    async def say_outcome() -> None:
        async with _deployment(state_dir, address) as (deployment, _):
            say(terminal(), await change(deployment))

    asyncio.run(say_outcome())


@asynccontextmanager
async def _deployment(
    state_dir: Path, address: str | None
) -> "AsyncIterator[tuple[Deployment, str]]":
    """The deployment of the settings, and the build of this code; a refusal exits."""
    from cli.deploy.deployment import Deployment
    from cli.deploy.versioning import WorkerVersion, reported_refusals
    from cli.replay.histories import sdk_logs_muted, temporal_of, temporal_settings

    with reported_refusals(), sdk_logs_muted():
        version = WorkerVersion.of(temporal_settings(state_dir, address))
        client = await temporal_of(state_dir, address)
        yield Deployment(client, version.deployment, await alive_workers(state_dir)), version.build


async def alive_workers(state_dir: Path) -> Collection[str] | None:
    """The worker processes that are alive; None without a database that answers."""
    from cli.polling import identity, worker_processes
    from cli.supervisor.state import StateDir

    published = StateDir(state_dir).running_settings().get("database_url")
    url = published or os.environ.get("DATABASE_URL")
    processes = await worker_processes(url) if url else None
    return None if processes is None else {identity(one) for one in processes if one.alive}
