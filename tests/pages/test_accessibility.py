"""Pages of the console judged by axe-core (WCAG 2.2, levels A and AA), in both themes."""

import json
import re
from datetime import date
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from api.routers.registry import ROUTERS
from cli.demo_shop import WorkspaceClient, open_shop
from models.automation.alert_rules.shapes import AlertKind
from models.people.credentials import begin_session
from models.people.users import make_platform_admin
from tests.support.browser import Page
from tests.support.incidents import grouped
from tests.support.patience import eventually, found_when
from tests.support.person import AXE, Person, sign_in, violations
from tests.support.server import Server
from tests.support.spaces import Space
from tests.support.visitor import HTML, form_token

pytestmark = pytest.mark.takes(seconds=40)

SOURCE = {
    "label": "Stock",
    "kind": "http_json",
    "config": {"url": "https://shop.example.com/stock"},
    "keyFields": ["id"],
}
UNJUDGED = {
    # They lead elsewhere, or are parts of pages.
    "/",
    "/items/{itemId}",
    "/sign-in/start",
    "/sign-in/callback",
    "/workspaces/{workspaceId}/integrations/connections",
    "/workspaces/{workspaceId}/automations/{automationId}/runs/{runId}",
    "/databases/{databaseId}/records/choices",
    "/workspaces/{workspaceId}/automations/{automationId}/edit/changes",
    # They follow work that a worker does, of the parts of those that are judged.
    "/workspaces/{workspaceId}/exports/{exportId}",
    "/workspaces/{workspaceId}/imports/{importId}",
    "/databases/{databaseId}/fields/{fieldId}/conversions/{conversionId}",
    "/workspaces/{workspaceId}/changes/{changeId}/plan",
    "/workspaces/{workspaceId}/data-sources/previews/{previewId}",
    "/data-source-runs/{dataSourceRunId}",
    "/legacy-imports/{runId}",
    "/workspaces/{workspaceId}/integrations/exchanges/{exchangeId}",
    *(
        f"/workspaces/{{workspaceId}}/integrations/connections/{{connectionId}}/{path}"
        for path in (
            "reads/{readId}",
            "mounts/{mountJobId}",
            "imports/{resourceImportId}",
            "form-imports/{formImportId}",
        )
    ),
    "/workspaces/{workspaceId}/integrations/mounts/{mountId}",
    "/workspaces/{workspaceId}/settings/experiments/{experimentId}",
    "/workspaces/{workspaceId}/settings/experiments/{experimentId}/edit",
    "/workspaces/{workspaceId}/automations/{automationId}/settings/webhook-secret",
    # Their addresses have tokens. Tests of their own look at them.
    "/sign-in/{signInToken}",
    "/integrations/oauth/callback",
    "/approvals/{decisionToken}",
    "/invitations/{invitationToken}",
}
"""The pages that are not among those judged, by their path."""


@pytest.fixture
async def paths(server: Server, space: Space) -> dict[str, str]:
    """The pages of a workspace in which something happened, by name."""
    client = WorkspaceClient(server.url, space.token, str(space.id))
    await open_shop(client, date(2026, 11, 27))
    await client.close()
    person = Person(server, space)
    return {
        "sign in": "/sign-in",
        **await run_pages(person, space),
        **await form_pages(person, space),
        # Its source makes another database.
        **await content_pages(person, space),
        **await integration_pages(person, space),
        **await settings_pages(person, space),
        "import preview": await previewed(server, space),
    }


async def run_pages(person: Person, space: Space) -> dict[str, str]:
    """Pages of runs, of what is done with many of them, and of automations."""
    place = f"/workspaces/{space.id}"

    async def some_ran() -> bool:
        runs = await person.call("GET", f"{space.path}/automation-runs?limit=50")
        return {"failed", "waiting"} <= {run["status"] for run in runs["runs"]}

    await eventually(some_ran, "runs of the shop")
    runs = (await person.call("GET", f"{space.path}/automation-runs?limit=50"))["runs"]
    named = {"action": "retry", "runIds": [run["id"] for run in runs], "rate": 0.01}
    operation = await person.call("POST", f"{space.path}/run-operations", named)
    failed = next(run for run in runs if run["status"] == "failed")
    reference = next(
        run
        for run in runs
        if run["automationId"] == failed["automationId"] and run["status"] != "failed"
    )
    return {
        "runs": f"{place}/runs",
        "statistics": f"{place}/runs/statistics",
        "operations": f"{place}/runs/operations",
        "operation": f"{place}/runs/operations/{operation['id']}",
        **{f"run {run['status']}": f"/runs/{run['id']}" for run in runs},
        "runs by a text": f"{place}/runs?text=order&minSeconds=0&status=failed",
        "comparison": f"/runs/{failed['id']}/comparison?with={reference['id']}",
        **await watch_pages(person, space),
        **await automation_pages(person, space, runs[0]),
        **await undo_pages(person, space, failed),
        **await event_pages(person, space),
    }


async def undo_pages(person: Person, space: Space, run: dict[str, Any]) -> dict[str, str]:
    """Pages of the undo of a run, before and after it."""
    own = f"automations/{run['automationId']}/runs/{run['id']}"
    undo = await person.call("POST", f"{space.path}/{own}/undo", {})
    return {
        "undo": f"/workspaces/{space.id}/{own}/undo",
        "undone": f"/workspaces/{space.id}/{own}/undos/{undo['id']}",
    }


async def event_pages(person: Person, space: Space) -> dict[str, str]:
    """Pages of an event that started no run, and of what uses the database it came from."""
    place = f"/workspaces/{space.id}"
    databases = (await person.call("GET", f"{space.path}/databases"))["databases"]
    database_id = databases[0]["id"]
    condition = {"field": "title", "op": "eq", "value": "Other"}
    trigger = {"kind": "record_created", "databaseId": database_id, "filter": condition}
    nodes = [{"id": "one", "kind": "transform", "config": {"output": {}}}]
    body = {"label": "Filtered", "enabled": True, "graph": {"nodes": nodes, "edges": []}}
    made = await person.call(
        "POST", f"{space.path}/automations", {**body, "triggerConfig": trigger}
    )
    own = f"automations/{made['id']}"
    await person.call("POST", f"{space.path}/{own}/publish", {})
    await person.call("POST", f"/v1/databases/{database_id}/records", {"title": "New"})

    async def events() -> Any:
        return (await person.call("GET", f"{space.path}/trigger-events"))["events"]

    listed = await found_when(events, lambda shown: len(shown) > 0, what="the event")
    return {
        "events": f"{place}/trigger-events",
        "event": f"{place}/trigger-events/{listed[0]['id']}",
        "events of an automation": f"{place}/{own}/events",
        "impact": f"{place}/impact?kind=database&subjectId={database_id}",
    }


async def watch_pages(person: Person, space: Space) -> dict[str, str]:
    """Pages of incidents and alert rules."""
    place = f"/workspaces/{space.id}"
    await grouped(space.database)
    incidents = (await person.call("GET", f"{space.path}/incidents"))["incidents"]
    condition = {"kind": "failures", "runs": 1, "minutes": 60}
    body = {"label": "It fails", "condition": condition}
    rule = (await person.call("POST", f"{space.path}/alert-rules", body))["id"]
    kinds = {f"new rule, {one.value}": f"?kind={one.value}" for one in AlertKind}
    return {
        "incidents": f"{place}/incidents",
        "incident": f"{place}/incidents/{incidents[0]['id']}",
        "alert rules": f"{place}/alert-rules",
        "alert rule": f"{place}/alert-rules/{rule}",
        "edit alert rule": f"{place}/alert-rules/{rule}/edit",
        "new alert rule": f"{place}/alert-rules/new",
        **{name: f"{place}/alert-rules/new{kind}" for name, kind in kinds.items()},
    }


async def automation_pages(person: Person, space: Space, run: dict[str, Any]) -> dict[str, str]:
    """Pages of the automation of a run."""
    automations = f"/workspaces/{space.id}/automations"
    own = f"{automations}/{run['automationId']}"
    listed = await person.call("GET", f"{space.path}/automations/{run['automationId']}/versions")
    return {
        "automations": automations,
        "automation": own,
        "run from a node": f"{own}/runs/{run['id']}/from-node",
        "canary": f"{own}/canary",
        "pause": f"{own}/pause",
        "version": f"{own}/versions/{listed['versions'][0]['id']}",
        "new automation": f"{automations}/new",
        "draft": f"{own}/edit",
        "draft as JSON": f"{own}/edit?tab=json",
        "run by hand": f"{own}/run",
        "settings of an automation": f"{own}/settings",
    }


async def written(person: Person) -> str:
    """The surface of a page with blocks of many kinds."""
    kinds = ("heading_1", "paragraph", "bulleted_list_item", "to_do", "quote", "callout", "toggle")
    blocks = [{"kind": kind, "content": {"text": kind}} for kind in kinds]
    table = {"rows": [["Tea", "3"], ["Milk", "2"]], "headerRow": True}
    blocks += [{"kind": "table", "content": table}, {"kind": "code", "content": {"code": "x = 1"}}]
    body = {"workspaceId": str(person.space.id), "kind": "page", "title": "Plan"}
    made = await person.call("POST", "/v1/items", {**body, "content": {"blocks": blocks}})
    return str(made["item"]["targetId"])


async def arranged(person: Person, database_id: str) -> str:
    """The surface of a dashboard with a number and the latest runs."""
    count = {"databaseId": database_id, "aggregate": {"op": "count"}, "title": "Orders"}
    frame = {"y": 0, "w": 4, "h": 4}
    blocks = [
        {"kind": "number", "content": count, "x": 0, **frame},
        {"kind": "runs", "content": {"limit": 5}, "x": 4, **frame},
    ]
    body = {"workspaceId": str(person.space.id), "kind": "dashboard", "title": "Shop"}
    made = await person.call("POST", "/v1/items", {**body, "content": {"blocks": blocks}})
    return str(made["item"]["targetId"])


async def content_pages(person: Person, space: Space) -> dict[str, str]:
    """Pages of items, databases, records and data sources."""
    place = f"/workspaces/{space.id}"
    (orders,) = (await person.call("GET", f"{space.path}/databases"))["databases"]
    view = {one["label"]: one["id"] for one in orders["views"]}
    records = await person.call("GET", f"/v1/databases/{orders['id']}/records?limit=1")
    record = records["records"][0]["id"]
    database = f"{place}/databases/{orders['id']}"
    source = await person.call("POST", f"{space.path}/data-sources", SOURCE)
    proposal = {"instruction": "Add a database for customer feedback"}
    changes = (await person.call("POST", f"{space.path}/ai/runs", proposal))["id"]
    return {
        "home": place,
        "search": f"{place}/search?q=order",
        "content": f"{place}/items",
        "new item": f"{place}/items/new?kind=dashboard",
        "page": f"/surfaces/{await written(person)}",
        "dashboard": f"/surfaces/{await arranged(person, orders['id'])}",
        "edit item": f"{place}/items/{orders['itemId']}/edit",
        "new database": f"{place}/databases/new",
        "grid": database,
        "board": f"{database}?view={view['By state']}",
        "calendar": f"{database}?view={view['Calendar']}",
        "record": f"/records/{record}",
        "edit": f"/records/{record}/edit",
        "new record": f"/databases/{orders['id']}/records/new",
        **field_pages(orders),
        **await template_pages(person, orders),
        "import": f"{place}/import",
        "legacy imports": "/legacy-imports",
        "data sources": f"{place}/data-sources",
        "new data source": f"{place}/data-sources/new",
        "data source": f"{place}/data-sources/{source['id']}",
        "changes": f"{place}/changes",
        "change set": f"{place}/changes/{changes}",
    }


async def template_pages(person: Person, database: dict[str, Any]) -> dict[str, str]:
    """Pages of the record templates of a database."""
    place = f"/databases/{database['id']}/record-templates"
    made = await person.call("POST", f"/v1{place}", {"label": "Usual"})
    return {
        "record templates": place,
        "new record template": f"{place}/new",
        "edit record template": f"{place}/{made['id']}/edit",
    }


def field_pages(database: dict[str, Any]) -> dict[str, str]:
    """Pages of the fields and views of a database."""
    place = f"/databases/{database['id']}/fields"
    kinds = ("text", "currency", "status", "relation", "rollup", "formula", "button")
    ids = {one["kind"]: one["id"] for one in database["fields"] if one["key"] != "title"}
    select = ids.get("select") or ids["status"]
    return {
        "fields": place,
        **{f"new field, {kind}": f"{place}/new?kind={kind}" for kind in kinds},
        "edit field": f"{place}/{select}/edit",
        "convert field": f"{place}/{select}/convert",
        "new view": f"/databases/{database['id']}/views/new",
        **{
            f"new view, {kind}": f"/databases/{database['id']}/views/new?kind={kind}"
            for kind in ("chart", "form", "timeline")
        },
        "edit view": f"/databases/{database['id']}/views/{database['views'][0]['id']}/edit",
    }


async def form_pages(person: Person, space: Space) -> dict[str, str]:
    """Pages of a form, and of what is shared."""
    place = f"/workspaces/{space.id}"
    (orders,) = (await person.call("GET", f"{space.path}/databases"))["databases"]
    body = {"label": "Ask", "databaseId": orders["id"], "public": True}
    form = await person.call("POST", f"{space.path}/forms", body)
    return {
        "share links": f"{place}/items/{orders['itemId']}/share-links",
        "shared": "/v1/share/01a21b5f-fee4-7ab2-a23b-c5ae24c188c5",
        "form": f"{place}/forms/{form['id']}",
        "form settings": f"{place}/forms/{form['id']}/settings",
        "question": f"{place}/forms/{form['id']}/questions/title",
        "new form": f"{place}/forms/new",
        "public form": f"/forms/{form['itemId']}",
    }


async def integration_pages(person: Person, space: Space) -> dict[str, str]:
    """Pages of connections, and of limits of their calls."""
    integrations = f"/workspaces/{space.id}/integrations"
    body = {"provider": "demo", "label": "Demo"}
    api = f"{space.path}/integrations"
    connection = (await person.call("POST", f"{api}/connections", body))["id"]
    limited = {"connectionId": connection, "perSecond": 5, "atOnce": 2}
    limit = (await person.call("POST", f"{api}/outbound-limits", limited))["id"]
    own = f"{integrations}/connections/{connection}"
    return {
        "integrations": integrations,
        "new connection": f"{integrations}/new?provider=s3",
        "connection": own,
        "edit connection": f"{own}/edit",
        "pause of a connection": f"{own}/pause",
        "browse": f"{own}/browse",
        "mounts": f"{integrations}/mounts",
        "outbound limits": f"{integrations}/outbound-limits",
        "outbound limit": f"{integrations}/outbound-limits/{limit}",
    }


async def settings_pages(person: Person, space: Space) -> dict[str, str]:
    """Pages of the settings, and of notifications."""
    place = f"/workspaces/{space.id}"
    endpoint = {"url": "https://hooks.example.com/told", "eventTypes": ["item.created"]}
    endpoint_id = (await person.call("POST", f"{space.path}/webhook-endpoints", endpoint))["id"]
    webhook = f"{place}/settings/webhooks/{endpoint_id}"
    return {
        "settings": f"{place}/settings",
        "pause of the workspace": f"{place}/settings/pause",
        "members": f"{place}/settings/members",
        "API keys": f"{place}/settings/api-keys",
        "new API key": f"{place}/settings/api-keys/new",
        "request logs": f"{place}/settings/request-logs",
        "webhooks": f"{place}/settings/webhooks",
        "new webhook": f"{place}/settings/webhooks/new",
        "webhook": webhook,
        "edit webhook": f"{webhook}/edit",
        "new secret of a webhook": f"{webhook}/rotate-secret",
        "invitations": f"{place}/settings/invitations",
        "secrets": f"{place}/settings/secrets",
        "audit log": f"{place}/settings/audit",
        "usage": f"{place}/settings/usage",
        "model": f"{place}/settings/model",
        "notifications": f"{place}/notifications",
        "preferences": f"{place}/settings/notifications",
        "system": f"{place}/settings/system",
        "experiments": f"{place}/settings/experiments",
        "new experiment": f"{place}/settings/experiments/new",
        "segments": f"{place}/settings/segments",
        "new segment": f"{place}/settings/segments/new",
        "profile": f"{place}/settings/profile",
        "workspaces": "/workspaces",
        "new workspace": "/workspaces/new",
        "release notices": f"{place}/settings/release-notices",
    }


async def previewed(server: Server, space: Space) -> str:
    """The path of the preview of an import, once its rows are there."""
    async with space.database.transaction() as work:
        await make_platform_admin(work, space.user_id)
        session = await begin_session(work, space.user_id)
    place = f"{server.url}/workspaces/{space.id}/imports/previews"
    cookies = {f"session-{server.port}": session.token}
    headers = {**HTML, "Sec-Fetch-Site": "same-origin"}
    async with httpx2.AsyncClient(cookies=cookies, headers=headers, trust_env=False) as browser:
        page = await browser.get(place.replace("imports/previews", "import"))
        data = {"csrfToken": form_token(page), "text": "name,price\nTea,3\n"}
        path = (await browser.post(place, data=data)).headers["location"]

        async def is_read() -> bool:
            return "mapping" in (await browser.get(f"{server.url}{path}")).text

        await eventually(is_read, "the first rows")
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_no_page_breaks_a_rule(
    page: Page, server: Server, space: Space, paths: dict[str, str], dark: bool
) -> None:
    await sign_in(page, server, space)
    await page.show(dark=dark)
    problems: dict[str, Any] = {}
    for name, path in paths.items():
        await page.open(f"{server.url}{path}")
        await page.until("document.querySelector('h1') !== null")
        if found := await violations(page):
            problems[name] = found
    assert not problems, json.dumps(problems, indent=1)


@pytest.mark.long
async def test_every_page_is_judged_or_said_why_not(paths: dict[str, str]) -> None:
    addresses = {urlsplit(path).path for path in paths.values()}
    pages = {
        route.path
        for router in ROUTERS
        for route in router.routes
        if route.operation.access.page and route.operation.method == "GET"
    }
    unjudged = {
        page
        for page in pages
        if not any(re.fullmatch(re.sub(r"{\w+}", "[^/]+", page), path) for path in addresses)
    }
    # One that is spelled out looks like one of its neighbours.
    assert unjudged <= UNJUDGED <= pages


def test_axe_is_the_file_that_its_package_shipped() -> None:
    digest, name = (AXE.parent / "SHA256SUMS").read_text().split()
    assert (digest, name) == (sha256(AXE.read_bytes()).hexdigest(), AXE.name)
