"""Connections of a workspace: the list, the page of one, its test, and its end."""

import json
from typing import Literal

from starlette.responses import Response

from api.console.forms import Form, body_of, paged
from api.console.integrations.calls import outcome_of
from api.console.integrations.config_fields import words
from api.console.integrations.connecting import signs_in
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl, queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.sources.connections import CONNECTION, CONNECTIONS, INTEGRATIONS, READ, WRITE
from models.core.access.rules import Scope
from models.core.base import Id
from models.sources.authorizations.revocation import disconnect
from models.sources.connections import commands, features, queries
from models.sources.connections.providers import PROVIDERS
from models.sources.connections.shapes import SwitchProvider, UpdateConnection
from models.sources.external_resources.rules.resources import Capability
from models.sources.outbound_limits.pauses import pause_of
from models.sources.provider_calls.commands import accept_test, asked_by, test_outcome
from models.sources.provider_calls.rules import CallKind
from models.sources.provider_calls.shapes import ConnectionTest
from runtime.errors import InvalidError

router = page_router()

PAGE = 50
_ALL = INTEGRATIONS.removeprefix("/v1")
ONE = CONNECTION.removeprefix("/v1")
_SWITCH = Access(scopes=[Scope.INTEGRATIONS_WRITE, Scope.WORKSPACE_UPDATE], idempotent=True)


class Share(Form):
    """The people who are to see a connection: all who read integrations, or its maker."""

    audience: Literal["everybody", "maker"]


class Switch(Form):
    """The state that a provider is to have."""

    enabled: Literal["true", "false"]


@router.get(_ALL, access=paged(READ))
async def get_integrations(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the connections, and the providers that can be connected to."""
    shown = request.page("console connections", PAGE, cursor)
    listed = await queries.list_connections(request.work, request.actor, shown)
    providers = await features.list_providers(request.work, request.actor)
    shell = await shell_of(request)
    path = f"/v1/workspaces/{request.workspace_id}/integrations"
    calls = {
        "List connections": curl(shell.base, "GET", f"{path}/connections?limit={PAGE}"),
        "List providers": curl(shell.base, "GET", f"{path}/providers"),
    }
    return page(
        request,
        "integrations.html",
        shell,
        listed=listed,
        providers=providers,
        labels={name: one.label for name, one in PROVIDERS.items()},
        cursor=cursor,
        calls=calls,
    )


@router.get(CONNECTIONS.removeprefix("/v1"), access=paged(READ))
async def get_connections(request: ApiRequest) -> Response:
    """Lead to the list of connections."""
    return see_other(_path(request))


@router.get(ONE, access=paged(READ))
async def get_connection_page(request: ApiRequest, test: QueryId | None = None) -> Response:
    """Look at a connection, and at the outcome of a test of it."""
    connection = await queries.get_connection(request.work, request.actor, _id(request))
    shell = await shell_of(request)
    path = f"/v1{_path(request, connection.id)}"
    return page(
        request,
        "connection.html",
        shell,
        connection=connection,
        provider=PROVIDERS[connection.provider],
        config=[(words(key), _shown(value)) for key, value in connection.config.items()],
        browses=Capability.BROWSE in PROVIDERS[connection.provider].capabilities,
        signs_in=signs_in(request, connection.provider),
        pause=await pause_of(request.work, request.actor, connection.id),
        own=connection.created_by_user_id == request.actor.user_id,
        test=test,
        outcome=None if test is None else await outcome_of(_test_outcome(request, test)),
        calls={
            "Test it": curl(shell.base, "POST", f"{path}/test"),
            "Read it": curl(shell.base, "GET", path),
        },
    )


@router.post(
    f"{ONE}/test",
    access=paged(Access(scopes=[Scope.INTEGRATIONS_WRITE], idempotent=True)),
    errors=[InvalidError],
)
async def test_by_form(request: ApiRequest) -> Response:
    """Have a worker try a connection, and lead to where the outcome will stand."""
    await accept_test(request.work, request.actor, request.new_id, _id(request))
    return see_other(queried(_path(request, _id(request)), test=request.new_id))


@router.post(f"{ONE}/share", access=paged(WRITE))
async def share(request: ApiRequest, body: Share) -> Response:
    """Let others use a connection, or keep it to its maker."""
    change = body_of(UpdateConnection, {"shared": body.audience == "everybody"})
    keys, connection_id = request.services.keys, _id(request)
    await commands.update_connection(request.work, request.actor, keys, connection_id, change)
    return see_other(_path(request, connection_id))


@router.post(f"{ONE}/delete", access=paged(WRITE))
async def delete(request: ApiRequest) -> Response:
    """Delete a connection with its credentials."""
    await disconnect(request.work, request.actor, request.services.keys, _id(request))
    return see_other(_path(request))


@router.post(f"{_ALL}/providers/{{provider}}", access=paged(_SWITCH))
async def switch(request: ApiRequest, body: Switch) -> Response:
    """Switch a provider on or off for the workspace."""
    content, name = SwitchProvider(enabled=body.enabled == "true"), request.path_params["provider"]
    await features.switch_provider(request.work, request.actor, name, content)
    return see_other(_path(request))


async def _test_outcome(request: ApiRequest, call_id: Id) -> ConnectionTest | None:
    work, actor = request.work, request.actor
    await asked_by(work, actor, _id(request), call_id, CallKind.TEST)
    return await test_outcome(work, actor, call_id, last=False)


def _id(request: ApiRequest) -> Id:
    return request.ids["connectionId"]


def _path(request: ApiRequest, connection_id: Id | None = None) -> str:
    path = f"/workspaces/{request.workspace_id}/integrations"
    return path if connection_id is None else f"{path}/connections/{connection_id}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
