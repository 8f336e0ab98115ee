"""A real HTTP/2 server on loopback, in clear text: it gives its answers in turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

Answer = tuple[int, bytes] | tuple[int, bytes, dict[str, str]]


@dataclass
class Received:
    """One request as it arrived; header names are lower case."""

    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Http2Endpoint:
    """Gives `answers` in turn, the last one for ever; counts its connections."""

    answers: list[Answer]
    port: int = 0
    connections: int = 0
    requests: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        streams: dict[int, Received] = {}
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    headers = {str(name): str(value) for name, value in event.headers}
                    streams[event.stream_id] = Received(headers[":path"], headers)
                elif isinstance(event, DataReceived):
                    streams[event.stream_id].body += event.data
                    length = event.flow_controlled_length
                    connection.acknowledge_received_data(length, event.stream_id)
                elif isinstance(event, StreamEnded):
                    self.requests.append(streams.pop(event.stream_id))
                    self._answer(connection, event.stream_id)
            writer.write(connection.data_to_send())
            await writer.drain()
        writer.close()

    def _answer(self, connection: H2Connection, stream: int) -> None:
        turn = min(len(self.requests), len(self.answers)) - 1
        status, body, *more = self.answers[turn]
        headers = [(":status", str(status)), *(more[0].items() if more else ())]
        connection.send_headers(stream, headers, end_stream=not body)
        if body:
            connection.send_data(stream, body, end_stream=True)


@asynccontextmanager
async def http2_endpoint(*answers: Answer) -> AsyncIterator[Http2Endpoint]:
    """The server, until the block ends."""
    endpoint = Http2Endpoint(list(answers))
    server = await asyncio.start_server(endpoint.handle, "127.0.0.1", 0)
    endpoint.port = server.sockets[0].getsockname()[1]
    yield endpoint
    server.close()
