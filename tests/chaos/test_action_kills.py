"""A worker dies while it carries out the action of a node: the run ends, the effect counts once."""

import signal
from pathlib import Path

import pytest

from runtime.processes.fault_injection import FaultPoint
from tests.chaos.processes import Workers
from tests.support import actions
from tests.support.actions import make, states, step
from tests.support.endpoint import reply, serving
from tests.support.engine import Engine, graph

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=20), pytest.mark.long]


@pytest.mark.parametrize(
    "point", [FaultPoint.AFTER_CALL_BEFORE_END, FaultPoint.AFTER_TERMINAL_WRITE]
)
async def test_the_action_of_a_node_survives_its_worker(
    idle: Engine, workers: Workers, tmp_path: Path, point: FaultPoint
) -> None:
    async with serving() as serve:
        endpoint = await serve(reply())
        retry = {"maxAttempts": 3, "initialDelaySeconds": 0}
        call = step("call", "http_request", method="POST", url=endpoint.url, retry=retry)
        action_id = await make(idle, "sequence", steps=[call])
        node = {"id": "act", "kind": "action", "actionId": str(action_id)}
        automation = await idle.publish(graph(node))
        doomed = await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
        await doomed.ready()
        run_id = await idle.start(automation.id)
        assert await doomed.ended() == -signal.SIGKILL
        survivor = await workers.start()
        await survivor.ready()
        run = await idle.ended(automation.id, run_id)
        assert run.status == "succeeded", run.error
        (ran,) = await actions.of_action(idle, action_id)
        assert (ran.status, states(ran)) == ("succeeded", {"call": "succeeded"})
        assert len({one.headers["idempotency-key"] for one in endpoint.requests}) == 1
