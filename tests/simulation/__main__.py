"""`python -m tests.simulation --seeds 0..1000`: play scenarios, or one of them step by step.

With `--planted` rules are broken one at a time, and the scenario that finds each is printed.
"""

import argparse
import sys
import time
from multiprocessing import get_context

from tests.simulation.planted import PLANTED
from tests.simulation.play import find, play
from tests.support.postgres import migrated_database


def main() -> int:
    """Give 1 for a scenario in which a promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0..150", help="one seed, or the first..last of several")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--trace", action="store_true", help="print every step")
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="find these bugs, or all")
    chosen = parser.parse_args()
    first, _, last = chosen.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    if chosen.planted is not None:
        return int(any(what is None for _, what in find(chosen.planted or [*PLANTED], seeds)))
    parts = [seeds[number :: chosen.processes] for number in range(chosen.processes)]
    began = time.monotonic()
    if len(seeds) == 1 or chosen.processes == 1:
        found = play(seeds, chosen.trace)
    else:
        with migrated_database("simulation"), get_context("spawn").Pool(len(parts)) as pool:
            found = [line for lines in pool.map(play, parts) for line in lines]
    seconds = time.monotonic() - began
    sys.stdout.write("".join(f"{line}\n" for line in found))
    pace = round(60 * len(seeds) / seconds)
    sys.stdout.write(f"{len(seeds)} scenarios, {len(found)} violations, {pace} a minute\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
