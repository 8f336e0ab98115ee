"""`make profile`: where API and worker spend their time beside webhooks that wait for their runs.

The processes are sampled by py-spy, threads that hold the interpreter's lock alone. Work of the
SDK's own threads, which hold no lock, is in the processor time that is printed first.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.graphs import THREE_QUICK
from bench.platform import Platform, running_platform
from bench.processor import Spent, processor_time
from bench.webhooks import call_hook, publish_hook

IN_FLIGHT = 30
WARM_UP_RUNS = 300
RATE = 200
"""Samples a second."""
SAMPLED = ("api", "worker")
SHOWN = 40
Stack = tuple[list[str], int]
"""The functions from the event loop down, and the number of samples."""
LOOP = "Runner.run (asyncio/runners.py)"
LAYERS = {
    "temporalio": "SDK of Temporal",
    "google": "protobuf",
    **dict.fromkeys(("asyncio", "concurrent", "threading"), "asyncio and threads"),
    **dict.fromkeys(("psycopg", "psycopg_pool", "psycopg_binary"), "psycopg"),
    "sqlalchemy": "SQLAlchemy",
    **dict.fromkeys(("uvicorn", "starlette", "fastapi", "anyio"), "HTTP"),
    **dict.fromkeys(("pydantic", "pydantic_core", "celpy", "structlog"), "other libraries"),
    **dict.fromkeys(("activities", "api", "cli", "models", "runtime", "workflows"), "ours"),
}
"""The layers of a profile by package. What the standard library does counts for its caller."""
REFUSED = (
    "py-spy may not read another process here. Run this as root, or allow it until the next boot:"
    " sysctl kernel.yama.ptrace_scope=0"
)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.profile")
    parser.add_argument("--seconds", type=int, default=20, help="seconds that are sampled")
    return parser.parse_args()


async def main() -> None:
    """Sample both processes under load, and print their functions by share."""
    seconds = _options().seconds
    with tempfile.TemporaryDirectory(prefix="workspace-profile-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        async with running_platform(directory / "state") as platform:
            runs, spent = await _measure(platform, directory, seconds)
        stacks = {name: list(_stacks(directory / name)) for name in SAMPLED}
        tables = [_layers(name, each) for name, each in stacks.items()]
        tables += [_table(name, each) for name, each in stacks.items()]
    each = " · ".join(f"{name} {ms / runs:.1f}" for name, ms in spent.milliseconds.items())
    Console().print(f"{runs / seconds:.0f} runs a second; ms of a processor a run: {each}", *tables)


async def _measure(platform: Platform, directory: Path, seconds: int) -> tuple[int, Spent]:
    """Keep runs in flight and sample; the runs that ended meanwhile."""
    hook = await publish_hook(platform, THREE_QUICK, respond="wait")
    ended = Counter[str]()

    async def call() -> None:
        while True:
            (await call_hook(platform, hook)).raise_for_status()
            ended["runs"] += 1

    load = [asyncio.create_task(call()) for _ in range(IN_FLIGHT)]
    while ended["runs"] < WARM_UP_RUNS:
        await asyncio.sleep(0.1)
    pids = {name: platform.pid(name) for name in (*SAMPLED, "postgres", "temporal")}
    ended.clear()
    with processor_time(pids) as spent:
        await _sample(platform, directory, seconds)
    runs = ended["runs"]
    for task in load:
        task.cancel()
    await asyncio.gather(*load, return_exceptions=True)
    return runs, spent


async def _sample(platform: Platform, directory: Path, seconds: int) -> None:
    program = Path(sys.executable).with_name("py-spy")
    samplers = [
        await asyncio.create_subprocess_exec(
            program, "record", "--gil", "--format", "raw", "--nonblocking",
            "--rate", str(RATE), "--duration", str(seconds),
            "--pid", str(platform.pid(name)), "--output", directory / name,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for name in SAMPLED
    ]  # fmt: skip
    codes = [await sampler.wait() for sampler in samplers]
    if any(codes):
        raise SystemExit(REFUSED)


def _stacks(path: Path) -> Iterable[Stack]:
    """The functions of each stack, without those around the event loop, and its samples."""
    for line in path.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        frames = [frame.rpartition(":")[0] + ")" for frame in stack.split(";")]
        yield frames[frames.index(LOOP) if LOOP in frames else 0 :], int(count)


def _layers(name: str, stacks: Iterable[Stack]) -> Table:
    """The share of each layer in what is done under the interpreter's lock."""
    samples = Counter[str]()
    for functions, count in stacks:
        packages = (_package(function) for function in reversed(functions))
        samples[next((LAYERS[one] for one in packages if one in LAYERS), "other")] += count
    table = Table("Layer", "Share", title=name)
    for layer, count in samples.most_common():
        table.add_row(layer, f"{count / samples.total():.1%}")
    return table


def _package(function: str) -> str:
    """The package of `name (package/module.py)`."""
    return function.rpartition(" (")[2].partition("/")[0]


def _table(name: str, stacks: Iterable[Stack]) -> Table:
    within, itself = Counter[str](), Counter[str]()
    for functions, count in stacks:
        itself[functions[-1]] += count
        for function in set(functions):
            within[function] += count
    total = max(1, itself.total())
    table = Table("Function", "With callees", "Itself", title=f"{name}: {total} samples")
    for function, count in within.most_common(SHOWN):
        table.add_row(function, f"{count / total:.1%}", f"{itself[function] / total:.1%}")
    return table


if __name__ == "__main__":
    asyncio.run(main())
