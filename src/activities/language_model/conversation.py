"""One question to a model, through pydantic-ai and the platform's own outbound client.

This module is imported when the first model is asked: the client takes seconds to import.
"""

from collections.abc import Mapping

import httpx2
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from typing_extensions import override

from models.workspace.model_settings import Endpoint
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest

MAX_ANSWER = 2 * 1024 * 1024
"""Bytes of an answer, with all that frames its words."""
_FRAMING = frozenset({"host", "content-length", "connection", "accept-encoding"})
_DECODED = frozenset({"content-length", "content-encoding", "transfer-encoding"})


class OutboundTransport(httpx2.AsyncBaseTransport):
    """Sends every request of an httpx2 client through the outbound client.

    So private addresses are not reached, and the whole answer is bounded in size and time. A
    streamed answer is read to its end before it is returned.
    """

    def __init__(self, outbound: OutboundClient, seconds: float, *, anonymous: bool) -> None:
        """`anonymous` leaves out the Authorization that the client of the model always sends."""
        self._outbound = outbound
        self._seconds = seconds
        self._left_out = _FRAMING | ({"authorization"} if anonymous else set())

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._outbound.send(
            OutboundRequest(
                method=request.method,
                url=str(request.url),
                headers=_without(request.headers, self._left_out),
                body=await request.aread(),
                timeout_seconds=self._seconds,
                max_bytes=MAX_ANSWER,
            )
        )
        headers = _without(answer.headers, _DECODED)
        return httpx2.Response(answer.status, headers=headers, content=answer.body, request=request)


def _without(headers: Mapping[str, str], names: frozenset[str] | set[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


def client_of(outbound: OutboundClient, endpoint: Endpoint) -> httpx2.AsyncClient:
    """The client by which an endpoint is reached; it follows no redirects by itself."""
    transport = OutboundTransport(
        outbound, endpoint.timeout_seconds, anonymous=endpoint.api_key is None
    )
    return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)


MAX_TOKENS = 8_000
_NO_KEY = "none"
"""The client insists on a key; the transport leaves it out."""


async def converse(
    outbound: OutboundClient, endpoint: Endpoint, instructions: str, prompt: str
) -> str:
    """The words that a model answers, streamed, so that a slow one is not taken for a dead one."""
    async with client_of(outbound, endpoint) as http:
        client = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or _NO_KEY,
            http_client=http,
            max_retries=0,
            timeout=float(endpoint.timeout_seconds),
        )
        model = OpenAIChatModel(endpoint.model, provider=OpenAIProvider(openai_client=client))
        agent = Agent(
            model,
            output_type=str,
            instructions=instructions,
            retries=0,
            model_settings=ModelSettings(max_tokens=MAX_TOKENS, temperature=0.2),
        )
        async with agent.run_stream(prompt) as answer:
            return await answer.get_output()
