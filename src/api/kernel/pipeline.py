"""The steps of a request, in order and in one transaction, and its log entry.

`dispatch` calls `serve` with the operation of the request. The steps: the credential is read, then
the body; in the transaction the caller is authenticated and authorized, the arguments are read, the
endpoint runs and its answer is encoded; after the commit the answer is sent. Any step may refuse by
raising, which rolls the transaction back (docs/adr/0025).
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api import dry_runs
from api.dry_runs import answer_at_once, begin_dry_run, trying, with_changes
from api.kernel import authorization, browsers
from api.kernel import body as kernel_body
from api.kernel.awaited_work import Deferred, wait_for_answer
from api.kernel.idempotency import answered_before, earlier_answer, keep, once, refused
from api.kernel.operation import Operation, body_argument, check_echoes, query_arguments
from api.kernel.request import ApiRequest
from api.kernel.response_headers import LINK, deprecation_headers, next_link
from api.kernel.responses import Data, as_refusal, error_response
from api.kernel.services import Services
from api.kernel.sessions import Session
from api.kernel.uploads import ENVELOPE, form_boundary, upload_limit, uploaded
from models.core import openapi
from models.core.access.rules import PrincipalType
from models.core.idempotency import is_kept
from models.people.request_logs import LogEntry
from models.workspace.changes.dry_runs import Trial, trial_of
from models.workspace.changes.requests import SentRequest
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, InProgressError, NotFoundError, PlatformError
from runtime.observability.logs import without_tokens
from runtime.observability.tracing import request_span
from runtime.outbound_policy import saving
from runtime.processes.bounded_processes import evaluating_for
from runtime.redaction import Redaction

T = TypeVar("T")


async def serve(operation: Operation, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request; the answer leaves only after its transaction is durable."""
    with request_span(operation.name, scope["headers"]) as span:
        response = await _answered(operation, scope, receive)
        if response is None:
            return
        if span is not None:
            span.set_attribute("http.response.status_code", response.status_code)
    if scope["method"] == "HEAD":
        await _send_head(response, send)
    else:
        await response(scope, receive, send)


async def _send_head(response: Response, send: Send) -> None:
    """Send what an answer says without its body: a stream does not begin."""
    start = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "http.response.start", **start})
    await send({"type": "http.response.body"})


async def _answered(operation: Operation, scope: Scope, receive: Receive) -> Response | None:
    """The answer of a request, counted and logged; None for a client that is gone."""
    start = time.perf_counter()
    services: Services = scope["app"].state.services
    settings = services.settings
    paced = kernel_body.PacedReceive(receive, settings.receive_rate, settings.receive_seconds)
    request = ApiRequest(scope, paced, services)
    saving.set(services.outbound)
    try:
        response = await _Pipeline(operation, request).answer()
    except kernel_body.ClientGoneError:
        return None
    except Exception as error:  # noqa: BLE001  # the client is told, whatever it is
        refusal = as_refusal(error)
        request.error = refusal.code
        response = operation.refuse(request, refusal)
    if request.quota is not None:
        response.headers.update(request.quota.headers())
    if request.caller is not None:
        keeps_nothing = request.is_dry_run and not request.is_proposal
        request.is_safe |= operation.access.safe or keeps_nothing
        log_request(request, response.status_code, start)
    if response.status_code < HTTPStatus.BAD_REQUEST:
        response.headers.update(deprecation_headers(request.deprecated))
    seconds = time.perf_counter() - start
    services.metrics.observe(operation.name, response.status_code, seconds)
    return response


@dataclass(slots=True)
class _Pipeline:
    """One request on its way."""

    operation: Operation
    request: ApiRequest
    proof: authorization.Proof | None = None
    body: kernel_body.Body = kernel_body.NO_BODY
    proposed: Operation = field(init=False)
    """The operation itself, with the demands of its own."""

    async def answer(self) -> Response:
        """Every step. Raises the refusal of the first that refuses, and ClientGoneError."""
        try:
            return await self._steps()
        except PlatformError as refusal:
            if self.operation.access.page or self.request.is_dry_run:
                raise
            return await refused(self.request, refusal)

    async def _steps(self) -> Response:
        request = self.request
        settings = request.services.settings
        begin_dry_run(self.operation, request)
        self.proposed = self.operation
        self.operation = dry_runs.begin_proposal(self.operation, request)
        access = self.operation.access
        if access.page:
            browsers.check_origin(request.scope)
        if access.credential != "none":
            credential = authorization.credential_of(access, request.scope, request.services)
            self.proof = await authorization.prove(request.services, credential)
            if isinstance(self.proof, Session):
                request.session_expires_at = self.proof.expires_at
            elif isinstance(self.proof, browsers.CookieToken):
                request.cookie = self.proof
            name = request.caller_name = self.proof.caller_name()
            # Before anything is read or asked of the database.
            request.quota = request.services.limits.take(name, starts_run=access.starts_run)
            request.share = request.services.shares.share_of(name)
        evaluating_for.set(request.share)
        if access.upload and self._is_upload():
            # So long a body is taken only from a caller who may send it.
            await self._with_profile(self._precheck)
            on_fields = self._take_fields if access.page else None
            async with uploaded(request, access.bundles, on_fields):
                return await self._after_body()
        limit = settings.batch_body_limit if self.operation.batch else settings.body_limit
        raw = access.raw or access.page
        # Read before the transaction opens: a slow client must not hold a connection.
        self.body = await kernel_body.read_body(request.scope, request.receive, limit, raw=raw)
        if access.page and not browsers.is_safe(request.scope):
            self._read_form()
        return await self._after_body()

    def _read_form(self) -> None:
        """Take the body as a form. Raises ForeignFormError for one of another session."""
        self._take(browsers.read_form(self.request.scope["headers"], self.body))

    def _take_fields(self, fields: Mapping[str, str]) -> None:
        """Take the fields before a file as a form, before the file is read."""
        self._take(browsers.form_of(self.request.scope["headers"], fields))

    def _take(self, form: browsers.Form) -> None:
        request = self.request
        request.sent_form, self.body = form, form.body
        if request.cookie is not None:
            browsers.check_token(request.services.keys, request.cookie, form.token)

    def _is_upload(self) -> bool:
        """True for a body that goes to the object store: of a page, a form with a file."""
        content_type = b"".join(self.request.headers_named(b"content-type")[:1])
        if self.operation.access.page:
            return form_boundary(content_type) is not None
        return self.operation.body is None or not kernel_body.is_json(content_type)

    async def _after_body(self) -> Response:
        if self.request.is_proposal:
            return await self._with_profile(self._propose)
        if self.request.is_dry_run:
            return await self._with_profile(self._try)
        if self.operation.access.transaction:
            answer = await self._with_profile(self._in_transaction)
        else:
            answer = await self._call_endpoint()
        return answer if isinstance(answer, Response) else await self._deferred(answer)

    async def _with_profile(self, step: Callable[[], Awaitable[T]]) -> T:
        """The result of a step; it is repeated when the session's profile must be stored first."""
        try:
            return await step()
        except authorization.UnsyncedProfileError:
            assert isinstance(self.proof, Session)
            await authorization.sync(self.request.services, self.proof)
            return await step()

    async def _precheck(self) -> None:
        """Refuse an upload by its caller and headers, before its body is read."""
        services = self.request.services
        limit = upload_limit(services.settings, self.operation.access.bundles) + ENVELOPE
        announced = kernel_body.announced_body(self.request.scope, limit)
        async with services.shares.held(self.request.share), services.database.reading() as work:
            self.request.begin(work)
            caller = await self._authenticated(announced)
            places = authorization.enter(self.operation, self.request, caller)
            try:
                await authorization.find(self.operation, self.request, caller, places)
            except (DeniedError, NotFoundError):
                # An upload that was answered before is read to be compared.
                if not await answered_before(self.operation, self.request, places):
                    raise

    async def _in_transaction(self) -> Response | Deferred:
        request, heavy = self.request, self.operation.heavy
        share = request.services.shares.held(request.share, heavy=heavy)
        async with share, self._unit_of_work() as work:
            request.begin(work)
            earlier = None if self.proof is None else await self._admit()
            return earlier or await self._call_endpoint()

    async def _try(self) -> Response:
        """The answer of a dry run, whose transaction is rolled back."""
        request = self.request
        share = request.services.shares.held(request.share, heavy=self.operation.heavy)
        async with share, trying(request) as work:
            request.begin(work)
            return await with_changes(request, await self._admit() or await self._called_at_once())

    async def _propose(self) -> Response:
        """The answer of a request that is kept, with the changes of its dry run."""
        request = self.request
        original = dry_runs.sent_request(request, self.body.raw)
        async with request.services.shares.held(request.share, heavy=self.operation.heavy):
            async with trying(request) as work:
                request.begin(work)
                answer = await self._admit()
                if answer is None:
                    author = request.actor
                    dry_runs.enter_as_proposed(request, self.proposed.access)
                    answer = await self._called_at_once()
                if request.replayed:
                    answer.headers.update(dry_runs.APPLIED_PROPOSAL)
                    return answer
                trial = await trial_of(work, request.principal, author)
            async with request.services.database.transaction() as work:
                request.begin(work)
                return await self._keep_proposal(original, answer.status_code, trial)

    async def _keep_proposal(self, original: SentRequest, status: int, trial: Trial) -> Response:
        answer = await self._admit()
        if answer is not None:
            return answer
        _, value, _ = body_argument(self.operation, self.body.raw)

        async def keep() -> Response:
            return await dry_runs.keep_proposal(
                self.request, self.proposed, original, status, trial
            )

        kept = await once(self.request, value, keep, joins=False)
        assert isinstance(kept, Response)
        return kept

    async def _called_at_once(self) -> Response:
        """The answer of the endpoint, of work as far as no worker gives it."""
        answer = await self._call_endpoint()
        if isinstance(answer, Deferred):
            answer = self._encoded(await answer_at_once(self.request.work, answer))
        assert isinstance(answer, Response)
        return answer

    def _unit_of_work(self) -> AbstractAsyncContextManager[UnitOfWork]:
        database = self.request.services.database
        if not self.operation.reads:
            return database.transaction()
        return database.snapshot() if self.operation.access.snapshot else database.reading()

    async def _admit(self) -> Response | None:
        """Authenticate and authorize the caller; between the two a bad body is refused.

        A request that was answered before gets that answer, although what it names is gone or
        closed to the caller since (ADR 0131).
        """
        operation, request = self.operation, self.request
        caller = await self._authenticated(self.body)
        places = authorization.enter(operation, request, caller)
        try:
            await authorization.find(operation, request, caller, places)
        except (DeniedError, NotFoundError) as refusal:
            return await earlier_answer(operation, request, places, refusal)
        return None

    async def _authenticated(self, body: kernel_body.Body) -> authorization.Caller:
        """The caller. Raises the refusal of a bad body of theirs."""
        request = self.request
        assert self.proof is not None
        prefetches = authorization.prefetches_of(self.operation, request)
        caller = await authorization.authenticate(
            request.services, request.work, self.proof, prefetches
        )
        request.caller, request.roles = caller.principal, caller.roles
        if caller.until is not None:
            request.session_expires_at = caller.until
        if caller.principal.key_workspace_id is not None:
            request.services.shares.belongs(request.caller_name, caller.principal.key_workspace_id)
        if body.refusal is not None:
            raise body.refusal
        request.raw_body = body.raw
        return caller

    async def _call_endpoint(self) -> Response | Deferred:
        """Read the arguments, run the endpoint, and encode its answer before the commit."""
        operation, request, body = self.operation, self.request, self.body
        if body.refusal is not None:
            raise body.refusal
        if operation.access.raw:
            request.raw_body = body.raw
            return self._encoded(await operation.endpoint(request))
        arguments = query_arguments(operation, request.scope["query_string"])
        argument, value, echoed = body_argument(operation, body.raw, request.uploaded)
        if operation.body is not None:
            arguments[operation.body.name] = argument
        request.deprecated = self._deprecated(argument)
        if operation.request_name is not None:
            arguments[operation.request_name] = request
        for name, precondition in operation.preconditions.items():
            arguments[name] = precondition.read(request.headers.get("if-match"))

        async def run() -> Response | Deferred:
            result = await operation.endpoint(**arguments)
            check_echoes(echoed, operation, request, result)
            return self._encoded(result)

        if not operation.access.idempotent:
            return await run()
        return await once(request, value, run, joins=operation.access.joins)

    def _deprecated(self, body: object) -> Sequence[openapi.Deprecated]:
        """The deprecated parts of all that the request uses."""
        operation, query = self.operation, self.request.scope["query_string"]
        deprecations = [operation.deprecated] if operation.deprecated is not None else []
        if any(parameter.deprecated for parameter in operation.query.values()):
            names = dict(parse_qsl(query.decode()))
            deprecations += [
                mark
                for name in names.keys() & operation.query.keys()
                for mark in operation.query[name].deprecated
            ]
        if operation.body is not None and openapi.may_use_deprecated(operation.body.shape):
            deprecations += openapi.deprecated_in_body(body)
        return [*deprecations, *openapi.deprecated_in_answer(operation.endpoint)]

    def _encoded(self, result: object) -> Response | Deferred:
        if isinstance(result, Deferred | Response):
            return result
        adapter = self.operation.result
        assert adapter is not None
        assert isinstance(result, Data)
        content = b'{"data":' + adapter.dump_json(result.data, by_alias=True) + b"}"
        status = self.request.status or self.operation.status
        headers = None
        if self.request.next_cursor is not None:
            link = next_link(self.request.scope["query_string"], self.request.next_cursor)
            headers = {LINK: link}
        return Response(content, status, headers, media_type="application/json")

    async def _deferred(self, deferred: Deferred) -> Response:
        """The answer of a job, waited for outside of any transaction."""
        try:
            answer = await wait_for_answer(
                self.request.services.database, deferred, self.request.is_disconnected
            )
        except InProgressError:
            raise
        except PlatformError as refusal:
            await keep(self.request, error_response(refusal) if is_kept(refusal) else None)
            raise
        response = self._encoded(answer)
        assert isinstance(response, Response)
        response.headers.update(deferred.headers)
        await keep(self.request, response)
        return response


async def call_within(outer: ApiRequest, original: SentRequest) -> Response:
    """The answer of a request that is sent with the rights of another one, in its transaction.

    It is about the same workspace. Work that it accepts is not waited for. Raises its refusals.
    """
    found = outer.app.operation_at(original.method, original.path)
    if found is None or not dry_runs.is_proposable(found[0]):
        raise NotFoundError("path")
    operation, values = found
    headers = [(name.encode(), value.encode("latin-1")) for name, value in original.headers.items()]
    scope = {
        **outer.scope,
        "method": original.method,
        "path": original.path,
        "raw_path": original.path.encode(),
        "query_string": original.query.encode("latin-1"),
        "headers": headers,
        "path_params": values,
    }
    request = ApiRequest(scope, outer.receive, outer.services)
    request.begin(outer.work)
    request.caller, request.roles, request.raw_body = outer.caller, outer.roles, original.body
    request.caller_name, request.share = outer.caller_name, outer.share
    caller = authorization.Caller(outer.principal, outer.roles)
    await authorization.find(
        operation, request, caller, authorization.enter(operation, request, caller)
    )
    if request.workspace_id != outer.workspace_id:
        raise NotFoundError("path")
    if operation.access.starts_run:
        outer.count_run_starts(1)
    return await _Pipeline(
        operation, request, body=kernel_body.Body(original.body)
    )._called_at_once()


_MAX_LOGGED_PATH = 2000


def log_request(request: ApiRequest, status: int, start: float) -> None:
    """Record a request of a known caller."""
    principal = request.principal
    is_key = principal.type is PrincipalType.API_KEY
    request.services.request_log.record(
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
            duration_ms=round((time.perf_counter() - start) * 1000, 3),
            dry_run=request.is_dry_run,
            safe=request.is_safe,
            created_at=utc_now(),
        )
    )


def _loggable(request: ApiRequest) -> str:
    """The path as it was sent, without the secrets some paths carry, however they are escaped."""
    raw: bytes = request.scope.get("raw_path") or b""
    path = raw.partition(b"?")[0].decode("ascii", "replace")
    tokens = {
        value: f"{{{name}}}"
        for name, value in request.path_params.items()
        if name.lower().endswith("token")
    }
    if "%" in path:
        path = Redaction(tokens).text(path)
    else:
        # Nothing is escaped, so that each stands there as it is.
        for token, mark in tokens.items():
            path = path.replace(token, mark)
    # A key that someone sends in the path is no less secret there.
    return without_tokens(path)[:_MAX_LOGGED_PATH]
