"""A request that keeps nothing, or is kept until it is applied (ADR 0145, ADR 0153).

With `Prefer: dry-run` the pipeline runs it as any other, in a transaction that is rolled back, and
answers what it would have answered, and beside it what would have changed.

With `Prefer: propose` it runs it as a dry run, and a second transaction keeps it with the changes
that it would make, until someone with the right applies it. A key needs `workspace_changes:propose`
for it, and not the scopes of the operation.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import psycopg
from pydantic import TypeAdapter
from sqlalchemy.exc import DBAPIError
from starlette.responses import Response

from api.kernel.awaited_work import Deferred, EndOf
from api.kernel.operation import Access, Operation
from api.kernel.request import ApiRequest, prefers
from api.kernel.response_headers import APPLIED
from api.kernel.responses import Data
from models.core.access.rules import ROLE_SCOPES, Level, Scope
from models.core.base import deferred_adapter
from models.workspace.changes.dry_runs import Trial, changes_of
from models.workspace.changes.requests import SentRequest, propose_request, shown_body
from models.workspace.changes.shapes import DryRunChanges, Proposal, ProposedRequest
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, UnavailableError, UnsupportedError
from runtime.postgresql.sessions import is_conflict
from runtime.rehearsal import dry_run

_DRY_RUN = "dry-run"
SECONDS = 10.0
"""The longest that a dry run takes: it holds the locks of the request itself."""

_CHANGES: TypeAdapter[DryRunChanges] = deferred_adapter(DryRunChanges)


class DryRunUnsupportedError(UnsupportedError):
    """The operation cannot be tried: its caller has no account, or it writes by itself."""

    code = "dry_run_unsupported"

    def __init__(self) -> None:
        super().__init__("This operation does not support `Prefer: dry-run`. Nothing was changed.")


class DryRunTimeoutError(UnavailableError):
    """The dry run took too long, or waited too long for another request."""

    advice = "Send it again soon, or send less in one request."

    def __init__(self) -> None:
        super().__init__("The dry run took too long. Nothing was changed. Try again soon.")


def begin_dry_run(operation: Operation, request: ApiRequest) -> None:
    """Note what the request prefers; one that only reads changes nothing anyway.

    Raises DryRunUnsupportedError.
    """
    if operation.reads or not prefers(_DRY_RUN, request.headers_named(b"prefer")):
        return
    if not operation.takes_dry_runs:
        raise DryRunUnsupportedError
    request.is_dry_run = True


@asynccontextmanager
async def trying(request: ApiRequest) -> AsyncIterator[UnitOfWork]:
    """The transaction of a dry run. Raises DryRunTimeoutError."""
    try:
        async with asyncio.timeout(SECONDS), dry_run(request.services.database) as work:
            yield work
    except TimeoutError as error:
        raise DryRunTimeoutError from error
    except (DBAPIError, psycopg.Error) as error:
        if is_conflict(error):
            raise DryRunTimeoutError from error
        raise


async def answer_at_once(work: UnitOfWork, deferred: Deferred) -> Data[Any] | Response:
    """The answer of a request that waits for work, which no worker begins.

    Where only the work would give it, its status is 202 and it has no data.
    """
    try:
        answer = await deferred.poll(work, True)
    except InProgressError:
        answer = None
    if answer is None or isinstance(answer, EndOf):
        return Response(b"{}", HTTPStatus.ACCEPTED, media_type="application/json")
    return answer if isinstance(answer, Response) else Data(answer)


async def with_changes(request: ApiRequest, answer: Response) -> Response:
    """The answer with `changes` beside `data`."""
    if answer.status_code >= HTTPStatus.BAD_REQUEST:
        return answer
    actor = None if request.workspace_id is None else request.actor
    changes = await changes_of(request.work, request.principal, actor)
    shown = _CHANGES.dump_json(changes, by_alias=True)
    data = bytes(answer.body).removesuffix(b"}")
    content = data + (b"," if len(data) > 1 else b"") + b'"changes":' + shown + b"}"
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return Response(content, answer.status_code, {**headers, APPLIED: _DRY_RUN})


_PROPOSE = "propose"
_DECISIVE = (b"content-type", b"if-match")
"""Headers that decide what a request does."""
_OF_CHANGES = frozenset({Scope.WORKSPACE_CHANGES_PROPOSE, Scope.WORKSPACE_CHANGES_APPLY})

_PROPOSAL: TypeAdapter[Proposal] = deferred_adapter(Proposal)


class ProposalUnsupportedError(UnsupportedError):
    """The operation belongs to no workspace, takes a file, or decides about changes itself."""

    code = "proposal_unsupported"

    def __init__(self) -> None:
        super().__init__("This operation does not support `Prefer: propose`. Nothing was changed.")


def begin_proposal(operation: Operation, request: ApiRequest) -> Operation:
    """The operation as it is proposed, if the request prefers that; else as it is.

    One that reads changes nothing, and a dry run keeps nothing. Raises ProposalUnsupportedError.
    """
    wanted = prefers(_PROPOSE, request.headers_named(b"prefer"))
    if operation.reads or request.is_dry_run or not wanted:
        return operation
    if not is_proposable(operation):
        raise ProposalUnsupportedError
    request.is_dry_run = request.is_proposal = True
    return replace(operation, access=_proposing(operation.access))


def is_proposable(operation: Operation) -> bool:
    """True for an operation in a workspace whose request can be kept."""
    access = operation.access
    scopes = {*access.scopes, *access.any_scope}
    return (
        operation.takes_dry_runs
        and bool(scopes)
        and scopes.isdisjoint(_OF_CHANGES)
        and not (access.upload or access.raw or access.platform_admin)
        and access.credential == "any"
    )


def _proposing(access: Access) -> Access:
    """The demands on who proposes: they see the resource, and may propose."""
    return replace(
        access,
        scopes=[Scope.WORKSPACE_CHANGES_PROPOSE],
        any_scope=(),
        level=min(access.level, Level.VIEW),
        idempotent=True,
        joins=False,
    )


def enter_as_proposed(request: ApiRequest, access: Access) -> None:
    """Let the dry run do what the author's role can, and what the operation itself needs."""
    actor = request.actor
    scopes = ROLE_SCOPES[actor.role] | {*access.scopes, *access.any_scope}
    request.enter(replace(actor, scopes=scopes))


def sent_request(request: ApiRequest, body: bytes) -> SentRequest:
    """The request as it is kept. Raises PayloadTooLargeError."""
    headers = {
        name.decode(): b",".join(values).decode("latin-1")
        for name in _DECISIVE
        if (values := request.headers_named(name))
    }
    query = request.scope["query_string"].decode("latin-1")
    original = SentRequest(request.method, request.scope["path"], query, headers, body)
    original.check_size()
    return original


async def keep_proposal(
    request: ApiRequest, operation: Operation, original: SentRequest, status: int, trial: Trial
) -> Response:
    """Keep the request, and answer with the changes that its author can read."""
    display = ProposedRequest(
        method=original.method,
        path=original.address,
        body=None if operation.access.hides_body else shown_body(original.body),
        status=status,
    )
    keys, title = request.services.keys, _title(operation)
    kept = await propose_request(
        request.work, request.actor, keys, request.new_id, original, display, trial, title=title
    )
    answer = Proposal(proposal=kept, changes=trial.own_changes)
    content = _PROPOSAL.dump_json(answer, by_alias=True)
    return Response(content, 202, APPLIED_PROPOSAL, media_type="application/json")


APPLIED_PROPOSAL: Mapping[str, str] = {APPLIED: _PROPOSE}


def _title(operation: Operation) -> str:
    """The first sentence on the operation, such as `Update a record`."""
    text = (operation.endpoint.__doc__ or operation.name).strip().partition("\n\n")[0]
    return " ".join(text.split()).partition(". ")[0].rstrip(".")[:200]
