"""Scenarios by seeds: no promise is broken, and each planted bug is found (ADR 0139)."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.simulation.planted import PLANTED
from tests.simulation.processes import Clock, Violation, answer_in_place
from tests.simulation.scenario import simulate
from tests.simulation.world import World, a_world
from tests.support.exploring import exploring
from tests.support.postgres import migrated_database

pytestmark = [pytest.mark.long, pytest.mark.takes(seconds=25)]

PLAYED = 40
"""Scenarios of every run, ten in each weather; `make explore` plays many more beside it."""
FIND_WITHIN = 1_000
"""Scenarios to find a planted bug in. Most are found within 60 (ADR 0177)."""


class Player:
    """Plays scenarios in a world of its own."""

    def __init__(self, runner: asyncio.Runner, world: World) -> None:
        self._runner = runner
        self._world = world

    def play(self, seed: int) -> list[str]:
        """The steps of a scenario. Raises Violation."""
        steps: list[str] = []
        self._runner.run(simulate(self._world, seed, steps.append))
        return steps

    def finds(self, seed: int) -> bool:
        """Whether a scenario finds a promise that was not kept."""
        try:
            self.play(seed)
        except Violation:
            return True
        return False


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    """A player whose clock stands still between steps."""
    with (
        pytest.MonkeyPatch.context() as patch,
        migrated_database("simulation") as url,
        asyncio.Runner() as runner,
    ):
        clock = Clock()
        clock.install(patch)
        answer_in_place(patch)
        making = a_world(url, clock)
        world = runner.run(_entered(making))
        yield Player(runner, world)
        runner.run(_left(making))


async def _entered(context: Any) -> Any:
    return await context.__aenter__()


async def _left(context: Any) -> None:
    await context.__aexit__(None, None, None)


def test_no_promise_is_broken(player: Player) -> None:
    for seed in range(PLAYED):
        player.play(seed)


def test_a_seed_plays_the_same_steps_again(player: Player) -> None:
    for seed in range(3):
        assert player.play(seed) == player.play(seed)


@pytest.mark.skipif(not exploring(), reason="takes minutes: make explore")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(player: Player, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        PLANTED[name](patch)
        assert any(player.finds(seed) for seed in range(FIND_WITHIN))
