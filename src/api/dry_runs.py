"""A request that keeps nothing: `Prefer: dry-run` (docs/adr/0145).

The pipeline runs it as any other, in a transaction that is rolled back, and answers what it would
have answered, and beside it what would have changed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import psycopg
from pydantic import TypeAdapter
from sqlalchemy.exc import DBAPIError
from starlette.responses import Response

from api.kernel.awaited_work import Deferred, EndOf
from api.kernel.operation import Operation
from api.kernel.request import ApiRequest, prefers
from api.kernel.response_headers import APPLIED
from api.kernel.responses import Data
from models.core.base import deferred_adapter
from models.workspace.changes.dry_runs import changes_of
from models.workspace.changes.shapes import DryRunChanges
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
