"""The loop of the server beside its requests."""

import asyncio
import signal

import pytest
import uvicorn
from starlette.applications import Starlette

from api import server as module
from api.server import Server


def _server(exits: list[str]) -> Server:
    config = uvicorn.Config(Starlette(), log_config=None, lifespan="off")
    config.load()
    return Server(config, lambda: exits.append("exit"))


async def test_a_signal_ends_the_server_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 60)
    exits: list[str] = []
    server = _server(exits)
    running = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0)
    server.handle_exit(signal.SIGTERM, None)
    async with asyncio.timeout(5):
        await running
    assert exits == ["exit"]


async def test_the_date_is_renewed_with_each_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)
    server = _server([])
    running = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0)
    server.server_state.default_headers = []
    await asyncio.sleep(0.1)
    assert [name for name, _ in server.server_state.default_headers][:1] == [b"date"]
    server.handle_exit(signal.SIGTERM, None)
    await running
