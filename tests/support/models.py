"""What a server that speaks as OpenAI's does sends: an answer in a stream of events."""

import json
from typing import Any

from tests.support.endpoint import reply


def streamed(text: str, *, pieces: int = 3) -> bytes:
    """The whole answer of `/chat/completions` with `stream: true`, in this number of pieces."""
    size = len(text) // pieces + 1
    parts = [text[place : place + size] for place in range(0, len(text), size)]
    events = [
        _chunk({"role": "assistant", "content": ""}),
        *(_chunk({"content": p}) for p in parts),
    ]
    events.append(_chunk({}, finish="stop"))
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in events) + "data: [DONE]\n\n"
    return reply(200, body, type_="text/event-stream")


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "small",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
