"""Scenarios one after the other, each in a world of its own; other processes import this."""

import asyncio
import gc
import sys
import traceback
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import pytest
import structlog

from models.registrations import register_models
from tests.simulation.planted import PLANTED
from tests.simulation.processes import Clock, Violation, answer_in_place
from tests.simulation.scenario import simulate
from tests.simulation.world import World, a_world
from tests.support.postgres import migrated_database


def play(seeds: Sequence[int], trace: bool = False) -> list[str]:
    """The violations that scenarios find."""
    return asyncio.run(_play(seeds, trace))


def find(names: Sequence[str], seeds: Sequence[int]) -> list[tuple[str, str | None]]:
    """For each planted bug what the first scenario that finds it says; None for one not found."""
    return asyncio.run(_find(names, seeds))


async def _play(seeds: Sequence[int], trace: bool) -> list[str]:
    found = []
    async with _world() as world:
        for seed in seeds:
            try:
                await simulate(world, seed, _shown if trace else lambda _: None)
            except Violation as violation:
                found.append(str(violation))
                if trace:
                    traceback.print_exc()
    return found


async def _find(names: Sequence[str], seeds: Sequence[int]) -> list[tuple[str, str | None]]:
    found = []
    async with _world() as world:
        for name in names:
            with pytest.MonkeyPatch.context() as patch:
                PLANTED[name](patch)
                found.append((name, await _first_violation(world, seeds)))
            _shown(f"{name}: {found[-1][1] or f'not found in {len(seeds)} scenarios'}")
    return found


async def _first_violation(world: World, seeds: Sequence[int]) -> str | None:
    for seed in seeds:
        try:
            await simulate(world, seed)
        except Violation as violation:
            return str(violation)
    return None


@asynccontextmanager
async def _world() -> AsyncIterator[World]:
    register_models()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with (
        pytest.MonkeyPatch.context() as patch,
        migrated_database("simulation") as url,
        _rarely_collected(),
    ):
        clock = Clock()
        clock.install(patch)
        answer_in_place(patch)
        async with a_world(url, clock) as world:
            gc.freeze()
            yield world


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """Garbage is collected some times in a scenario, in place of a hundred."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _shown(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
