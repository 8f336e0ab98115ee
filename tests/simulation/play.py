"""Scenarios one after the other, each in a world of its own; other processes import this."""

import asyncio
import sys
import traceback

import pytest
import structlog

from models.registrations import register_models
from tests.simulation.processes import Clock, Violation
from tests.simulation.scenario import simulate
from tests.simulation.world import a_world
from tests.support.postgres import migrated_database


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
