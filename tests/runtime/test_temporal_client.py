"""The connection to a Temporal that does not answer."""

import asyncio
import socket

import pytest

from runtime.configuration.settings import TemporalSettings
from runtime.temporal.client import TemporalUnreachableError, connect

SECONDS = 15
"""Less than half of the time that the SDK waits for a silent server by itself."""


async def test_the_connection_to_a_silent_server_fails_in_time() -> None:
    """It takes connections and says nothing, as a process that was stopped or hangs."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with asyncio.timeout(SECONDS):
            with pytest.raises(TemporalUnreachableError, match=address):
                await connect(TemporalSettings(temporal_address=address), seconds=0.5)
