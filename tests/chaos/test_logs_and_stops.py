"""The API and the worker as processes: every line they write is JSON, and SIGTERM ends them."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from temporalio.testing import WorkflowEnvironment

from tests.chaos.processes import SECRET
from tests.support.forked import Forked, workspace
from tests.support.patience import ENOUGH, eventually

PROVOKED = """
import gc, sys, threading, time, warnings

def provoke():
    import asyncio, logging, subprocess
    from runtime.observability import process_output
    from runtime.processes import bounded_processes

    print("printed\\nin two lines", flush=True)
    warnings.warn("a warning", UserWarning)
    logging.getLogger("some.library").error("its own %s", "line")
    class Careless:
        def __del__(self): raise ValueError("unraisable svc_sk_0123456789")
    Careless()
    threading.Thread(target=lambda: 1 / 0).start()
    async def fail(): raise KeyError("never retrieved")
    async def forget():
        task = asyncio.create_task(fail())
        await asyncio.sleep(0)
        del task
        gc.collect()
    asyncio.run(forget())
    async def forked():
        from activities.sources import processes
        child = processes.process_of(os.write, 2, b"written by a fork\\n")
        await processes.start(child)
        await asyncio.to_thread(child.join)
        child = processes.process_of(print)
        child._args = (0, int, "no number")
        await processes.start(child)
        await asyncio.to_thread(child.join)
    if "worker" in sys.argv:
        asyncio.run(forked())
    bounded_processes._Child(["runtime.no_such_module"])._process.wait()
    logging.getLogger("some.library").error("all is provoked")

import os
import signal
from runtime.observability import process_output
taking = process_output.take_over
def take_over():
    taking()
    threading.Timer(1, provoke).start()
process_output.take_over = take_over
"""
OF_FORKS = ("written by a fork", "no number")
WANTED = (
    "printed",
    "in two lines",
    "a warning",
    "its own line",
    "unraisable",
    "division by zero",
    "never retrieved",
    "no_such_module",
)


class Process:
    """A command, and the lines it has written."""

    def __init__(self, command: str, directory: Path, prepared: str = "", **variables: str) -> None:
        self._path = directory / f"{command}.log"
        self._path.touch()
        environment = os.environ | {"WORKSPACE_SECRET_KEY": SECRET} | variables
        arguments = [command, "--port=0"] if command == "api" else [command]
        self.forked: Forked = workspace(arguments, environment, out=self._path, prepared=prepared)

    def text(self) -> str:
        return self._path.read_text()

    def lines(self) -> list[dict[str, Any]]:
        """Every line: none is anything else than an object of JSON with an event and a level."""
        found = [json.loads(line) for line in self.text().splitlines()]
        assert all({"event", "level"} <= line.keys() for line in found)
        return found

    async def says(self, words: str) -> None:
        async def said() -> bool:
            assert self.forked.exit_code is None or words in self.text(), self.text()
            return words in self.text()

        await eventually(said, what=words)

    async def obeys(self, seconds: float) -> int:
        """The exit code after a SIGTERM, within its time."""
        start = time.monotonic()
        self.forked.terminate()
        code = await self.forked.ended()
        assert time.monotonic() - start < seconds, self.text()
        return code


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path, url: str, temporal: WorkflowEnvironment) -> Iterator[Start]:
    """Starts processes on the database and the Temporal of this module; none outlives the test."""
    started: list[Process] = []
    address = temporal.client.service_client.config.target_host
    known = {"DATABASE_URL": url, "TEMPORAL_ADDRESS": address}

    def begin(command: str, prepared: str = "", **variables: str) -> Process:
        started.append(Process(command, tmp_path, prepared, **(known | variables)))
        return started[-1]

    yield begin
    for one in started:
        one.forked.kill()
        one.forked.wait()


@pytest.mark.long
@pytest.mark.parametrize("command", ["api", "worker"])
async def test_every_line_of_every_writer_is_json(start: Start, command: str) -> None:
    process = start(command, PROVOKED)
    await process.says("all is provoked")
    assert await process.obeys(40) in {0, -signal.SIGTERM}
    written = json.dumps(process.lines())
    wanted = (*WANTED, *OF_FORKS) if command == "worker" else WANTED
    assert [words for words in wanted if words not in written] == []
    assert "svc_sk_0123456789" not in written


@pytest.mark.parametrize("command", ["api", "worker"])
@pytest.mark.parametrize(
    ("prepared", "variables", "words"),
    [
        ("import cli.processes as c\nc.load_settings = lambda: 1 / 0", {}, "division by zero"),
        ("", {"WORKSPACE_SECRET_KEY": "short"}, "WORKSPACE_SECRET_KEY"),
        ("", {"WORKSPACE_LOG_LEVEL": "loud"}, "WORKSPACE_LOG_LEVEL"),
    ],
)
async def test_a_failed_start_is_json(
    start: Start, command: str, prepared: str, variables: dict[str, str], words: str
) -> None:
    process = start(command, prepared.format(command), **variables)
    assert await process.forked.ended() == 1
    assert words in json.dumps(process.lines())


NOWHERE = "127.0.0.1:1"


async def test_an_unknown_namespace_is_reported_in_one_sentence(start: Start) -> None:
    worker = start("worker", TEMPORAL_NAMESPACE="nowhere")
    assert await worker.forked.ended() == 1
    [line] = [line for line in worker.lines() if "nowhere" in line["event"]]
    assert "Namespace nowhere not found" in line["event"]
    assert "Traceback" not in worker.text()


async def test_a_worker_without_temporal_says_so_asks_again_and_obeys(start: Start) -> None:
    worker = start("worker", TEMPORAL_ADDRESS=NOWHERE)
    await worker.says("Temporal does not answer yet")
    assert await worker.obeys(10) == 0
    [told] = [line for line in worker.lines() if "does not answer yet" in line["event"]]
    assert (told["address"], told["level"]) == (NOWHERE, "warning")
    assert "Traceback" not in worker.text()


async def test_a_worker_whose_temporal_never_answers_obeys(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        worker = start("worker", TEMPORAL_ADDRESS=address)
        with silent.accept()[0]:
            assert await worker.obeys(10) == 0
    worker.lines()


@pytest.mark.parametrize("command", ["api", "worker"])
@pytest.mark.parametrize("answers", [False, True], ids=["refusing", "silent"])
async def test_a_process_without_postgresql_obeys(
    start: Start, command: str, *, answers: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1] if answers else 1
        process = start(command, DATABASE_URL=f"postgresql://u:p@127.0.0.1:{port}/none")
        if command == "api":
            await process.says("Uvicorn running")
        elif answers:
            silent.accept()[0].close()
        if process.forked.exit_code is None:
            await process.obeys(20)
    process.lines()


@pytest.mark.parametrize("variable", ["DATABASE_URL", "WORKSPACE_WORKER_METRICS_ADDRESS"])
async def test_an_address_that_a_worker_cannot_use_is_reported_in_one_sentence(
    start: Start, variable: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        values = {
            "DATABASE_URL": f"postgresql://{NOWHERE}/none",
            "WORKSPACE_WORKER_METRICS_ADDRESS": f"127.0.0.1:{taken.getsockname()[1]}",
        }
        worker = start("worker", **{variable: values[variable]})
        assert await worker.forked.ended() == 1
    [line] = [line for line in worker.lines() if "cannot be used" in line["event"]]
    assert variable in line["event"]
    assert '"stack"' not in worker.text()


@pytest.mark.long
async def test_a_worker_serves_the_metrics_of_its_process_and_of_its_sdk(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    worker = start("worker", WORKSPACE_WORKER_METRICS_ADDRESS=address)
    await worker.says("worker is ready")
    async with httpx2.AsyncClient(trust_env=False, timeout=ENOUGH) as client:
        answer = await client.get(f"http://{address}/metrics")
    shown = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {"process_resident_memory_bytes", "workspace_database_connections_in_use"} <= shown
    assert any(name.startswith("temporal_") for name in shown)
    assert await worker.obeys(40) == 0
    worker.lines()
