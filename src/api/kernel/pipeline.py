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
from api.kernel.credentials import KeyToken, read_credential
from api.kernel.deferred import Deferred, wait_for_answer
from api.kernel.idempotency import keep, once
from api.kernel.operation import Operation
from api.kernel.request import ApiRequest
from api.kernel.responses import as_refusal, error_response
from api.kernel.services import Services
from api.kernel.sessions import Session
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
    services: Services = scope["app"].state.services
    request = ApiRequest(scope, receive, services)
    try:
        response = await _answer(services, operation, request)
    except ClientGoneError:
        return
    except Exception as error:  # noqa: BLE001  # the last line: whatever it is, the client is told
        refusal = as_refusal(error)
        request.error = refusal.code
        response = error_response(refusal)
    if request.caller is not None:
        _log(services, request, response.status_code, started)
    await response(scope, receive, send)


async def _answer(services: Services, operation: Operation, request: ApiRequest) -> Response:
    access = operation.access
    proof = None
    if access.credential != "none":
        proof = await prove(services, read_credential(request.scope["headers"]))
    settings = services.settings
    if access.upload:
        # A body this long is taken only from a caller who may send it.
        await _synced(services, proof, lambda: _precheck(services, operation, request, proof))
        async with uploaded(request):
            return await _decided(services, operation, request, proof, Body())
    limit = settings.batch_body_limit if operation.batch else settings.body_limit
    # Read before the transaction opens: a slow client must not hold a connection.
    body = await read_body(request.scope, request.receive, limit, raw=access.raw)
    return await _decided(services, operation, request, proof, body)


async def _decided(
    services: Services, operation: Operation, request: ApiRequest, proof: Proof | None, body: Body
) -> Response:
    if not operation.access.transaction:
        return await _finished(operation, request, await _perform(operation, request, body))
    answer = await _synced(
        services, proof, lambda: _within(services, operation, request, proof, body)
    )
    return await _finished(operation, request, answer)


async def _synced(
    services: Services, proof: Proof | None, attempt: Callable[[], Awaitable[T]]
) -> T:
    """What `attempt` gives, once more when the session's profile had to be stored first."""
    try:
        return await attempt()
    except UnsyncedProfileError:
        assert isinstance(proof, Session)
        await sync(services, proof)
        return await attempt()


async def _finished(
    operation: Operation, request: ApiRequest, answer: Response | Deferred
) -> Response:
    """The answer itself; one that a job gives is waited for outside of any transaction."""
    if isinstance(answer, Response):
        return answer
    try:
        response = _respond(operation, await wait_for_answer(request.services.database, answer))
    except InProgressError:
        raise
    except PlatformError:
        await keep(request, None)
        raise
    assert isinstance(response, Response)
    await keep(request, response)
    return response


async def _within(
    services: Services, operation: Operation, request: ApiRequest, proof: Proof | None, body: Body
) -> Response | Deferred:
    """Everything that needs the database, in one unit of work."""
    async with _unit_of_work(services.database, operation) as work:
        request.begin(work)
        if proof is not None:
            await _enter(services, operation, request, proof, body)
        return await _perform(operation, request, body)


def _unit_of_work(
    database: Database, operation: Operation
) -> AbstractAsyncContextManager[UnitOfWork]:
    if not operation.reads:
        return database.transaction()
    return database.snapshot() if operation.access.snapshot else database.reading()


async def _precheck(
    services: Services, operation: Operation, request: ApiRequest, proof: Proof | None
) -> None:
    """Whether the caller of an upload would be let in with what its headers announce."""
    assert proof is not None
    announced = announced_body(request.scope, services.settings.upload_limit + ENVELOPE)
    async with services.database.reading() as work:
        request.begin(work)
        await _enter(services, operation, request, proof, announced)


async def _enter(
    services: Services, operation: Operation, request: ApiRequest, proof: Proof, body: Body
) -> None:
    caller = await authenticate(services, request.work, proof)
    request.caller, request.roles = caller.principal, caller.roles
    if body.refusal is not None:
        raise body.refusal
    request.raw_body = body.raw
    await admit(operation, request, caller)


async def _perform(operation: Operation, request: ApiRequest, body: Body) -> Response | Deferred:
    """Read the arguments, run the endpoint, and have its bytes before the commit."""
    if body.refusal is not None:
        raise body.refusal
    if operation.access.raw:
        request.raw_body = body.raw
        return _respond(operation, await operation.endpoint(request))
    arguments = query_arguments(operation, request.scope["query_string"])
    argument, value = body_argument(operation.body, body.raw)
    if operation.access.upload:
        value = request.upload.summary
    if operation.body is not None:
        arguments[operation.body.name] = argument
    if operation.request_name is not None:
        arguments[operation.request_name] = request

    async def run() -> Response | Deferred:
        return _respond(operation, await operation.endpoint(**arguments))

    if operation.access.idempotent:
        return await once(request, value, run)
    return await run()


def _respond(operation: Operation, result: object) -> Response | Deferred:
    if isinstance(result, Deferred | Response):
        return result
    assert operation.result is not None
    data = operation.result.dump_json(result.data, by_alias=True)  # type: ignore[attr-defined]
    return Response(b'{"data":' + data + b"}", operation.status, media_type="application/json")


def _log(services: Services, request: ApiRequest, status: int, started: float) -> None:
    principal = request.principal
    is_key = principal.type is PrincipalType.API_KEY
    services.request_log.record(
        LogEntry(
            workspace_id=principal.key_workspace_id if is_key else request.workspace_id,
            principal_type=principal.type,
            principal_id=principal.id,
            api_key_id=principal.id if is_key else None,
            method=request.method,
            path=_loggable(request),
            status=status,
            idempotency_key=request.idempotency_key,
            error=request.error,
            duration_ms=round((time.perf_counter() - started) * 1000, 3),
            created_at=utc_now(),
        )
    )


def _loggable(request: ApiRequest) -> str:
    """The path as it was sent, without the secrets some paths carry."""
    raw: bytes = request.scope.get("raw_path") or b""
    path = raw.partition(b"?")[0].decode("ascii", "replace")[:_MAX_LOGGED_PATH]
    for name, value in request.path_params.items():
        if name.lower().endswith("token"):
            path = path.replace(quote(value), f"{{{name}}}")
    return path
