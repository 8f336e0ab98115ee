"""The commands of docs/operating.md work as written."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runtime.temporal.workflow_kinds import SearchAttribute
from tests.support.fingerprints import ROOT
from tests.support.patience import eventually
from tests.support.runbook import blocks_of

pytestmark = [pytest.mark.takes(seconds=20), pytest.mark.long]

BLOCKS = blocks_of(ROOT / "docs" / "operating.md")
COMMANDS = Path(sys.executable).parent


async def _printed(*command: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode()


@asynccontextmanager
async def _started(script: str, directory: Path) -> AsyncIterator[None]:
    with (directory / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", f"exec {script}"),
            cwd=directory,
            env={**os.environ, "PATH": f"{COMMANDS}:{os.environ['PATH']}"},
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 60)


def test_every_command_of_the_page_is_tried_here() -> None:
    # The digests are a fact of a registry, which no test asks.
    assert {title for title, blocks in BLOCKS.items() if blocks} == {"Images", "Temporal on SQLite"}


async def test_temporal_starts_on_sqlite_with_our_search_attributes(tmp_path: Path) -> None:
    [script] = BLOCKS["Temporal on SQLite"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    temporal, address = str(COMMANDS / "temporal"), f"127.0.0.1:{port}"
    async with _started(f"{script.strip()} --port {port} --headless", tmp_path):

        async def serves() -> bool:
            _, health = await _printed(
                temporal, "operator", "cluster", "health", "--address", address
            )
            return "SERVING" in health

        await eventually(serves, what=(tmp_path / "output").read_text())
        _, attributes = await _printed(
            temporal, "operator", "search-attribute", "list", "--address", address
        )
        assert {name for name in SearchAttribute if name in attributes} == set(SearchAttribute)
    assert (tmp_path / "temporal.db").exists()
