"""One question to a model, through pydantic-ai.

Imported when the first model is asked: the client takes seconds to import.
"""

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from activities.language_model.transport import client_of
from models.workspace.model_settings.queries import Endpoint
from runtime.outbound.client import OutboundClient

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
