"""The tree that a connection shows, level by level, and what stands in one of its resources."""

import json
from dataclasses import replace
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.console.forms import Form, body_of, paged, read_json
from api.console.integrations.calls import Outcome, outcome_of
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import Shell, shell_of
from api.console.words import curl, queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.sources.connections import CONNECTION
from api.routers.sources.resources import PROVIDER_ERRORS, RESOURCES
from models.core.access.rules import Scope
from models.core.base import Id
from models.sources.connections.providers import PROVIDERS
from models.sources.connections.queries import get_connection
from models.sources.external_resources.rules.resources import Capability, ExternalId
from models.sources.provider_calls.commands import (
    accept_browse,
    accept_read,
    asked_by,
    browse_outcome,
    known_page,
    read_outcome,
)
from models.sources.provider_calls.rules import CallKind
from models.sources.provider_calls.shapes import (
    BrowseConnection,
    BrowsedResources,
    NamedResource,
    ResourceContent,
)
from runtime.errors import NotFoundError

router = page_router()

PAGE = 50
_ONE = CONNECTION.removeprefix("/v1")
_BROWSE = Access(scopes=[Scope.INTEGRATIONS_READ])
_READ = Access(scopes=[Scope.RESOURCES_READ, Scope.INTEGRATIONS_READ])


class Level(Form):
    """A level of the tree of a connection, or a search in it, and the end of the page before."""

    parent: str | None = None
    q: str | None = None
    cursor: str | None = None


class Chosen(Form):
    """A resource as the page before has shown it, in JSON."""

    resource: str

    def named(self, connection_id: Id, **others: object) -> dict[str, object]:
        """The body of an operation on the resource. Raises ValidationError."""
        resource = read_json("resource", self.resource)
        return {"connectionId": str(connection_id), "resource": resource, **others}


@router.get(f"{_ONE}/browse", access=paged(_BROWSE), errors=PROVIDER_ERRORS)
async def get_listing(
    request: ApiRequest,
    parent: ExternalId | None = None,
    q: Annotated[str, Field(max_length=200)] | None = None,
    cursor: Cursor = None,
    call: QueryId | None = None,
) -> Response:
    """Look through what is known below a resource, or wait for a worker that asks for it."""
    question = _question(request, Level(parent=parent, q=q, cursor=cursor))
    if call is not None:
        outcome = await outcome_of(_browsed(request, question, call))
        if not isinstance(outcome.refusal, NotFoundError):
            return await _listing(request, question, outcome, call)
    known = await known_page(request.work, request.actor, request.services.keys, question)
    return await _listing(request, question, Outcome(known), None)


@router.post(
    f"{_ONE}/browse", access=paged(replace(_BROWSE, idempotent=True)), errors=PROVIDER_ERRORS
)
async def browse_by_form(request: ApiRequest, body: Level) -> Response:
    """Have a worker ask for what is below a resource, at the top, or has a name."""
    question, keys, call_id = _question(request, body), request.services.keys, request.new_id
    known = await accept_browse(request.work, request.actor, keys, call_id, question)
    call = call_id if known is None else None
    place = {"parent": body.parent, "q": body.q, "cursor": body.cursor}
    return see_other(queried(request.url.path, **place, call=call))


@router.post(
    f"{_ONE}/read",
    access=paged(Access(scopes=_READ.scopes, idempotent=True)),
    errors=PROVIDER_ERRORS,
)
async def read_by_form(request: ApiRequest, body: Chosen) -> Response:
    """Have a worker read a resource, and lead to where its content will stand."""
    connection_id = request.ids["connectionId"]
    resource = body_of(NamedResource, body.named(connection_id))
    await accept_read(request.work, request.actor, request.new_id, resource)
    return see_other(f"{_path(request)}/reads/{request.new_id}")


@router.get(f"{_ONE}/reads/{{readId}}", access=paged(_READ))
async def get_content(request: ApiRequest) -> Response:
    """Look at what stands in a resource."""
    work, actor, connection_id = request.work, request.actor, request.ids["connectionId"]
    read_id = request.ids["readId"]
    connection = await get_connection(work, actor, connection_id)
    question = await asked_by(work, actor, connection_id, read_id, CallKind.READ)
    resource = question["resource"]
    outcome = await outcome_of(read_outcome(work, actor, read_id, last=False))
    shell = await shell_of(request)
    body = json.dumps({"connectionId": str(connection_id), "resource": resource})
    path = RESOURCES.replace("{workspaceId}", str(request.workspace_id))
    return page(
        request,
        "resource.html",
        shell,
        connection=connection,
        resource=resource,
        chosen=json.dumps(resource),
        outcome=outcome,
        text=_text(outcome.value),
        call=curl(shell.base, "POST", f"{path}/read", body),
    )


def _question(request: ApiRequest, level: Level) -> BrowseConnection:
    """The body of the operation that a level stands for. Raises ValidationError."""
    fields = {
        "connectionId": str(request.ids["connectionId"]),
        "parentExternalId": level.parent,
        "query": level.q or None,
        "cursor": level.cursor,
        "limit": PAGE,
    }
    return body_of(BrowseConnection, fields)


async def _browsed(
    request: ApiRequest, question: BrowseConnection, call_id: Id
) -> BrowsedResources | None:
    work, actor, keys = request.work, request.actor, request.services.keys
    await asked_by(work, actor, question.connection_id, call_id, CallKind.BROWSE)
    return await browse_outcome(work, actor, keys, call_id, question, last=False)


async def _listing(
    request: ApiRequest,
    question: BrowseConnection,
    outcome: Outcome[BrowsedResources],
    call: Id | None,
) -> Response:
    connection = await get_connection(request.work, request.actor, question.connection_id)
    shell = await shell_of(request)
    level = {"parent": question.parent_external_id, "q": question.query}
    answer = outcome.value
    return page(
        request,
        "browse.html",
        shell,
        connection=connection,
        searches=Capability.SEARCH in PROVIDERS[connection.provider].capabilities,
        level=level,
        cursor=question.cursor,
        following=None if answer is None else answer.cursor,
        outcome=outcome,
        waits=call is not None and outcome.waits,
        resources=[(one, json.dumps(one)) for one in (answer.resources if answer else [])],
        live=queried(request.url.path, **level, cursor=question.cursor, call=call),
        call=_call(request, shell, question),
    )


def _call(request: ApiRequest, shell: Shell, question: BrowseConnection) -> str:
    body = question.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"cursor"})
    path = RESOURCES.replace("{workspaceId}", str(request.workspace_id))
    return curl(shell.base, "POST", f"{path}/browse", json.dumps(body))


def _text(content: ResourceContent | None) -> str:
    """The content of a resource as text, which a page shows as it is."""
    if content is None or content.content is None:
        return ""
    whole = content.content
    return whole if isinstance(whole, str) else json.dumps(whole, indent=2, ensure_ascii=False)


def _path(request: ApiRequest) -> str:
    path = f"/workspaces/{request.workspace_id}/integrations"
    return f"{path}/connections/{request.ids['connectionId']}"
