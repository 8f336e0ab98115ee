"""`make bench`: every figure is ours divided by its floor, taken in turns on the same machine.

The platform is the real one (`workspace up`, file-backed, durable) driven over HTTP; the floors
share its PostgreSQL and its Temporal server. Medians of the rounds are what counts. The table of a
part is printed when the part ends, and bench/results.json holds all of them.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
from temporalio.client import Client

from bench.attacks import attacked
from bench.bundles import bundle_rates, large_bundles
from bench.classes import class_waits
from bench.concurrent import concurrent_runs
from bench.copies import copy_rates
from bench.deliveries import delivery_rate
from bench.endpoint import endpoint
from bench.experiments import assignment_rate
from bench.fairness import fairness
from bench.feeds import feed_figures
from bench.figures import Figure, histories, print_table
from bench.floods import floods
from bench.floor_server import floor_route
from bench.floor_workflows import floor_worker
from bench.graphs import QUICK_CHAIN, outside_chain
from bench.growth import growth
from bench.imports import import_rates, large_imports, neighbours
from bench.integrations import browse_rate, import_of_files, mount_growth
from bench.loops import loop_rates, node_costs
from bench.pipeline import pipeline_times
from bench.platform import Platform, running_platform
from bench.queries import query_rates
from bench.reads import read_rates
from bench.refreshes import cancel_times, refresh_rates
from bench.results import Results
from bench.rounds import Rounds, say
from bench.runs import accept_rate, idle_latency, throughput
from bench.starters import starter_times
from bench.timers import due_timers, timer_starts
from bench.webhooks import webhook_rate
from bench.writes import write_rates

RESULTS = Path(__file__).with_name("results.json")
CONCURRENT = 10_000
LONGEST = 570.0
"""Seconds of a default run on two cores, from its start; half a minute is left for a last round."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """What the parts of the benchmark measure with."""

    platform: Platform
    client: Client
    route: httpx2.AsyncClient
    rounds: Rounds
    count: int
    records: int
    scratch: Path


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the benchmark. One without `seconds` takes long and is measured on request."""

    measures: str
    measure: Callable[[Measuring], Awaitable[list[Figure]]]
    seconds: float | None = None
    """What its rounds may take in a default run, when nothing before it has taken longer."""


async def _histories(m: Measuring) -> list[Figure]:
    async with endpoint() as url:
        graphs = {"quick chain": QUICK_CHAIN, "outside chain": outside_chain(url)}
        await histories(m.platform, m.client, graphs)
    return []


async def _accept(m: Measuring) -> list[Figure]:
    return [await accept_rate(m.platform, m.route, m.rounds, m.count)]


async def _webhooks(m: Measuring) -> list[Figure]:
    return [await webhook_rate(m.platform, m.route, m.rounds, m.count)]


async def _pipeline(m: Measuring) -> list[Figure]:
    return await pipeline_times(m.platform, m.rounds, m.count)


async def _reads(m: Measuring) -> list[Figure]:
    return await read_rates(m.platform, m.route, m.rounds, max(400, 2 * m.count))


async def _writes(m: Measuring) -> list[Figure]:
    return await write_rates(m.platform, m.route, m.rounds)


async def _copies(m: Measuring) -> list[Figure]:
    return await copy_rates(m.platform, m.rounds)


async def _starters(m: Measuring) -> list[Figure]:
    return await starter_times(m.platform, m.rounds)


async def _queries(m: Measuring) -> list[Figure]:
    return await query_rates(m.platform, m.route, m.rounds, max(50, m.count // 2), m.records)


async def _throughput(m: Measuring) -> list[Figure]:
    return await throughput(m.platform, m.client, m.rounds.shared_by(2), m.count)


async def _idle(m: Measuring) -> list[Figure]:
    return [await idle_latency(m.platform, m.client, m.rounds, max(20, m.count // 5))]


async def _loops(m: Measuring) -> list[Figure]:
    return await loop_rates(m.platform, m.client, m.rounds)


async def _nodes(m: Measuring) -> list[Figure]:
    return await node_costs(m.platform, m.client, m.rounds, max(20, m.count // 4))


async def _fairness(m: Measuring) -> list[Figure]:
    rounds = m.rounds.shared_by(2)
    return [*await fairness(m.platform, rounds), *await class_waits(m.platform, rounds)]


async def _imports(m: Measuring) -> list[Figure]:
    return await import_rates(m.platform, m.rounds, m.scratch)


async def _bundles(m: Measuring) -> list[Figure]:
    return await bundle_rates(m.platform, m.rounds, m.scratch)


async def _large_bundles(m: Measuring) -> list[Figure]:
    return await large_bundles(m.platform, m.scratch)


async def _refreshes(m: Measuring) -> list[Figure]:
    return await refresh_rates(m.platform, m.rounds)


async def _neighbours(m: Measuring) -> list[Figure]:
    return await neighbours(m.platform, m.rounds)


async def _cancels(m: Measuring) -> list[Figure]:
    return await cancel_times(m.platform, m.client, m.rounds)


async def _large(m: Measuring) -> list[Figure]:
    return await large_imports(m.platform, m.rounds)


async def _attacks(m: Measuring) -> list[Figure]:
    return await attacked(m.platform, m.rounds)


async def _timers(m: Measuring) -> list[Figure]:
    return [await timer_starts(m.platform, m.route, m.rounds, m.count)]


async def _feeds(m: Measuring) -> list[Figure]:
    state = m.scratch / "state"
    return await feed_figures(m.platform, m.rounds.shared_by(2), m.count, state)


async def _experiments(m: Measuring) -> list[Figure]:
    return [await assignment_rate(m.platform, m.rounds, 2 * m.count)]


async def _browses(m: Measuring) -> list[Figure]:
    return await browse_rate(m.platform, m.rounds, m.count)


async def _mounts(m: Measuring) -> list[Figure]:
    return await mount_growth(m.platform, m.rounds)


async def _resource_imports(m: Measuring) -> list[Figure]:
    return await import_of_files(m.platform, m.rounds, m.scratch)


async def _deliveries(m: Measuring) -> list[Figure]:
    return [await delivery_rate(m.platform, m.client, m.rounds, m.count)]


async def _due(m: Measuring) -> list[Figure]:
    return [await due_timers(m.platform)]


async def _floods(m: Measuring) -> list[Figure]:
    return await floods(m.scratch)


async def _growth(m: Measuring) -> list[Figure]:
    return await growth(m.platform, m.client)


async def _concurrent(m: Measuring) -> list[Figure]:
    return await concurrent_runs(m.platform, CONCURRENT)


PARTS: Mapping[str, Part] = {
    "accept": Part("runs accepted a second", _accept, 40),
    "webhooks": Part("signed webhook calls taken a second", _webhooks, 40),
    "reads": Part("records read a second", _reads, 40),
    "writes": Part("records written a second, in batches", _writes, 20),
    "starters": Part("seconds to seed a starter", _starters, 15),
    "timers": Part("timers started a second", _timers, 20),
    "feeds": Part("tickets a second, and how soon a commit reaches clients", _feeds, 40),
    "experiments": Part("variants assigned a second", _experiments, 15),
    "browses": Part("pages of a mirrored folder a second", _browses, 10),
    "mounts": Part("recursive mounts of very many entries", _mounts, 20),
    "resource-imports": Part("files imported from a bucket a second", _resource_imports, 20),
    "deliveries": Part("webhooks delivered a second", _deliveries, 20),
    "throughput": Part("runs of quick nodes completed a second", _throughput, 110),
    "idle": Part("one run alone, from trigger to end", _idle, 25),
    "nodes": Part("what one more node costs", _nodes, 100),
    "fairness": Part(
        "a quiet workspace, and what triggers start, beside a long line", _fairness, 110
    ),
    "imports": Part("rows of a workbook imported a second, and the memory it takes", _imports, 30),
    "bundles": Part("records of a bundle brought in a second", _bundles, 20),
    "refreshes": Part("rows refreshed a second", _refreshes, 30),
    "neighbours": Part("automations of others while a workbook is imported", _neighbours, 30),
    "attacks": Part("another workspace beside expressions that take long", _attacks, 25),
    "histories": Part("events and bytes of a node in history", _histories, 10),
    "cancels": Part("how soon a cancelled refresh stops", _cancels),
    "large": Part("imports of very many rows", _large),
    "large-bundles": Part("a bundle of very many records", _large_bundles),
    "copies": Part("copies of databases", _copies),
    "queries": Part("queries over very many records", _queries),
    "loops": Part("loops over ten thousand items", _loops),
    "pipeline": Part("requests through our pipeline and through FastAPI's routes", _pipeline),
    "due": Part("timers that are due together", _due),
    "floods": Part("what a neighbour feels of eight floods", _floods),
    "growth": Part("lists and counters with a million rows; how fast the old is removed", _growth),
    "concurrent": Part(f"{CONCURRENT} runs that are open at once", _concurrent),
}
SHORT = [name for name, part in PARTS.items() if part.seconds is not None]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of a part at most")
    parser.add_argument("--count", type=int, default=200, help="runs or requests per round")
    parser.add_argument("--records", type=int, default=1_000_000, help="records that are queried")
    parser.add_argument(
        "--full", action="store_true",
        help="measure the long parts too, and every part in all of its rounds",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, metavar="PART",
        help=f"measure these parts, in all of their rounds: {', '.join(PARTS)}",
    )  # fmt: skip
    return parser.parse_args()


async def main() -> None:
    """Measure what was asked for, one part after the other."""
    options = _options()
    names = options.only or (list(PARTS) if options.full else SHORT)
    bounded = not options.only and not options.full
    results, started = Results(RESULTS), time.monotonic()
    say(f"Measuring {', '.join(names)}. Starting the platform …")
    with tempfile.TemporaryDirectory(prefix="workspace-bench-") as directory:
        Path(directory).chmod(0o755)
        async with running_platform(Path(directory) / "state") as platform:
            client = await Client.connect(platform.connection["temporalAddress"])
            async with floor_route(platform.database_url) as route, floor_worker(client):
                measuring = Measuring(
                    platform, client, route, Rounds(options.rounds), options.count, options.records,
                    Path(directory),
                )  # fmt: skip
                for place, name in enumerate(names):
                    left = LONGEST - (time.monotonic() - started)
                    seconds = _share(names[place:], left) if bounded else None
                    rounds = Rounds(options.rounds, seconds)
                    await _measured(name, replace(measuring, rounds=rounds), results)
    say(f"Done in {(time.monotonic() - started) / 60:.1f} minutes; see {os.path.relpath(RESULTS)}.")


def _share(names: Sequence[str], left: float) -> float:
    """The seconds of the first of these parts, when all of them share what is left."""
    wanted = [PARTS[name].seconds or 0.0 for name in names]
    return min(1.0, left / sum(wanted)) * wanted[0]


async def _measured(name: str, measuring: Measuring, results: Results) -> None:
    """Measure a part, print its table and keep its figures."""
    part, started = PARTS[name], time.monotonic()
    say(f"{name}: {part.measures} …")
    figures = await part.measure(measuring)
    if figures:
        print_table(name, figures)
    results.add(name, figures, time.monotonic() - started)


if __name__ == "__main__":
    asyncio.run(main())
