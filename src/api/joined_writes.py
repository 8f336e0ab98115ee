"""Writes of answers: the head of one leaves with its body, in one call of the system.

uvicorn writes the two one after the other, and uvloop sends each at once. Each is a tenth of what
the process does for a small answer, and wakes the client.
"""

from asyncio import AbstractEventLoop, Transport


class JoinedWrites:
    """The part of a transport that answers use; a write waits for the next one of the same turn.

    At most one waits, and no longer than the turn of the loop.
    """

    def __init__(self, loop: AbstractEventLoop, transport: Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._waiting = b""

    def write(self, data: bytes) -> None:
        """Send the data with what waits, or let it wait."""
        if self._waiting:
            waiting, self._waiting = self._waiting, b""
            self._transport.writelines((waiting, data))
        else:
            self._waiting = data
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send what waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, b""
            self._transport.write(waiting)

    def close(self) -> None:
        """Close the connection once all is sent."""
        self.flush()
        self._transport.close()
