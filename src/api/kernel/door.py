"""The way of one request: the order of checks of decisions C2, and one transaction (I1)."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.kernel.arguments import body_argument, query_arguments
from api.kernel.authentication import UnsyncedProfileError, authenticate, prove, sync
from api.kernel.authorization import admit
from api.kernel.body import Body, ClientGoneError, announced_body, read_body
from api.kernel.call import Call
from api.kernel.credentials import KeyToken, read_credential
from api.kernel.errors import as_refusal, error_response
from api.kernel.idempotency import keep, once
from api.kernel.later import Later, settled
from api.kernel.operation import Operation
from api.kernel.sessions import Session
from api.kernel.state import Kernel
from api.kernel.uploads import ENVELOPE, uploaded
from models.core.access.rules import PrincipalType
from models.people.request_logs.commands import LogEntry
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.errors import InProgressError, PlatformError

T = TypeVar("T")
Proof: TypeAlias = KeyToken | Session

_MAX_LOGGED_PATH = 2000


async def serve(operation: Operation, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request; the answer leaves only after its transaction is durable."""
    started = time.perf_counter()
    kernel: Kernel = scope["app"].state.kernel
    call = Call(scope, receive, kernel)
    try:
        response = await _answer(kernel, operation, call)
    except ClientGoneError:
        return
    except Exception as error:  # noqa: BLE001  # the last line: whatever it is, the client is told
        refusal = as_refusal(error)
        call.error = refusal.code
        response = error_response(refusal)
    if call.caller is not None:
        _log(kernel, call, response.status_code, started)
    await response(scope, receive, send)


async def _answer(kernel: Kernel, operation: Operation, call: Call) -> Response:
    access = operation.access
    proof = None
    if access.credential != "none":
        proof = await prove(kernel, read_credential(call.scope["headers"]))
    settings = kernel.settings
    if access.upload:
        # A body this long is taken only from a caller who may send it.
        await _synced(kernel, proof, lambda: _knock(kernel, operation, call, proof))
        async with uploaded(call):
            return await _decided(kernel, operation, call, proof, Body())
    limit = settings.batch_body_limit if operation.batch else settings.body_limit
    # Read before the transaction opens: a slow client must not hold a connection.
    body = await read_body(call.scope, call.receive, limit, raw=access.raw)
    return await _decided(kernel, operation, call, proof, body)


async def _decided(
    kernel: Kernel, operation: Operation, call: Call, proof: Proof | None, body: Body
) -> Response:
    if not operation.access.transaction:
        return await _finished(operation, call, await _perform(operation, call, body))
    answer = await _synced(kernel, proof, lambda: _within(kernel, operation, call, proof, body))
    return await _finished(operation, call, answer)


async def _synced(kernel: Kernel, proof: Proof | None, attempt: Callable[[], Awaitable[T]]) -> T:
    """What `attempt` gives, once more when the session's profile had to be stored first."""
    try:
        return await attempt()
    except UnsyncedProfileError:
        assert isinstance(proof, Session)
        await sync(kernel, proof)
        return await attempt()


async def _finished(operation: Operation, call: Call, answer: Response | Later) -> Response:
    """The answer itself; one that a job gives is waited for outside of any transaction."""
    if isinstance(answer, Response):
        return answer
    try:
        response = _respond(operation, await settled(call.kernel.database, answer))
    except InProgressError:
        raise
    except PlatformError:
        await keep(call, None)
        raise
    assert isinstance(response, Response)
    await keep(call, response)
    return response


async def _within(
    kernel: Kernel, operation: Operation, call: Call, proof: Proof | None, body: Body
) -> Response | Later:
    """Everything that needs the database, in one unit of work."""
    async with _unit_of_work(kernel.database, operation) as work:
        call.begin(work)
        if proof is not None:
            await _enter(kernel, operation, call, proof, body)
        return await _perform(operation, call, body)


def _unit_of_work(
    database: Database, operation: Operation
) -> AbstractAsyncContextManager[UnitOfWork]:
    if not operation.reads:
        return database.transaction()
    return database.snapshot() if operation.access.snapshot else database.reading()


async def _knock(kernel: Kernel, operation: Operation, call: Call, proof: Proof | None) -> None:
    """Whether the caller of an upload would be let in with what its headers announce."""
    assert proof is not None
    announced = announced_body(call.scope, kernel.settings.upload_limit + ENVELOPE)
    async with kernel.database.reading() as work:
        call.begin(work)
        await _enter(kernel, operation, call, proof, announced)


async def _enter(
    kernel: Kernel, operation: Operation, call: Call, proof: Proof, body: Body
) -> None:
    caller = await authenticate(kernel, call.work, proof)
    call.caller, call.roles = caller.principal, caller.roles
    if body.refusal is not None:
        raise body.refusal
    call.raw_body = body.raw
    await admit(operation, call, caller)


async def _perform(operation: Operation, call: Call, body: Body) -> Response | Later:
    """Read the arguments, run the endpoint, and have its bytes before the commit."""
    if body.refusal is not None:
        raise body.refusal
    if operation.access.raw:
        call.raw_body = body.raw
        return _respond(operation, await operation.endpoint(call))
    arguments = query_arguments(operation, call.scope["query_string"])
    argument, value = body_argument(operation.body, body.raw)
    if operation.access.upload:
        value = call.upload.summary
    if operation.body is not None:
        arguments[operation.body.name] = argument
    if operation.call_name is not None:
        arguments[operation.call_name] = call

    async def run() -> Response | Later:
        return _respond(operation, await operation.endpoint(**arguments))

    if operation.access.idempotent:
        return await once(call, value, run)
    return await run()


def _respond(operation: Operation, result: object) -> Response | Later:
    if isinstance(result, Later | Response):
        return result
    assert operation.result is not None
    data = operation.result.dump_json(result.data, by_alias=True)  # type: ignore[attr-defined]
    return Response(b'{"data":' + data + b"}", operation.status, media_type="application/json")


def _log(kernel: Kernel, call: Call, status: int, started: float) -> None:
    principal = call.principal
    is_key = principal.type is PrincipalType.API_KEY
    kernel.request_log.record(
        LogEntry(
            workspace_id=principal.key_workspace_id if is_key else call.workspace_id,
            principal_type=principal.type,
            principal_id=principal.id,
            api_key_id=principal.id if is_key else None,
            method=call.method,
            path=_loggable(call),
            status=status,
            idempotency_key=call.idempotency_key,
            error=call.error,
            duration_ms=round((time.perf_counter() - started) * 1000, 3),
            created_at=utc_now(),
        )
    )


def _loggable(call: Call) -> str:
    """The path as it was sent, without the secrets some paths carry."""
    raw: bytes = call.scope.get("raw_path") or b""
    path = raw.partition(b"?")[0].decode("ascii", "replace")[:_MAX_LOGGED_PATH]
    for name, value in call.path_params.items():
        if name.lower().endswith("token"):
            path = path.replace(quote(value), f"{{{name}}}")
    return path
