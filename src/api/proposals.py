"""A request that is kept until someone with the right applies it: `Prefer: propose` (ADR 0153).

The pipeline runs it as a dry run, and a second transaction keeps it with the changes that it would
make. A key needs `workspace_changes:propose` for it, and not the scopes of the operation.
"""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import TypeAdapter
from starlette.responses import Response

from api.kernel.operation import Access, Operation
from api.kernel.request import ApiRequest, prefers
from api.kernel.response_headers import APPLIED
from models.core.access.rules import ROLE_SCOPES, Level, Scope
from models.core.base import deferred_adapter
from models.workspace.changes.dry_runs import Trial
from models.workspace.changes.requests import SentRequest, propose_request, shown_body
from models.workspace.changes.shapes import Proposal, ProposedRequest
from runtime.errors import UnsupportedError

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
