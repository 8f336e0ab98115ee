"""The pages of the workspace itself in a real browser: policy, keyboard, width, no scripts."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from models.automation.secrets.store import PutSecret, put_secret
from models.core.access.rules import Role, Scope
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.records.commands import create_record
from models.data.records.shapes import CreateRecord
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, mark_read, notify
from models.messages.notifications.queries import MarkRead
from models.messages.webhook_endpoints.store import (
    CreateWebhookEndpoint,
    create_endpoint,
    send_test,
)
from models.messages.workspace_events.rules import EventType
from models.people.api_keys import CreateApiKey, create_key
from models.people.experiments.commands import create_experiment
from models.people.release_notices import PublishRelease, publish_release
from models.people.users import make_platform_admin
from runtime.configuration.settings import Settings
from tests.support.browser import Page
from tests.support.server import Server
from tests.support.server import serving as api_process
from tests.support.settings_pages import a_draft
from tests.support.spaces import Space
from tests.support.visitor import link_for

pytestmark = [pytest.mark.takes(seconds=20), pytest.mark.long]


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    """The API as a process of its own."""
    async with api_process(settings) as server:
        yield server


async def enter(page: Page, server: Server, space: Space) -> str:
    """Sign in, and give the address of the settings."""
    await page.open(server.url + await link_for(space))
    await page.evaluate("document.querySelector('form button').click()")
    await page.until("location.pathname.startsWith('/workspaces/')")
    return f"{server.url}{space.path.removeprefix('/v1')}/settings"


async def pictures(page: Page, url: str, screens: Path, name: str) -> None:
    """Pictures of a page in both themes and on a narrow screen, which nothing overflows."""
    await page.open(url)
    for dark in (False, True):
        await page.show(dark=dark)
        await page.screenshot(screens / f"{name}-{'dark' if dark else 'light'}.png")
    await page.show(width=360, height=740)
    await page.screenshot(screens / f"{name}-narrow.png")
    assert await page.evaluate("document.documentElement.scrollWidth <= 360"), url
    await page.show()


async def furnish(space: Space) -> dict[str, str]:
    """Something on every page."""
    actor = space.actor
    async with space.database.transaction() as work:
        for name, scopes in (("Deployments", [Scope.AUTOMATIONS_READ]), ("Reports", list(Scope))):
            wanted = CreateApiKey.model_validate_json(
                json.dumps({"name": name, "scopes": scopes, "expiresAt": "2027-01-31T12:00:00Z"})
            )
            await create_key(work, actor, space.keys, wanted)
        for name in ("CRM_TOKEN", "SMTP_PASSWORD"):
            await put_secret(work, actor, space.keys, name, PutSecret(value="hidden"))
        endpoint = CreateWebhookEndpoint(
            url="https://hooks.example.com/workspace",
            description="Tells the shop what has changed",
            eventTypes=[EventType.RUN_STATUS, EventType.DATA_SOURCE_RUN],
        )
        made = await create_endpoint(work, actor, space.keys, endpoint)
        await send_test(work, actor, uuid4(), made.id)
        for title, kind in (
            ("Nightly report failed", NotificationKind.AUTOMATION_FAILED),
            ("Approve the refund of 120 €", NotificationKind.APPROVAL_REQUEST),
        ):
            notice = Notice(
                kind=kind, title=title, body="The mail server refused it.", run_id=uuid4()
            )
            await notify(work, space.id, [space.user_id], notice)
        await mark_read(work, actor.principal, [space.id], MarkRead(all=True))
        for title in ("Robin mentions you in “Launch”", "Offer 2026 was shared with you"):
            notice = Notice(
                kind=NotificationKind.MENTION, title=title, body="Can you look at this?"
            )
            await notify(work, space.id, [space.user_id], notice)
        await make_platform_admin(work, space.user_id)
        release = PublishRelease.model_validate_json(
            json.dumps({"channel": "web", "title": "Timers", "body": "Records have **timers**."})
        )
        await publish_release(work, actor.principal, release)
        experiment = await create_experiment(
            work, actor.principal, uuid4(), a_draft("Short sign-up", f"flag_{space.id.hex}")
        )
    return {"ENDPOINT": str(made.id), "EXPERIMENT": str(experiment.id)}


SECTIONS = (
    *("", "/members", "/invitations", "/usage", "/audit", "/api-keys", "/api-keys/new"),
    *("/request-logs", "/secrets", "/webhooks", "/webhooks/new", "/webhooks/ENDPOINT"),
    *("/webhooks/ENDPOINT/edit", "/model", "/notifications", "/system", "/experiments"),
    *("/experiments/EXPERIMENT", "/release-notices", "/../notifications"),
    "/../notifications?show=inbox",
)


async def test_every_page_keeps_its_policy_and_fits_a_narrow_screen(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    for role in (Role.ADMIN, Role.VIEWER):
        await space.member(role)
    names = await furnish(space)
    at = await enter(page, server, space)
    for section in SECTIONS:
        path = section
        for word, value in names.items():
            path = path.replace(word, value)
        url = f"{at}{path}".replace("settings/../", "")
        await pictures(page, url, screens, re.sub("[^a-z]+", "-", f"settings{section.lower()}"))
    assert all(url.startswith((server.url, "data:")) for url in page.requests)


async def test_a_key_is_made_by_keyboard_and_gone_with_its_page(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    at = await enter(page, server, space)
    await page.open(f"{at}/api-keys")
    await tab_to(page, "New key")
    await page.press("Enter")
    await page.until("location.pathname.endsWith('/new') && document.readyState === 'complete'")
    while await page.evaluate("document.activeElement.name") != "name":
        await page.press("Tab")
    await page.send("Input.insertText", text="By keyboard")
    await page.press("Enter")
    token = await page.until("document.querySelector('.once .command')?.firstChild.textContent")
    assert str(token).startswith("svc_sk_")
    assert str(token) not in await page.evaluate("location.href")
    await page.screenshot(screens / "settings-key-shown-once.png")
    await tab_to(page, "Done")
    await page.press("Enter")
    await page.until("document.querySelector('h1')?.textContent === 'API keys'")
    assert "By keyboard" in await page.text("main")
    await page.evaluate("history.back()")
    await page.until("document.querySelector('h1')?.textContent !== 'API keys'")
    await page.until("document.readyState === 'complete'")
    assert str(token) not in await page.evaluate("document.documentElement.innerHTML")
    page.problems.clear()  # the browser tells that it would have to send the form again


async def test_a_question_is_closed_by_escape(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    names = await furnish(space)
    at = await enter(page, server, space)
    await page.open(f"{at}/api-keys")
    await tab_to(page, "Revoke")
    await page.press("Enter")
    await page.until("document.querySelector('.confirm[open]') !== null")
    for dark in (False, True):
        await page.show(dark=dark)
        await page.screenshot(screens / f"settings-question-{'dark' if dark else 'light'}.png")
    await page.press("Escape")
    await page.until("document.querySelector('.confirm[open]') === null")
    assert await page.evaluate("document.activeElement.textContent") == "Revoke"
    await page.open(f"{at}/webhooks/{names['ENDPOINT']}")
    await page.click(".fact-list .confirm summary")
    await page.click(".payload summary")
    await page.screenshot(screens / "settings-webhook-open.png")
    await page.show(width=360, height=740)
    await page.evaluate("document.querySelector('.fact-list').scrollIntoView()")
    await page.screenshot(screens / "settings-webhook-open-narrow.png")


async def test_forms_work_without_scripts(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    at = await enter(page, server, space)
    await page.send("Emulation.setScriptExecutionDisabled", value=True)
    await page.open(f"{at}/secrets")
    await page.write("#f-name", "not a name")
    await page.write("#f-secretValue", "hidden")
    await page.click(".row-form button")
    await page.until("document.querySelector('.fault') !== null")
    assert await page.evaluate("document.querySelector('#f-name').value") == "not a name"
    assert await page.evaluate("document.querySelector('#f-secretValue').value") == ""
    await page.screenshot(screens / "settings-refused.png")
    await page.evaluate("document.querySelector('#f-name').select()")
    await page.write("#f-name", "CRM_TOKEN")
    await page.write("#f-secretValue", "hidden")
    await page.click(".row-form button")
    await page.until("document.querySelector('.notice') !== null")
    await page.click("td .confirm:last-child summary")
    await page.click("td .confirm:last-child button")
    await page.until("document.querySelector('.empty') !== null")
    page.problems.clear()  # the status of the form that came back


@pytest.mark.parametrize("width", [390, 780])
async def test_the_navigation_is_a_menu_on_a_narrow_screen(
    page: Page, server: Server, space: Space, screens: Path, width: int
) -> None:
    """Its button says where one is; it works by mouse and by keys."""
    at = await enter(page, server, space)
    await page.show(width=width, height=780)
    shows = "getComputedStyle(document.querySelector('#places')).display !== 'none'"
    for path, here in (
        ("", "Settings"),
        ("/../runs", "Runs"),
        ("/../notifications", "Notifications"),
    ):
        await page.open(f"{at}{path}")
        assert await page.text(".switcher-button") == here
        assert not await page.evaluate(shows)
    await page.open(f"{at.removesuffix('/settings')}/automations")
    await page.click(".switcher-button")
    await page.until(shows)
    for dark in (False, True):
        await page.show(dark=dark, width=width, height=780)
        await page.screenshot(screens / f"menu-{width}-{'dark' if dark else 'light'}.png")
    assert await page.text("#places [aria-current]") == "Automations"
    assert await page.evaluate(f"document.documentElement.scrollWidth <= {width}")
    await page.press("Escape")
    await page.until(f"!({shows})")
    assert await page.evaluate("document.activeElement.className") == "switcher-button"
    await page.press("Enter")
    await page.until(shows)
    await tab_to(page, "Settings")
    await page.press("Enter")
    await page.until("location.pathname.endsWith('/settings')")
    await page.show(width=1440)
    assert await page.evaluate(shows)
    assert not await page.evaluate("document.querySelector('.switcher-button').checkVisibility()")


async def test_shortcuts_are_listed_by_a_question_mark(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    at = await enter(page, server, space)
    await page.open(at)
    await page.press("?")
    await page.until("document.querySelector('#shortcuts').open")
    await page.screenshot(screens / "shortcuts.png")
    await page.press("Escape")
    await page.until("!document.querySelector('#shortcuts').open")
    await page.open(f"{at}/secrets")
    await page.write("#f-name", "A")
    await page.press("?")
    assert not await page.evaluate("document.querySelector('#shortcuts').open")
    await page.open(at)
    await page.click("[commandfor=shortcuts]")
    await page.until("document.querySelector('#shortcuts').open")


async def test_leaving_a_changed_form_asks(page: Page, server: Server, space: Space) -> None:
    at = await enter(page, server, space)

    async def leaves(change: str, url: str) -> bool:
        """True when a page lets go after a change without a question."""
        await page.open(url)
        await page.click("h1")  # a browser asks only whom it has seen act
        await page.evaluate(change)
        page.questions.clear()
        await page.open(f"{at}/members")
        assert set(page.questions) <= {"beforeunload"}
        return page.questions == []

    name = "document.querySelector('[name=name]')"
    assert await leaves("0", at)
    assert not await leaves(f"{name}.value = 'Other'", at)
    assert await leaves(f"{name}.value = 'Other'; {name}.value = {name}.defaultValue", at)
    assert await leaves(f"{name}.form.submit; {name}.focus()", at)
    box = "document.querySelector('main input[type=checkbox]')"
    assert not await leaves(f"{box}.checked = !{box}.checked", f"{at}/notifications")
    role = "document.querySelector('main [name=role]')"
    assert not await leaves(
        f"{role}.selectedIndex = {role}.selectedIndex ? 0 : 1", f"{at}/invitations"
    )
    period = "document.querySelector('.filters select')"
    runs = at.replace("/settings", "/runs")
    assert await leaves(f"{period}.selectedIndex = 1", runs), "a filter is no entry"
    await page.open(at)
    await page.evaluate(f"{name}.value = 'Renamed'")
    page.questions.clear()
    await page.evaluate(f"{name}.form.requestSubmit()")
    await page.until("document.querySelector('.notice') !== null")
    assert page.questions == [], "sending is no leaving"
    await page.evaluate(f"{name}.value = ''")
    await page.evaluate(f"{name}.required = false; {name}.form.requestSubmit()")
    await page.until("document.querySelector('[aria-invalid]') !== null")
    await page.click("h1")
    await page.open(f"{at}/members")
    assert page.questions == ["beforeunload"], "what was refused is not saved"
    page.problems.clear()  # the status of the form that came back


async def test_a_wide_table_scrolls_inside_its_frame(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    body = {
        "label": "Wide",
        "fields": [{"label": f"A column with a name {n}", "kind": "text"} for n in range(14)],
    }
    async with space.database.transaction() as work:
        shape = CreateDatabase.model_validate_json(json.dumps(body))
        made = await create_database(work, space.actor, shape)
        await create_record(work, space.actor, made.id, CreateRecord(title="One"))
    at = await enter(page, server, space)
    await page.open(at.replace("/settings", f"/databases/{made.id}"))
    await page.until("document.querySelector('.sheet .row') !== null")
    for width in (1440, 900):
        await page.show(width=width)
        frame = "document.querySelector('.sheet')"
        assert await page.evaluate(f"{frame}.scrollWidth > {frame}.clientWidth")
        assert await page.evaluate(f"document.documentElement.scrollWidth <= {width}")
    await page.screenshot(screens / "wide-grid.png")


async def test_the_documentation_is_searched_by_keyboard(
    page: Page, server: Server, screens: Path
) -> None:
    await page.open(f"{server.url}/docs/nodes")
    await page.press("/")
    assert await page.evaluate("document.activeElement.id") == "search"
    await page.send("Input.insertText", text="create record")
    await page.until("document.querySelectorAll('#hits a').length > 1")
    for dark in (False, True):
        await page.show(dark=dark)
        await page.screenshot(screens / f"docs-search-{'dark' if dark else 'light'}.png")
    await page.press("ArrowDown")
    first = await page.evaluate("document.activeElement.getAttribute('href')")
    await page.press("ArrowUp")
    assert await page.evaluate("document.activeElement.id") == "search"
    await page.press("Enter")
    await page.until(f"location.pathname + location.hash === {json.dumps(first)}")
    await page.open(f"{server.url}/docs/operations")
    await page.write("#search", "zzzz")
    await page.until("document.querySelector('#hits').textContent === 'No results'")
    await page.press("Escape")
    await page.until("document.querySelector('#hits').hidden")
    await page.show(width=390)
    await page.open(f"{server.url}/docs")
    assert await page.evaluate("document.documentElement.scrollWidth <= 390")
    await page.screenshot(screens / "docs-narrow.png")
    await page.click("a.console")
    await page.until("location.pathname === '/sign-in'")
    await page.until("document.querySelector('a[href=\"/docs\"]') !== null")


async def tab_to(page: Page, label: str) -> None:
    """Press Tab until the element with this label has the focus."""
    for _ in range(120):
        await page.press("Tab")
        if await page.evaluate("document.activeElement.textContent.trim()") == label:
            return
    raise AssertionError(f"Tab does not lead to {label}")
