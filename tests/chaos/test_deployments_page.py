"""The commands of docs/operations/deployments.md work as written."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cli.deploy.deployment import Deployment
from tests.chaos.processes import Workers
from tests.support.engine import VERSION, Engine
from tests.support.fingerprints import ROOT
from tests.support.patience import ENOUGH, eventually
from tests.support.runbook import blocks_of

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40), pytest.mark.long]

BLOCKS = blocks_of(ROOT / "docs" / "operations" / "deployments.md")


async def shell(script: str, address: str) -> str:
    """The output of a block, which must succeed, in the code of the new build."""
    variables = {"OLD": "page1", "NEW": "page2", "WORKSPACE_WORKER_BUILD": "page2"}
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        env={
            **os.environ,
            **variables,
            "TEMPORAL_ADDRESS": address,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), ENOUGH)
    assert process.returncode == 0, f"{script}\n{output.decode()}"
    return output.decode()


async def test_the_commands_of_the_page_work_as_written(idle: Engine, workers: Workers) -> None:
    deployment = Deployment(idle.client, VERSION.deployment)
    address = idle.client.service_client.config.target_host
    for build in ("page1", "page2"):
        worker = await workers.start(
            WORKSPACE_WORKER_VERSIONS="promoted", WORKSPACE_WORKER_BUILD=build
        )
        await worker.ready()

    async def are_heard() -> bool:
        if len((await deployment.routing()).builds) < 2:
            return False
        builds = (await deployment.workers(["page1", "page2"])).values()
        return all(processes for queues in builds for processes in queues.values())

    await eventually(are_heard, what="both builds on every queue")
    await deployment.promote("page1")
    printed = {
        title: [await shell(block, address) for block in blocks]
        for title, blocks in BLOCKS.items()
        if blocks
    }
    assert list(printed) == ["Status", "Roll out", "Roll back", "Drain"]
    assert "page2" in printed["Status"][0]
    assert "page2 takes 10% of" in printed["Roll out"][0]
    assert "page1 is now current" in printed["Roll back"][0]
    assert "You can stop its workers" in printed["Drain"][0]
