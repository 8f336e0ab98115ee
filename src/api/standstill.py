"""The timer that cuts a connection off whose client does not read what waits for it."""

from asyncio import AbstractEventLoop, TimerHandle, Transport

SECONDS = 60.0
"""The time a client may read nothing of what waits for it."""


class Standstill:
    """The time that the client of a connection has left to read."""

    def __init__(self, loop: AbstractEventLoop, transport: Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._end: TimerHandle | None = None

    def begin(self) -> None:
        """More waits than may, or the connection is closing: the client must read now.

        A closing connection stays until its client has read the rest, which may be never.
        """
        if self._end is None:
            self._end = self._loop.call_later(SECONDS, self._transport.abort)

    def read(self) -> None:
        """The client has read; of a closing connection it must read the rest, too."""
        if not self._transport.is_closing():
            self.forget()

    def forget(self) -> None:
        """The connection is gone, or nothing waits for its client."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
