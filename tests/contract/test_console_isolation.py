"""The isolation matrix of pages: each page and form, called by who may not.

Taken from the routes. The answer is the same about what is elsewhere and what is nowhere, and
leaves every table as it was.
"""

import json
import re
import uuid
from collections.abc import Mapping

import pytest
from fastapi import FastAPI

from api.kernel.routing import Route
from api.routers.registry import ROUTERS
from models.core.access.rules import ROLE_SCOPES, Level, Role
from tests.contract.furnished import Furnished
from tests.contract.watching import checksum
from tests.support.visitor import Visitor, signed_in

pytestmark = [pytest.mark.takes(seconds=10), pytest.mark.long]

UNKNOWN = str(uuid.uuid4())
PLACES = {"workspaceId", "connectionId"}

PAGES = [
    route
    for router in ROUTERS
    for route in router.routes
    if route.operation.access.page and route.operation.access.credential == "browser"
]
PLACED = [
    route
    for route in PAGES
    if route.operation.parameters and not route.operation.access.platform_admin
]
OF_PLATFORM = [route for route in PAGES if route.operation.access.platform_admin]
RESOURCE = json.dumps(
    {
        "externalType": "file",
        "externalId": "welcome",
        "name": "Welcome",
        "surfaceKind": "document",
        "capabilities": ["read"],
    }
)
ALERT = {"kind": "failures", "condition.runs": "5", "condition.minutes": "5"}
FIELDS: Mapping[str, Mapping[str, str]] = {
    "retry_run": {"from": "start"},
    "preview_operation_by_form": {"action": "cancel", "selection": "all"},
    "begin_operation": {"action": "cancel", "selection": "all"},
    "decide": {"decision": "approved"},
    "save_filter": {"label": "Failed", "share": "on"},
    "rename_filter": {"label": "Failed"},
    "enable_automation": {"enabled": "true"},
    "enable": {"enabled": "true"},
    "share": {"audience": "everybody"},
    "move_question": {"to": "up"},
    "move_field": {"to": "up"},
    "create_field_by_form": {"kind": "text", "label": "Ours"},
    "convert_field_by_form": {"kind": "text"},
    "create_view_by_form": {"label": "Ours", "kind": "table"},
    "preview_sheet": {"sheetName": "Prices"},
    "read_by_form": {"resource": RESOURCE},
    "mount_by_form": {"resource": RESOURCE},
    "import_by_form": {"resource": RESOURCE},
    "plan_by_form": {"instruction": "Add a database"},
    "import_form_by_form": {"resource": RESOURCE},
    "set_breaker_by_form": {"failures": "5", "pauseSeconds": "300"},
    "edit_connection_by_form": {"label": "Ours"},
    "create_alert_rule_by_form": {"label": "Ours", **ALERT},
    "create_outbound_limit_by_form": {"host": "api.example.test", "atOnce": "2"},
    "edit_outbound_limit": {"perSecond": "5"},
    "edit_alert_rule": {"label": "Ours", **ALERT},
}
"""Fields of the forms that need some, by the name of their page."""
OUTCOMES = {"get_exchange", "get_content", "get_mounting", "get_importing", "get_importing_form"}
"""Pages that tell what came of a call, also that there is no such call."""
WITHOUT_SESSION = {"get_returned"}
"""Pages beside one that asks for a key, which who has no session is shown."""
BY_DECISION = {"decide"}
"""Forms whose command alone knows who may send them."""


def name(route: Route) -> str:
    return route.operation.name


def path_of(route: Route, ids: Mapping[str, str]) -> str:
    """The path of a page; what the workspace has none of is an unknown id, or a word."""
    known = dict.fromkeys(route.operation.ids, UNKNOWN) | dict(ids)
    return re.sub(r"{(\w+)}", lambda found: known.get(found[1], "node"), route.path)


async def call(visitor: Visitor, route: Route, ids: Mapping[str, str]) -> tuple[int, str]:
    """Status and text of the answer, its own path and its ids left out."""
    path = path_of(route, ids)
    if route.operation.method == "GET":
        answer = await visitor.get(path)
    else:
        fields = {"csrfToken": await visitor.token("/"), **FIELDS.get(name(route), {})}
        answer = await visitor.post(path, data=fields)
    text = answer.text
    for one in (*ids.values(), UNKNOWN):
        text = text.replace(one, "-")
    return answer.status_code, re.sub(r'value="[^"]{43}"', "", text)


def nowhere(route: Route) -> dict[str, str]:
    return {parameter: str(uuid.uuid4()) for parameter in route.operation.ids}


@pytest.mark.parametrize("route", PLACED, ids=name)
async def test_a_stranger_finds_nothing(
    app: FastAPI, own: Furnished, elsewhere: Furnished, route: Route
) -> None:
    before = await checksum(own.space.database, own.ids["workspaceId"])
    async with await signed_in(app, elsewhere.space) as stranger:
        # A page of their own gives them a token.
        there = await call(stranger, route, own.ids)
        assert there[0] == 404
        assert there == await call(stranger, route, nowhere(route))
    assert await checksum(own.space.database, own.ids["workspaceId"]) == before


@pytest.mark.parametrize("route", PLACED, ids=name)
async def test_an_id_from_elsewhere_is_an_unknown_one(
    app: FastAPI, own: Furnished, elsewhere: Furnished, route: Route
) -> None:
    before = await checksum(elsewhere.space.database, elsewhere.ids["workspaceId"])
    async with await signed_in(app, own.space) as owner:
        for parameter in route.operation.ids:
            theirs = elsewhere.ids.get(parameter, UNKNOWN)
            foreign = await call(owner, route, {**own.ids, parameter: theirs})
            unknown = await call(owner, route, {**own.ids, parameter: str(uuid.uuid4())})
            assert foreign[0] == unknown[0], parameter
            is_outcome = name(route) in OUTCOMES and parameter not in PLACES
            assert foreign == unknown if is_outcome else foreign[0] == 404
    assert await checksum(elsewhere.space.database, elsewhere.ids["workspaceId"]) == before


@pytest.mark.parametrize(
    "route",
    [
        route
        for route in PLACED
        if name(route) not in BY_DECISION
        and (
            set(route.operation.access.scopes) - ROLE_SCOPES[Role.VIEWER]
            or route.operation.access.level > Level.VIEW
        )
    ],
    ids=name,
)
async def test_a_viewer_changes_nothing(app: FastAPI, own: Furnished, route: Route) -> None:
    user_id, _ = await own.space.member(Role.VIEWER)
    before = await checksum(own.space.database, own.ids["workspaceId"])
    async with await signed_in(app, own.space, user_id) as viewer:
        assert (await call(viewer, route, own.ids))[0] == 403
    assert await checksum(own.space.database, own.ids["workspaceId"]) == before
    own.checksum = None


@pytest.mark.parametrize("route", PAGES, ids=name)
async def test_every_page_needs_a_session(app: FastAPI, own: Furnished, route: Route) -> None:
    async with Visitor(app) as nobody:
        path = path_of(route, own.ids)
        answer = await nobody.request(route.operation.method, path)
        if name(route) in WITHOUT_SESSION:
            assert answer.status_code == 200
            return
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.parametrize("route", OF_PLATFORM, ids=name)
async def test_an_owner_is_no_platform_administrator(
    app: FastAPI, own: Furnished, route: Route
) -> None:
    async with await signed_in(app, own.space) as owner:
        there = await call(owner, route, own.ids)
        assert there[0] == 403
        unknown = {**nowhere(route), "workspaceId": own.ids["workspaceId"]}
        assert there == await call(owner, route, unknown)
