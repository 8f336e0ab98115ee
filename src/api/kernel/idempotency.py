"""The same call twice has one effect and one answer (decisions C3)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from api.kernel.call import Call
from api.kernel.later import Later
from models.core.idempotency.commands import Reply, claim, forget, remember
from models.core.idempotency.rules import read_key
from runtime.crypto import fingerprint


async def once(
    call: Call, value: Any, perform: Callable[[], Awaitable[Response | Later]]
) -> Response | Later:
    """The stored reply if this call was made before, else the reply of performing it now.

    Endpoints refuse by raising, which rolls the claim back: only successes are kept. A reply that
    a job gives is kept by `keep`, when it is there.
    """
    key = read_key(call.headers_named(b"idempotency-key"))
    if key is None:
        return await perform()
    call.idempotency_key = key
    request = fingerprint(
        call.scope["query_string"],
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
    )
    claimed = await claim(call.work, call.kernel.keys, _place(call), request)
    if isinstance(claimed, Reply):
        call.replayed = True
        return Response(
            claimed.body,
            claimed.status,
            {"Idempotency-Replayed": "true"},
            media_type="application/json",
        )
    call.new_id = claimed
    response = await perform()
    if isinstance(response, Response):
        await remember(call.work, call.kernel.keys, _place(call), _reply(response))
    return response


async def keep(call: Call, response: Response | None) -> None:
    """Store the reply that came after the commit; None frees the key, for it was a refusal."""
    if call.idempotency_key is None:
        return
    async with call.kernel.database.transaction() as work:
        if response is None:
            await forget(work, _place(call))
        else:
            await remember(work, call.kernel.keys, _place(call), _reply(response))


def _reply(response: Response) -> Reply:
    return Reply(response.status_code, bytes(response.body))


def _place(call: Call) -> bytes:
    """What a key is valid for: one caller, one method, one path."""
    assert call.idempotency_key is not None
    principal = call.principal
    return fingerprint(
        principal.type.encode(),
        principal.id.bytes,
        call.method.encode(),
        call.scope["path"].encode("utf-8", "replace"),
        call.idempotency_key.encode(),
    )
