"""The loop of the server beside its requests."""

import asyncio
import signal

import pytest
import uvicorn
from starlette.applications import Starlette

from api import server as module
from api.server import Server
from tests.support.patience import ENOUGH, eventually


def _server(exits: list[str]) -> Server:
    config = uvicorn.Config(Starlette(), log_config=None, lifespan="off")
    config.load()
    return Server(config, lambda: exits.append("exit"))


async def test_a_signal_ends_the_server_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 10 * ENOUGH)
    exits: list[str] = []
    server = _server(exits)
    running = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0)
    server.handle_exit(signal.SIGTERM, None)
    async with asyncio.timeout(ENOUGH):
        await running
    assert exits == ["exit"]


async def test_the_date_is_renewed_with_each_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)
    server = _server([])
    running = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0)
    server.server_state.default_headers = []

    async def renewed() -> bool:
        return [name for name, _ in server.server_state.default_headers][:1] == [b"date"]

    await eventually(renewed)
    server.handle_exit(signal.SIGTERM, None)
    await running
