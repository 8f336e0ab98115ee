"""Limits of outbound calls: how each place is called now, and forms that set one."""

import json

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.forms import connection_names, number_of, paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import home_of, shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest, Cursor, QueryId
from api.routers.sources.connections import LIMIT, LIMITS, READ, WRITE_LIMITS
from models.core.access.rules import Scope
from models.core.base import Id, JsonObject
from models.sources.outbound_limits import commands, queries
from models.sources.outbound_limits.queries import (
    CreateOutboundLimit,
    OutboundLimitBody,
    UpdateOutboundLimit,
)
from runtime.errors import ConflictError, PlatformError

router = page_router()

_ALL, _ONE = (path.removeprefix("/v1") for path in (LIMITS, LIMIT))
_PAGE = 50
_CHANGE = paged(WRITE_LIMITS)


@router.get(_ALL, access=paged(READ))
async def get_outbound_limits_page(
    request: ApiRequest, cursor: Cursor = None, connection_id: QueryId | None = None
) -> Response:
    """Look through the limits of outbound calls, and set another one."""
    return await _list(request, BLANK, cursor, connection_id)


@router.post(_ALL, access=_CHANGE, errors=[ConflictError])
async def create_outbound_limit_by_form(request: ApiRequest, body: Fields) -> Response:
    """Limit the calls of a place."""

    async def create() -> None:
        place = {name: text for name in ("host", "connectionId") if (text := body.texts.get(name))}
        wanted = read_as(CreateOutboundLimit, {**place, **_numbers(body)})
        await commands.create_limit(request.work, request.actor, wanted)

    outcome = await attempt(request, create)
    if isinstance(outcome, PlatformError):
        return await _list(request, Entered(body.texts, outcome))
    return see_other(_path(request))


@router.get(_ONE, access=paged(READ))
async def get_outbound_limit_page(request: ApiRequest) -> Response:
    """Look at a limit, and at how its place is called now."""
    return await _limit(request, BLANK)


@router.post(f"{_ONE}/edit", access=_CHANGE, errors=[ConflictError])
async def edit_outbound_limit(request: ApiRequest, body: Fields) -> Response:
    """Change a limit."""

    async def change() -> None:
        limit_id = request.ids["limitId"]
        wanted = read_as(UpdateOutboundLimit, _numbers(body))
        await commands.update_limit(request.work, request.actor, limit_id, wanted)

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _limit(request, Entered(body.texts, outcome))
    return see_other(_path(request))


@router.post(f"{_ONE}/delete", access=_CHANGE)
async def delete_outbound_limit_by_form(request: ApiRequest) -> Response:
    """Remove a limit; calls that wait go."""
    await commands.delete_limit(request.work, request.actor, request.ids["limitId"])
    return see_other(_path(request))


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
    shell = await shell_of(request)
    api = f"/v1{_path(request)}"
    example = '{"host": "api.example.com", "perSecond": 5, "atOnce": 2}'
    return page(
        request,
        "outbound_limits.html",
        shell,
        listed=listed,
        connections=connections,
        choices=[("", "None"), *connections.items()],
        chosen=connection_id,
        may_change=_may_change(request),
        place=_path(request),
        cursor=cursor,
        entered=entered,
        calls={
            "List limits": curl(shell.base, "GET", api),
            "Create limit": curl(shell.base, "POST", api, example),
        },
    )


async def _limit(request: ApiRequest, entered: Entered) -> Response:
    limit = await queries.get_limit(request.work, request.actor, request.ids["limitId"])
    ids = [] if limit.connection_id is None else [limit.connection_id]
    shell = await shell_of(request)
    api = f"/v1{_path(request, limit.id)}"
    return page(
        request,
        "outbound_limit.html",
        shell,
        limit=limit,
        connections=await connection_names(request, ids),
        may_change=_may_change(request),
        place=_path(request),
        entered=entered,
        calls={
            "Get limit": curl(shell.base, "GET", api),
            "Update limit": curl(shell.base, "PATCH", api, json.dumps(_now(limit))),
            "Delete limit": curl(shell.base, "DELETE", api),
        },
    )


def _numbers(body: Fields) -> JsonObject:
    """The numbers of a form; an empty field sets no limit."""
    per_second = body.texts.get("perSecond", "").strip()
    try:
        rate: float | str | None = float(per_second) if per_second else None
    except ValueError:
        rate = per_second
    return {"perSecond": rate, "atOnce": number_of(body.texts.get("atOnce", ""))}


def _now(limit: OutboundLimitBody) -> JsonObject:
    return {"perSecond": limit.per_second, "atOnce": limit.at_once}


def _may_change(request: ApiRequest) -> bool:
    return {Scope.INTEGRATIONS_WRITE, Scope.WORKSPACE_UPDATE} <= request.actor.scopes


def _path(request: ApiRequest, *parts: object) -> str:
    home = home_of(request.actor.workspace_id)
    return "/".join((home, "integrations", "outbound-limits", *map(str, parts)))
