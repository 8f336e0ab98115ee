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
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from temporalio.client import Client

from bench.figures import print_table
from bench.flooders import FLOODS
from bench.floor_server import floor_route
from bench.floor_workflows import floor_worker
from bench.parts import PARTS, Measuring
from bench.platform import running_platform
from bench.results import Results
from bench.rounds import Rounds, say

RESULTS = Path(__file__).with_name("results.json")
LONGEST = 570.0
"""Seconds of a default run on two cores, from its start; half a minute is left for a last round."""
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
    parser.add_argument(
        "--floods", nargs="+", choices=FLOODS, default=list(FLOODS), metavar="FLOOD",
        help=f"measure these in the part floods: {', '.join(FLOODS)}",
    )  # fmt: skip
    return parser.parse_args()


async def main() -> None:
    """Measure the requested parts, one after the other."""
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
                    Path(directory), options.floods,
                )  # fmt: skip
                for place, name in enumerate(names):
                    left = LONGEST - (time.monotonic() - started)
                    seconds = _share(names[place:], left) if bounded else None
                    rounds = Rounds(options.rounds, seconds)
                    await _measured(name, replace(measuring, rounds=rounds), results)
    say(f"Done in {(time.monotonic() - started) / 60:.1f} minutes; see {os.path.relpath(RESULTS)}.")


def _share(names: Sequence[str], left: float) -> float:
    """The seconds of the first of these parts, when all of them share the remaining time."""
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
