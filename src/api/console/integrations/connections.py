"""Connections with their providers, and limits of outbound calls: how each place is called now."""

import json
from dataclasses import replace
from typing import Literal

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, Form, given, read_as, redisplays
from api.console.forms import Pause, Resume, connection_names, number_of, paged
from api.console.integrations import connecting
from api.console.integrations.resources import outcome_of
from api.console.rendering import console_page, home_of, see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.sources import connections as api
from api.routers.sources.connections import (
    CONNECTION,
    CONNECTIONS,
    INTEGRATIONS,
    LIMIT,
    LIMITS,
    READ,
    WRITE,
    WRITE_LIMITS,
)
from api.routers.workspace import pauses as pauses_api
from models.core.access.rules import Scope
from models.core.base import Id, JsonObject
from models.core.pauses.store import PauseWork
from models.sources import provider_calls
from models.sources.connections import providers, store
from models.sources.connections.store import get_connection, update_connection
from models.sources.external_resources.rules.resources import Capability
from models.sources.outbound_limits import commands, queries
from models.sources.outbound_limits.commands import pause_of
from models.sources.outbound_limits.queries import ResumeConnection
from models.sources.outbound_limits.rules import MOST_RELEASED
from models.workspace import pauses
from runtime.errors import ConflictError, InvalidError

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
    listed = await store.list_connections(request.work, request.actor, shown)
    offered = await store.list_providers(request.work, request.actor)
    return await console_page(
        request,
        "integrations.html",
        (api.list_connections, {"limit": PAGE}),
        api.list_providers,
        listed=listed,
        providers=offered,
        labels={name: one.label for name, one in providers.PROVIDERS.items()},
        cursor=cursor,
    )


@router.get(CONNECTIONS.removeprefix("/v1"), access=paged(READ))
async def get_connections(request: ApiRequest) -> Response:
    """Lead to the list of connections."""
    return see_other(_path(request))


@router.get(ONE, access=paged(READ))
async def get_connection_page(request: ApiRequest, test: QueryId | None = None) -> Response:
    """Look at a connection, and at the outcome of a test of it."""
    connection = await store.get_connection(request.work, request.actor, _id(request))
    return await console_page(
        request,
        "connection.html",
        api.get_connection,
        api.test_connection,
        (api.update_connection, {"shared": True}),
        api.delete_connection,
        connection=connection,
        provider=providers.PROVIDERS[connection.provider],
        config=[
            (connecting.words(key), _shown(value))
            for key, value in connection.config.items()
            if key not in providers.PROVIDERS[connection.provider].unlisted
        ],
        browses=Capability.BROWSE in providers.PROVIDERS[connection.provider].capabilities,
        signs_in=connecting.signs_in(request, connection.provider),
        pause=await pause_of(request.work, request.actor, connection.id),
        own=connection.created_by_user_id == request.actor.user_id,
        test=test,
        outcome=None if test is None else await outcome_of(_test_outcome(request, test)),
    )


@router.post(
    f"{ONE}/test",
    access=paged(Access(scopes=[Scope.INTEGRATIONS_WRITE], idempotent=True)),
    errors=[InvalidError],
)
async def test_by_form(request: ApiRequest) -> Response:
    """Have a worker try a connection, and lead to where the outcome will stand."""
    await provider_calls.accept_test(request.work, request.actor, request.new_id, _id(request))
    return see_other(queried(_path(request, _id(request)), test=request.new_id))


@router.post(f"{ONE}/share", access=paged(WRITE))
async def share(request: ApiRequest, body: Share) -> Response:
    """Let others use a connection, or keep it to its maker."""
    change = read_as(providers.UpdateConnection, given({"shared": body.audience == "everybody"}))
    keys, connection_id = request.services.keys, _id(request)
    await store.update_connection(request.work, request.actor, keys, connection_id, change)
    return see_other(_path(request, connection_id))


act(router, f"{ONE}/delete", api.delete_connection, then=_ALL)


@router.post(f"{_ALL}/providers/{{provider}}", access=paged(_SWITCH))
async def switch(request: ApiRequest, body: Switch) -> Response:
    """Switch a provider on or off for the workspace."""
    content, name = (
        providers.SwitchProvider(enabled=body.enabled == "true"),
        request.path_params["provider"],
    )
    await store.switch_provider(request.work, request.actor, name, content)
    return see_other(_path(request))


async def _test_outcome(request: ApiRequest, call_id: Id) -> provider_calls.ConnectionTest | None:
    work, actor = request.work, request.actor
    await provider_calls.asked_by(work, actor, _id(request), call_id, provider_calls.CallKind.TEST)
    return await provider_calls.test_outcome(work, actor, call_id, last=False)


def _id(request: ApiRequest) -> Id:
    return request.ids["connectionId"]


def _path(request: ApiRequest, connection_id: Id | None = None) -> str:
    path = f"/workspaces/{request.workspace_id}/integrations"
    return path if connection_id is None else f"{path}/connections/{connection_id}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_EDIT = f"{CONNECTION.removeprefix('/v1')}/edit"


@router.get(_EDIT, access=paged(Access(scopes=[Scope.INTEGRATIONS_WRITE])))
async def get_connection_edit(request: ApiRequest) -> Response:
    """Fill in what is to change."""
    return await _edit_form(request, BLANK)


async def _edit_form(request: ApiRequest, entered: Entered) -> Response:
    connection = await _connection(request)
    provider = providers.PROVIDERS[connection.provider]
    body = {"label": connection.label, "credentials": dict.fromkeys(provider.credentials, "…")}
    return await console_page(
        request,
        "connection_edit.html",
        (api.update_connection, body),
        connection=connection,
        fields=connecting.filled_config_fields(connection),
        secrets=[
            (connecting.SECRET + key, f"credentials.{key}", connecting.words(key))
            for key in provider.credentials
        ],
        told=[
            "label",
            *(connecting.PREFIX + one.key for one in connecting.config_fields(connection.provider)),
            *(f"credentials.{key}" for key in provider.credentials),
        ],
        entered=entered,
    )


@router.post(_EDIT, access=paged(WRITE))
@redisplays(_edit_form)
async def edit_connection_by_form(request: ApiRequest, body: Fields) -> Response:
    """Change what the form has changed. Another config needs the credentials again."""
    connection, texts = await _connection(request), body.texts

    content = read_as(providers.UpdateConnection, _changes(connection, texts))
    keys = request.services.keys
    outcome = await update_connection(request.work, request.actor, keys, connection.id, content)
    return see_other(f"/workspaces/{request.workspace_id}/integrations/connections/{outcome.id}")


def _changes(connection: providers.ConnectionDetail, texts: dict[str, str]) -> dict[str, object]:
    """The fields that differ: the operation replaces config and credentials as a whole."""
    changes: dict[str, object] = {"label": texts.get("label", "")}
    config = connecting.config_of(connection.provider, texts)
    stored = connecting.filled_config_fields(connection)
    before = {one.name: one.default for one in stored if one.default}
    if config != connecting.config_of(connection.provider, before):
        changes["config"] = config
    if credentials := connecting.credentials_of(texts):
        changes["credentials"] = credentials
    return changes


async def _connection(request: ApiRequest) -> providers.ConnectionDetail:
    return await get_connection(request.work, request.actor, request.ids["connectionId"])


_PAUSE = f"{CONNECTION.removeprefix('/v1')}/pause"
_CHANGE = replace(paged(WRITE), joins=True)


@router.get(_PAUSE, access=paged(READ))
async def get_connection_pause_page(request: ApiRequest) -> Response:
    """Look at the pause of a connection."""
    return await _pause_page(request, BLANK)


async def _pause_page(request: ApiRequest, entered: Entered) -> Response:
    connection = await get_connection(request.work, request.actor, request.ids["connectionId"])
    return await console_page(
        request,
        "connection_pause.html",
        pauses_api.get_connection_pause,
        (pauses_api.pause_connection, {"reason": "Provider outage"}),
        pauses_api.resume_connection,
        connection=connection,
        path=_pause_path(request),
        pause=await pause_of(request.work, request.actor, connection.id),
        entered=entered,
        most=MOST_RELEASED,
    )


@router.post(_PAUSE, access=_CHANGE)
@redisplays(_pause_page)
async def pause_connection_by_form(request: ApiRequest, body: Pause) -> Response:
    """Pause a connection."""
    wanted = read_as(PauseWork, body.values)
    connection_id = request.ids["connectionId"]
    await pauses.pause_connection(request.work, request.actor, connection_id, wanted)
    return see_other(_pause_path(request))


@router.post(f"{_PAUSE}/resume", access=_CHANGE)
@redisplays(_pause_page)
async def resume_connection_by_form(request: ApiRequest, body: Resume) -> Response:
    """Resume a connection."""
    wanted = read_as(ResumeConnection, body.values)
    connection_id = request.ids["connectionId"]
    await pauses.resume_connection(request.work, request.actor, connection_id, wanted)
    return see_other(_pause_path(request))


def _pause_path(request: ApiRequest) -> str:
    home, connection_id = home_of(request.actor.workspace_id), request.ids["connectionId"]
    return f"{home}/integrations/connections/{connection_id}/pause"


_LIMITS, _ONE = (path.removeprefix("/v1") for path in (LIMITS, LIMIT))
_PAGE = 50
_CHANGE_LIMIT = paged(WRITE_LIMITS)


@router.get(_LIMITS, access=paged(READ))
async def get_outbound_limits_page(
    request: ApiRequest, cursor: Cursor = None, connection_id: QueryId | None = None
) -> Response:
    """Look through the limits of outbound calls, and set another one."""
    return await _list(request, BLANK, cursor, connection_id)


async def _list(
    request: ApiRequest,
    entered: Entered,
    cursor: str | None = None,
    connection_id: Id | None = None,
) -> Response:
    turn = request.page("console outbound limits", _PAGE, cursor)
    listed = await queries.list_limits(request.work, request.actor, turn)
    ids = [one.connection_id for one in listed.limits if one.connection_id is not None]
    connections = await connection_names(request, ids)
    return await console_page(
        request,
        "outbound_limits.html",
        api.list_outbound_limits,
        api.create_outbound_limit,
        listed=listed,
        connections=connections,
        choices=[("", "None"), *connections.items()],
        chosen=connection_id,
        may_change=_may_change(request),
        place=_limit_path(request),
        cursor=cursor,
        entered=entered,
    )


@router.post(_LIMITS, access=_CHANGE_LIMIT, errors=[ConflictError])
@redisplays(_list)
async def create_outbound_limit_by_form(request: ApiRequest, body: Fields) -> Response:
    """Limit the calls of a place."""
    place = {name: text for name in ("host", "connectionId") if (text := body.texts.get(name))}
    wanted = read_as(queries.CreateOutboundLimit, {**place, **_numbers(body)})
    await commands.create_limit(request.work, request.actor, wanted)
    return see_other(_limit_path(request))


@router.get(_ONE, access=paged(READ))
async def get_outbound_limit_page(request: ApiRequest) -> Response:
    """Look at a limit, and at how its place is called now."""
    return await _limit(request, BLANK)


async def _limit(request: ApiRequest, entered: Entered) -> Response:
    limit = await queries.get_limit(request.work, request.actor, request.ids["limitId"])
    ids = [] if limit.connection_id is None else [limit.connection_id]
    return await console_page(
        request,
        "outbound_limit.html",
        api.get_outbound_limit,
        (api.update_outbound_limit, {"perSecond": limit.per_second, "atOnce": limit.at_once}),
        api.delete_outbound_limit,
        limit=limit,
        connections=await connection_names(request, ids),
        may_change=_may_change(request),
        place=_limit_path(request),
        entered=entered,
    )


@router.post(f"{_ONE}/edit", access=_CHANGE_LIMIT, errors=[ConflictError])
@redisplays(_limit)
async def edit_outbound_limit(request: ApiRequest, body: Fields) -> Response:
    """Change a limit."""
    limit_id = request.ids["limitId"]
    wanted = read_as(queries.UpdateOutboundLimit, _numbers(body))
    await commands.update_limit(request.work, request.actor, limit_id, wanted)
    return see_other(_limit_path(request))


act(router, f"{_ONE}/delete", api.delete_outbound_limit, then=_LIMITS)


def _numbers(body: Fields) -> JsonObject:
    """The numbers of a form; an empty field sets no limit."""
    per_second = body.texts.get("perSecond", "").strip()
    try:
        rate: float | str | None = float(per_second) if per_second else None
    except ValueError:
        rate = per_second
    return {"perSecond": rate, "atOnce": number_of(body.texts.get("atOnce", ""))}


def _may_change(request: ApiRequest) -> bool:
    return {Scope.INTEGRATIONS_WRITE, Scope.WORKSPACE_UPDATE} <= request.actor.scopes


def _limit_path(request: ApiRequest, *parts: object) -> str:
    home = home_of(request.actor.workspace_id)
    return "/".join((home, "integrations", "outbound-limits", *map(str, parts)))
