"""`python -m tests.simulation --seeds 0..1000`: play scenarios, or one of them step by step."""

import argparse
import asyncio
import sys
import time
import traceback
from multiprocessing import get_context

import pytest
import structlog

from models.registrations import register_models
from tests.simulation.processes import Clock, Violation
from tests.simulation.scenario import simulate
from tests.simulation.world import a_world
from tests.support.postgres import migrated_database


def main() -> int:
    """Give 1 for a scenario in which a promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0..150", help="one seed, or the first..last of several")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--trace", action="store_true", help="print every step")
    chosen = parser.parse_args()
    first, _, last = chosen.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    parts = [seeds[number :: chosen.processes] for number in range(chosen.processes)]
    began = time.monotonic()
    if len(seeds) == 1 or chosen.processes == 1:
        found = play(seeds, chosen.trace)
    else:
        with migrated_database("simulation"), get_context("spawn").Pool(len(parts)) as pool:
            found = [line for lines in pool.map(play, parts) for line in lines]
    seconds = time.monotonic() - began
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.write(
        f"{len(seeds)} scenarios, {len(found)} violations, {len(seeds) / seconds:.1f} a second\n"
    )
    return 1 if found else 0


def play(seeds: range, trace: bool = False) -> list[str]:
    """The violations that scenarios find."""
    register_models()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with pytest.MonkeyPatch.context() as patch, migrated_database("simulation") as url:
        clock = Clock()
        clock.install(patch)
        return asyncio.run(_play(url, clock, seeds, trace))


async def _play(url: str, clock: Clock, seeds: range, trace: bool) -> list[str]:
    found = []
    async with a_world(url, clock) as world:
        for seed in seeds:
            try:
                await simulate(world, seed, _shown if trace else lambda _: None)
            except Violation as violation:
                found.append(str(violation))
                if trace:
                    traceback.print_exc()
    return found


def _shown(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
