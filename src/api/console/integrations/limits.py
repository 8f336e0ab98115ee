"""Limits of outbound calls: how each place is called now, and forms that set one."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.forms import connection_names, number_of, paged
from api.console.rendering import console_page, home_of, see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.kernel.routing import ApiRequest, Cursor, QueryId
from api.routers.sources import connections as api
from api.routers.sources.connections import LIMIT, LIMITS, READ, WRITE_LIMITS
from models.core.access.rules import Scope
from models.core.base import Id, JsonObject
from models.sources.outbound_limits import commands, queries
from runtime.errors import ConflictError

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
        place=_path(request),
        cursor=cursor,
        entered=entered,
    )


@router.post(_ALL, access=_CHANGE, errors=[ConflictError])
@redisplays(_list)
async def create_outbound_limit_by_form(request: ApiRequest, body: Fields) -> Response:
    """Limit the calls of a place."""
    place = {name: text for name in ("host", "connectionId") if (text := body.texts.get(name))}
    wanted = read_as(queries.CreateOutboundLimit, {**place, **_numbers(body)})
    await commands.create_limit(request.work, request.actor, wanted)
    return see_other(_path(request))


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
        place=_path(request),
        entered=entered,
    )


@router.post(f"{_ONE}/edit", access=_CHANGE, errors=[ConflictError])
@redisplays(_limit)
async def edit_outbound_limit(request: ApiRequest, body: Fields) -> Response:
    """Change a limit."""
    limit_id = request.ids["limitId"]
    wanted = read_as(queries.UpdateOutboundLimit, _numbers(body))
    await commands.update_limit(request.work, request.actor, limit_id, wanted)
    return see_other(_path(request))


act(router, f"{_ONE}/delete", api.delete_outbound_limit, then=_ALL)


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


def _path(request: ApiRequest, *parts: object) -> str:
    home = home_of(request.actor.workspace_id)
    return "/".join((home, "integrations", "outbound-limits", *map(str, parts)))
