"""Pages of the console judged by axe-core (WCAG 2.2, levels A and AA), in both themes."""

import json
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cli.demo.client import WorkspaceClient
from cli.demo.shop import open_shop
from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Person, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=40)

AXE = Path(__file__).parents[1] / "support" / "axe" / "axe.min.js"
# An experiment of theirs: it reads the two lines of a node as one word.
LEFT_OUT = {"label-content-name-mismatch": {"enabled": False}}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture
async def paths(server: Server, space: Space) -> dict[str, str]:
    """The pages of a workspace in which something happened, by name."""
    client = WorkspaceClient(server.url, space.token, str(space.id))
    await open_shop(client, date(2026, 11, 27))
    await client.close()
    person = Person(server, space)
    place = f"/workspaces/{space.id}"

    async def some_ran() -> bool:
        runs = await person.call("GET", f"{space.path}/automation-runs?limit=50")
        return {"failed", "waiting"} <= {run["status"] for run in runs["runs"]}

    await eventually(some_ran, "runs of the shop")
    runs = (await person.call("GET", f"{space.path}/automation-runs?limit=50"))["runs"]
    named = {"action": "retry", "runIds": [run["id"] for run in runs], "rate": 0.01}
    operation = await person.call("POST", f"{space.path}/run-operations", named)
    automation = runs[0]["automationId"]
    (orders,) = (await person.call("GET", f"{space.path}/databases"))["databases"]
    view = {one["label"]: one["id"] for one in orders["views"]}
    records = await person.call("GET", f"/v1/databases/{orders['id']}/records?limit=1")
    record = records["records"][0]["id"]
    database = f"{place}/databases/{orders['id']}"
    return {
        "sign in": "/sign-in",
        "home": place,
        "search": f"{place}/search?q=order",
        "content": f"{place}/items",
        "new database": f"{place}/databases/new",
        "grid": database,
        "board": f"{database}?view={view['By state']}",
        "calendar": f"{database}?view={view['Calendar']}",
        "record": f"/records/{record}",
        "edit": f"/records/{record}/edit",
        "import": f"{place}/import",
        "data sources": f"{place}/data-sources",
        "new data source": f"{place}/data-sources/new",
        "runs": f"{place}/runs",
        "operations": f"{place}/runs/operations",
        "operation": f"{place}/runs/operations/{operation['id']}",
        **{f"run {run['status']}": f"/runs/{run['id']}" for run in runs},
        "automations": f"{place}/automations",
        "automation": f"{place}/automations/{automation}",
        "settings": f"{place}/settings",
        "members": f"{place}/settings/members",
        "API keys": f"{place}/settings/api-keys",
        "new API key": f"{place}/settings/api-keys/new",
        "request logs": f"{place}/settings/request-logs",
        "webhooks": f"{place}/settings/webhooks",
        "notifications": f"{place}/notifications",
    }


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
        await page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
        options = json.dumps({"runOnly": RULES, "rules": LEFT_OUT, "resultTypes": ["violations"]})
        violations = await page.evaluate(
            f"axe.run(document, {options}).then((all) => all.violations.map((one) =>"
            " [one.id, one.nodes.slice(0, 3).map((node) => node.target + ' ' + node.html)]))"
        )
        if violations:
            problems[name] = violations
    assert problems == {}


def test_axe_is_the_file_that_its_package_shipped() -> None:
    digest, name = (AXE.parent / "SHA256SUMS").read_text().split()
    assert (digest, name) == (sha256(AXE.read_bytes()).hexdigest(), AXE.name)
