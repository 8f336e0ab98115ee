"""Long computations in processes of their own."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from activities.sources.processes import NICENESS, run_in_process
from tests.support.patience import eventually


def _tell(path: Path) -> None:
    path.write_text(f"{os.getpid()} {os.nice(0)}")


def _wait(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(600)


def _fail() -> None:
    raise ValueError


async def test_a_function_is_called_in_a_process_of_low_priority(tmp_path: Path) -> None:
    await run_in_process(_tell, tmp_path / "told")
    process_id, niceness = map(int, (tmp_path / "told").read_text().split())
    assert process_id != os.getpid()
    assert niceness == min(os.nice(0) + NICENESS, 19)


async def test_a_function_that_fails_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="_fail"):
        await run_in_process(_fail)


async def test_its_process_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    told = tmp_path / "told"
    running = asyncio.create_task(run_in_process(_wait, told))

    async def has_started() -> bool:
        return told.exists() and told.read_text() != ""

    await eventually(has_started, what="the start of the process")
    process_id = int(told.read_text())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
