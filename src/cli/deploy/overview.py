"""The overview of a deployment: each build with its share, its open work and its workers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from cli.console import say, terminal
from cli.deploy.deployment import WITHOUT_VERSION, Deployment, State
from runtime.families import Queue

_NO_NAME = "(without version)"


@dataclass(frozen=True, slots=True)
class BuildOverview:
    """One build. Pinned work stays with it; following work goes on with the current one."""

    build: str
    """Empty for workers that have no version."""
    state: State
    percent: float
    pinned: int
    following: int
    workers: Sequence[str]
    queues_without_workers: Sequence[Queue]


async def overview(deployment: Deployment) -> Sequence[BuildOverview]:
    """Every build, the newest first; what has no version stands at the end, if there is any."""
    routing = await deployment.routing()
    shares = {build.build_id: (build.state, build.share) for build in routing.builds}
    ramping = sum(build.share for build in routing.builds if build.state is State.RAMPING)
    is_current = routing.current == WITHOUT_VERSION
    shares[WITHOUT_VERSION] = (State.CURRENT, 100 - ramping) if is_current else (State.DRAINING, 0)
    workers = await deployment.workers(list(shares))
    rows = await asyncio.gather(
        *(_of(deployment, name, *share, workers[name]) for name, share in shares.items())
    )
    return [row for row in rows if row.build or is_current or row.following or row.workers]


async def _of(
    deployment: Deployment,
    build_id: str,
    state: State,
    share: float,
    workers: Mapping[Queue, frozenset[str]],
) -> BuildOverview:
    pinned = await deployment.count(build_id, pinned=True) if build_id else 0
    return BuildOverview(
        build_id,
        state,
        share,
        pinned,
        await deployment.count(build_id, pinned=False),
        sorted(frozenset().union(*workers.values())),
        [queue for queue, processes in workers.items() if not processes],
    )


def json_of(name: str, rows: Sequence[BuildOverview]) -> dict[str, Any]:
    """The overview for other programs."""
    builds = [
        {
            "queuesWithoutWorkers" if key == "queues_without_workers" else key: value
            for key, value in asdict(row).items()
        }
        for row in rows
    ]
    return {"deployment": name, "builds": builds}


def print_overview(name: str, rows: Sequence[BuildOverview]) -> None:
    """Print the overview, and what needs an operator."""
    say(terminal(), f"Deployment {name}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("build", overflow="fold")
    table.add_column("state")
    for column in ("new work", "pinned", "following", "workers"):
        table.add_column(column, justify="right")
    for row in rows:
        figures = (f"{row.percent:g} %", str(row.pinned), str(row.following), str(len(row.workers)))
        table.add_row(row.build or _NO_NAME, row.state, *figures)
    terminal().print(table)
    for row in rows:
        for sentence in faults(row):
            say(terminal(), sentence)


def faults(row: BuildOverview) -> Sequence[str]:
    """Sentences about what waits for workers that are not there."""
    name, queues = row.build or _NO_NAME, ", ".join(row.queues_without_workers)
    if not queues:
        return []
    if row.percent:
        return [f"{name} is given new work and has no workers for: {queues}."]
    if row.pinned:
        remedy = (
            f"Start its workers, or move what replays: workspace deploy drain {row.build} --move"
        )
        return [f"{name} has open work and no workers for: {queues}. {remedy}"]
    return []
