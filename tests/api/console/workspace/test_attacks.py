"""Attacks on every page and form of the workspace: what a list of routes finds, none escapes."""

import re
from typing import Any
from uuid import uuid4

import pytest

from api.routers.registry import ROUTERS
from models.core.access.rules import ROLE_SCOPES, Role
from tests.support.document import DOCUMENT
from tests.support.settings_pages import Visit, settings_of
from tests.support.spaces import Space
from tests.support.visitor import Visitor

ROUTES = [
    route
    for router in ROUTERS
    for route in router.routes
    if route.operation.endpoint.__module__.startswith("api.console.workspace.")
]
FORMS = [route for route in ROUTES if route.operation.method == "POST"]
PAGES = [route for route in ROUTES if route.operation.method == "GET"]


def path_in(space: Space, template: str) -> str:
    filled = template.replace("{workspaceId}", str(space.id))
    return re.sub(r"{\w+Id}", str(uuid4()), re.sub(r"{\w+(Token|Name)}", "unknown", filled))


def test_every_route_is_a_page_for_a_session() -> None:
    for route in ROUTES:
        access = route.operation.access
        assert access.page, route.path
        assert access.credential == "browser", route.path
        assert not route.is_documented
        assert access.idempotent == (route.operation.method == "POST"), route.path
        if "/workspaces/" in route.path:
            assert access.scopes or access.platform_admin, route.path


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.operation.name)
async def test_a_form_of_another_site_is_refused(route: Any, owner: Visitor, space: Space) -> None:
    path = path_in(space, route.path)
    token = await owner.token(settings_of(space))
    answer = await owner.post(
        path, data={"csrfToken": token}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status_code == 403
    assert (await owner.post(path, data={})).status_code == 403
    assert (await owner.post(path, data={"csrfToken": "x"})).status_code == 403


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation.name)
async def test_a_stranger_finds_nothing(
    route: Any, stranger: Visitor, space: Space, foreign: Space
) -> None:
    path = path_in(space, route.path)
    if "/workspaces/" not in path:
        return
    if route in PAGES:
        assert (await stranger.get(path)).status_code == 404
    else:
        answer = await stranger.send_form(path, settings_of(foreign))
        assert answer.status_code == 404


@pytest.mark.parametrize("role", [Role.EDITOR, Role.VIEWER, Role.GUEST])
async def test_a_role_sees_and_sends_what_its_scopes_allow(
    role: Role, visit: Visit, space: Space
) -> None:
    member = await visit(role)
    menu = (await member.get(settings_of(space))).text
    token = await member.token(settings_of(space))
    for route in ROUTES:
        access = route.operation.access
        allowed = set(access.scopes) <= ROLE_SCOPES[role] and not access.platform_admin
        path = path_in(space, route.path)
        if route in PAGES and "{" not in route.path.replace("{workspaceId}", ""):
            answer = await member.get(path)
            assert answer.status_code == (200 if allowed else 403), (role, path)
            if "/settings" in path and f'href="{path}"' in menu:
                assert allowed, (role, path)
        elif route in FORMS and not allowed:
            answer = await member.post(path, data={"csrfToken": token})
            assert answer.status_code in {403, 404}, (role, path)


async def test_ids_from_elsewhere_are_not_found(owner: Visitor, space: Space) -> None:
    token = await owner.token(settings_of(space))
    for route in ROUTES:
        if route.operation.access.resource is None:
            continue
        path = path_in(space, route.path)
        answer = (
            await owner.get(path)
            if route in PAGES
            else await owner.post(path, data={"csrfToken": token})
        )
        assert answer.status_code == 404, path


SAME = {
    "change_settings": "update_workspace",
    "delete_workspace_by_form": "delete_workspace",
    "get_members": "list_members",
    "change_role": "update_member",
    "remove_member_by_form": "remove_member",
    "get_invitations": "list_invitations",
    "invite": "create_invitation",
    "revoke_invitation_by_form": "revoke_invitation",
    "get_api_keys": "list_api_keys",
    "get_new_api_key": "create_api_key",
    "create_api_key_by_form": "create_api_key",
    "revoke_api_key_by_form": "revoke_api_key",
    "get_request_logs": "list_request_logs",
    "get_secrets": "list_secrets",
    "put_secret_by_form": "put_secret",
    "delete_secret_by_form": "delete_secret",
    "get_webhook_endpoints": "list_webhook_endpoints",
    "get_new_webhook_endpoint": "create_webhook_endpoint",
    "create_webhook_endpoint_by_form": "create_webhook_endpoint",
    "get_webhook_endpoint_form": "update_webhook_endpoint",
    "change_webhook_endpoint": "update_webhook_endpoint",
    "enable_webhook_endpoint": "update_webhook_endpoint",
    "disable_webhook_endpoint": "update_webhook_endpoint",
    "rotate_endpoint_secret_by_form": "rotate_webhook_endpoint_secret",
    "delete_webhook_endpoint_by_form": "delete_webhook_endpoint",
    "get_webhook_endpoint_page": "list_webhook_deliveries",
    "test_webhook_endpoint_by_form": "test_webhook_endpoint",
    "redeliver_by_form": "redeliver_webhook",
    "get_notifications": "list_notifications",
    "mark_read_by_form": "mark_notifications_read",
    "get_usage_page": "get_workspace_usage",
    "get_audit_log": "list_workspace_audit_log",
    "get_model_form": "get_model_settings",
    "put_model_by_form": "put_model_settings",
    "get_system_page": "get_system_state",
    "get_experiments": "list_experiments",
    "get_experiment_page": "get_experiment",
    "change_experiment_status": "update_experiment",
    "get_release_notices": "list_release_notices",
    "publish_release_notice_by_form": "publish_release_notice",
}
"""The operation whose rules a page has."""


def test_pages_ask_for_the_scopes_of_their_operations() -> None:
    declared = {
        one["operationId"]: one["x-access"]
        for path in DOCUMENT["paths"].values()
        for one in path.values()
        if "x-access" in one
    }
    for route in ROUTES:
        name = SAME.get(route.operation.name)
        if name is None:
            continue
        access, wanted = route.operation.access, declared[name]
        assert [scope.value for scope in access.scopes] == wanted["scopes"], name
        assert access.resource == wanted["resource"], name
        assert access.platform_admin == wanted["platformAdmin"], name


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.operation.name)
async def test_a_refused_form_leads_back_to_a_page(
    route: Any, owner: Visitor, space: Space
) -> None:
    path = path_in(space, route.path)
    answer = await owner.post(path, data={"csrfToken": "x"})
    (back,) = re.findall(r'<a class="button[^"]*" href="([^"]+)">Back', answer.text) or ["/"]
    target = back.split("/")
    assert target == path.split("/")[: len(target)]
    assert len(target) > 3 or path.startswith("/invitations/")
    if "/workspaces/" in path and not re.search(r"[0-9a-f-]{36}", back.replace(str(space.id), "")):
        wanted = 403 if route.operation.access.platform_admin else 200
        assert (await owner.get(back)).status_code == wanted, (path, back)
