"""The parts of the benchmark, by name, in the order in which they are measured."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
from temporalio.client import Client

from bench.attacks import attacked
from bench.bundles import bundle_rates, large_bundles
from bench.classes import class_waits
from bench.concurrent import concurrent_runs
from bench.console import console
from bench.copies import copy_rates
from bench.cost import costs
from bench.deliveries import delivery_rate
from bench.dry_runs import dry_run_costs
from bench.endpoint import endpoint
from bench.experiments import assignment_rate
from bench.fairness import fairness
from bench.feeds import feed_figures
from bench.figures import Figure, histories
from bench.flooders import FLOODS
from bench.floods import floods
from bench.graphs import QUICK_CHAIN, outside_chain
from bench.growth import growth
from bench.impact import impact_times
from bench.imports import import_rates, large_imports, neighbours
from bench.inbox import inbox_costs, inbox_reads
from bench.integrations import browse_rate, import_of_files, mount_growth
from bench.loops import loop_rates, node_costs
from bench.many import many
from bench.pipeline import pipeline_times
from bench.platform import Platform
from bench.queries import query_rates
from bench.reads import read_rates
from bench.refreshes import cancel_times, refresh_rates
from bench.restarts import restarts
from bench.rounds import Rounds
from bench.runs import accept_rate, idle_latency, throughput
from bench.scale import scale
from bench.starters import starter_times
from bench.timers import due_timers, timer_starts
from bench.webhooks import webhook_rate
from bench.writes import write_rates

CONCURRENT = 10_000


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
    floods: Sequence[str]


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


async def _dry_runs(m: Measuring) -> list[Figure]:
    return await dry_run_costs(m.platform, m.rounds)


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


async def _cost(m: Measuring) -> list[Figure]:
    state = m.scratch / "state"
    return await costs(m.platform, m.client, m.route, m.rounds, m.count, state)


async def _floods(m: Measuring) -> list[Figure]:
    return await floods(m.scratch, m.floods, m.rounds)


async def _restarts(m: Measuring) -> list[Figure]:
    return await restarts(m.scratch, m.rounds)


async def _impact(m: Measuring) -> list[Figure]:
    return await impact_times(m.platform, m.rounds)


async def _inbox(m: Measuring) -> list[Figure]:
    return [
        *await inbox_costs(m.platform, m.rounds, m.count),
        *await inbox_reads(m.platform, m.rounds, m.records),
    ]


async def _console(m: Measuring) -> list[Figure]:
    return await console(m.platform)


async def _growth(m: Measuring) -> list[Figure]:
    return await growth(m.platform, m.client)


async def _many(m: Measuring) -> list[Figure]:
    return await many(m.platform, m.rounds, 50 * m.count, m.scratch / "state")


async def _scale(m: Measuring) -> list[Figure]:
    return await scale(m.platform, m.rounds, m.count, m.scratch / "state")


async def _concurrent(m: Measuring) -> list[Figure]:
    return await concurrent_runs(m.platform, CONCURRENT)


PARTS: Mapping[str, Part] = {
    "accept": Part("runs accepted a second", _accept, 40),
    "webhooks": Part("signed webhook calls taken a second", _webhooks, 40),
    "reads": Part("records read a second", _reads, 40),
    "writes": Part("records written a second, in batches", _writes, 20),
    "dry-runs": Part("processor time of a dry run, against its request", _dry_runs, 40),
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
    "cost": Part("processor time, statements and commits of a run", _cost),
    "cancels": Part("how soon a cancelled refresh stops", _cancels),
    "large": Part("imports of very many rows", _large),
    "large-bundles": Part("a bundle of very many records", _large_bundles),
    "copies": Part("copies of databases", _copies),
    "queries": Part("queries over very many records", _queries),
    "loops": Part("loops over ten thousand items", _loops),
    "pipeline": Part("requests through our pipeline and through FastAPI's routes", _pipeline),
    "due": Part("timers that are due together", _due),
    "floods": Part(f"what a neighbour feels of {len(FLOODS)} floods", _floods),
    "restarts": Part("how soon the API answers again after a kill", _restarts),
    "console": Part("pages of the console with a million rows", _console),
    "inbox": Part("the inbox of events", _inbox),
    "impact": Part("the impact of a field", _impact),
    "growth": Part("lists and counters with a million rows; how fast the old is removed", _growth),
    "many": Part("many runs retried, searched and counted together", _many),
    "scale": Part("runs with several workers and API processes", _scale),
    "concurrent": Part(f"{CONCURRENT} runs that are open at once", _concurrent),
}
