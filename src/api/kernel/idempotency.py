"""A request repeated under its `Idempotency-Key` has one effect and one answer.

The pipeline runs an endpoint through `once`, and stores the answer of a job by `keep`, a refusal by
`refused`.

See interface.md#idempotency.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from starlette.responses import Response

from api.kernel.awaited_work import Deferred
from api.kernel.browsers import PAGE_HEADERS
from api.kernel.operation import Operation, body_argument
from api.kernel.request import ApiRequest, Claim
from api.kernel.responses import error_response
from models.core import idempotency
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import PlatformError, ValidationError


async def once(
    request: ApiRequest,
    value: object,
    perform: Callable[[], Awaitable[Response | Deferred]],
    *,
    joins: bool,
) -> Response | Deferred:
    """The stored answer if the request was made before, else the answer of performing it now.

    An endpoint refuses by raising, which rolls the claim back; `refused` then stores the refusal.
    The answer of a job is stored by `keep` when it is there. A request without a key that `joins`
    is the same request until it is answered (interface.md#idempotency). A person without an account
    who sends a form twice at once waits for its one answer.
    """
    request.idempotency_key = key = idempotency.read_key(request.idempotency_keys())
    if key is None and not joins:
        return await perform()
    digest = _digest(request, value)
    scope = _scope_of(request, digest if key is None else key.encode())
    call = Claim(scope, digest, request.workspace_id, lasting=key is not None)
    claimed = await idempotency.claim_key(
        request.work,
        request.services.keys,
        scope,
        digest,
        call.workspace_id,
        waits=joins or request.caller is None,
    )
    if isinstance(claimed, idempotency.Reply):
        return _replayed(request, claimed)
    request.claim = call
    request.new_id = claimed
    response = await perform()
    if isinstance(response, Response):
        await _settle(request, request.work, request.claim, response)
    return response


async def answered_before(
    operation: Operation, request: ApiRequest, places: Sequence[UUID]
) -> bool:
    """True when a call with this one's key was about one of the workspaces."""
    key = idempotency.read_key(request.idempotency_keys()) if operation.access.idempotent else None
    if key is None or not places:
        return False
    return await idempotency.is_known(request.work, _scope_of(request, key.encode()), places)


async def earlier_answer(
    operation: Operation, request: ApiRequest, places: Sequence[UUID], refusal: PlatformError
) -> Response:
    """The answer that the same request had before what it names was refused to it.

    The answer must have been given in one of the workspaces, in which the caller still has the
    scopes. Raises the refusal if there is none, and ConflictingMutationError for a key that was
    used for another request.
    """
    if not await answered_before(operation, request, places):
        raise refusal
    try:
        _, value, _ = body_argument(operation, request.raw_body, request.uploaded)
    except ValidationError:
        raise refusal from None
    request.idempotency_key = key = idempotency.read_key(request.idempotency_keys())
    assert key is not None
    scope = _scope_of(request, key.encode())
    reply = await idempotency.find_reply(
        request.work, request.services.keys, scope, _digest(request, value)
    )
    if reply is None:
        raise refusal
    return _replayed(request, reply)


async def keep(request: ApiRequest, response: Response | None) -> None:
    """Store the answer of a job; None frees the key."""
    claimed, request.claim = request.claim, None
    if claimed is None:
        return
    async with request.services.database.transaction() as work:
        await _settle(request, work, claimed, response)


async def _settle(
    request: ApiRequest, work: UnitOfWork, claimed: Claim, response: Response | None
) -> None:
    is_refusal = (
        request.sent_form is not None and response is not None and response.status_code >= 400
    )
    if response is None or not claimed.lasting or is_refusal:
        # A page that shows what is wrong with its form has a new key for the next attempt.
        await idempotency.forget_reply(work, claimed.fingerprint)
    else:
        await idempotency.remember_reply(
            work, request.services.keys, claimed.fingerprint, _reply(response)
        )


async def refused(request: ApiRequest, refusal: PlatformError) -> Response:
    """The answer of a call whose transaction was rolled back, stored under its key.

    Raises the refusal itself where none is to be stored, and InProgressError.
    """
    claimed = request.claim
    if claimed is None or not claimed.lasting or not idempotency.is_kept(refusal):
        raise refusal
    request.error = refusal.code
    response = error_response(refusal)
    reply = _reply(response)
    call = claimed.fingerprint, claimed.request_hash
    async with request.services.database.transaction() as work:
        stored = await idempotency.keep_refusal(
            work, request.services.keys, *call, reply, claimed.workspace_id
        )
    return response if stored is reply else _replayed(request, stored)


def _replayed(request: ApiRequest, reply: idempotency.Reply) -> Response:
    request.replayed = True
    if reply.status >= 400:
        request.error = json.loads(reply.body)["error"]
    headers = {"Idempotency-Replayed": "true"}
    if 300 <= reply.status < 400:
        # The body of a redirect is where it leads.
        headers["Location"] = reply.body.decode()
    if request.sent_form is not None:
        return Response(reply.body, reply.status, {**PAGE_HEADERS, **headers}, "text/html")
    return Response(reply.body, reply.status, headers, media_type="application/json")


def _digest(request: ApiRequest, value: object) -> bytes:
    """The digest of query and body, by which two requests with one key are the same."""
    return fingerprint(
        request.scope["query_string"],
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
    )


def _reply(response: Response) -> idempotency.Reply:
    return idempotency.Reply(response.status_code, bytes(response.body))


def _scope_of(request: ApiRequest, own: bytes) -> bytes:
    """The scope of a key: one caller, or all without an account; method and path.

    The answer to a proposal is not that of the request itself.
    """
    caller = request.caller
    return fingerprint(
        b"anybody" if caller is None else caller.type.encode(),
        b"" if caller is None else caller.id.bytes,
        request.method.encode(),
        request.scope["path"].encode("utf-8", "replace"),
        own,
        *([b"propose"] if request.is_proposal else ()),
    )
