"""The same call twice has one effect and one answer (decisions C3)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from api.kernel.call import Call
from models.idempotency.commands import Reply, claim, remember
from models.idempotency.rules import read_key
from runtime.crypto import fingerprint


async def once(call: Call, value: Any, perform: Callable[[], Awaitable[Response]]) -> Response:
    """The stored reply if this call was made before, else the reply of performing it now.

    Endpoints refuse by raising, which rolls the claim back: only successes are kept.
    """
    key = read_key(call.headers_named(b"idempotency-key"))
    if key is None:
        return await perform()
    call.idempotency_key = key
    principal = call.principal
    place = fingerprint(
        principal.type.encode(),
        principal.id.bytes,
        call.method.encode(),
        call.scope["path"].encode("utf-8", "replace"),
        key.encode(),
    )
    request = fingerprint(
        call.scope["query_string"],
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
    )
    keys = call.kernel.keys
    stored = await claim(call.work, keys, place, request)
    if stored is not None:
        return Response(
            stored.body,
            stored.status,
            {"Idempotency-Replayed": "true"},
            media_type="application/json",
        )
    response = await perform()
    reply = Reply(response.status_code, bytes(response.body))
    await remember(call.work, keys, place, reply)
    return response
