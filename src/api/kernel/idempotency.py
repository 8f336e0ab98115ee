"""A request repeated under its `Idempotency-Key` has one effect and one answer (decisions C3).

The pipeline runs an endpoint through `once`, and stores the answer of a job by `keep`.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from api.kernel.deferred import Deferred
from api.kernel.request import ApiRequest
from models.core.idempotency.commands import Reply, claim, forget, remember
from models.core.idempotency.rules import read_key
from runtime.crypto import fingerprint


async def once(
    request: ApiRequest, value: Any, perform: Callable[[], Awaitable[Response | Deferred]]
) -> Response | Deferred:
    """The stored answer if the request was made before, else the answer of performing it now.

    Endpoints refuse by raising, which rolls the claim back: only successes are stored. The answer
    of a job is stored by `keep` when it is there.
    """
    key = read_key(request.headers_named(b"idempotency-key"))
    if key is None:
        return await perform()
    request.idempotency_key = key
    digest = fingerprint(
        request.scope["query_string"],
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
    )
    claimed = await claim(request.work, request.services.keys, _scope_of(request), digest)
    if isinstance(claimed, Reply):
        request.replayed = True
        return Response(
            claimed.body,
            claimed.status,
            {"Idempotency-Replayed": "true"},
            media_type="application/json",
        )
    request.new_id = claimed
    response = await perform()
    if isinstance(response, Response):
        await remember(request.work, request.services.keys, _scope_of(request), _reply(response))
    return response


async def keep(request: ApiRequest, response: Response | None) -> None:
    """Store the answer of a job; None stands for a refusal and frees the key."""
    if request.idempotency_key is None:
        return
    async with request.services.database.transaction() as work:
        if response is None:
            await forget(work, _scope_of(request))
        else:
            await remember(work, request.services.keys, _scope_of(request), _reply(response))


def _reply(response: Response) -> Reply:
    return Reply(response.status_code, bytes(response.body))


def _scope_of(request: ApiRequest) -> bytes:
    """What a key stands for: one caller, method and path."""
    assert request.idempotency_key is not None
    principal = request.principal
    return fingerprint(
        principal.type.encode(),
        principal.id.bytes,
        request.method.encode(),
        request.scope["path"].encode("utf-8", "replace"),
        request.idempotency_key.encode(),
    )
