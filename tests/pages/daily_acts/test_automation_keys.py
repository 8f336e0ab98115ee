"""Acts of an automation's author on pages and on the canvas, each by the keyboard alone."""

import json
from typing import Any

import pytest

from tests.support.browser import Page
from tests.support.canvas import Hand, draft, face, one, opened, saved
from tests.support.endpoint import Serve, reply
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.person import Person, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=60), pytest.mark.long]

FOCUS = "document.activeElement"
BAR = "document.querySelector('.canvas-bar[data-run]')"
MOST_TABS = 150


@pytest.fixture
async def person(page: Page, server: Server, space: Space) -> Person:
    await sign_in(page, server, space)
    return Person(server, space)


async def reach(page: Page, selector: str) -> Hand:
    """Press Tab until an element of this selector has the focus."""
    await page.until(f"{one(selector)} !== null")
    hand = Hand(page)
    for _ in range(MOST_TABS):
        if await page.evaluate(f"{FOCUS}.matches({json.dumps(selector)})"):
            return hand
        await hand.key("Tab")
    raise AssertionError(f"no Tab leads to {selector}")


async def enter(page: Page, selector: str, leads_to: str) -> None:
    """Reach an element, and press Enter on it until something else is there."""
    await (await reach(page, selector)).key("Enter")
    await page.until(f"document.querySelector({json.dumps(leads_to)}) !== null")


async def ended(person: Person, run_id: str) -> Any:
    found: dict[str, Any] = {}

    async def has_ended() -> bool:
        found.update((await person.call("GET", f"/v1/runs/{run_id}"))["run"])
        return found["status"] in {"succeeded", "failed"}

    await eventually(has_ended, "the end of a run")
    return found["status"]


def failing() -> Any:
    return graph(node("refuse", "stop", label="Refuse", result="failed", message="Too large."))


async def test_an_account_is_connected_by_keys_alone(page: Page, person: Person) -> None:
    await page.open(f"{person.home}/integrations")
    await enter(page, "a[href$='new?provider=demo']", "#f-label")
    await enter(page, "form.connect button[type=submit]", "form[action$='/test']")


async def test_a_starter_is_begun_with_by_keys_alone(page: Page, person: Person) -> None:
    await page.open(f"{person.home}/automations/new")
    await enter(page, ".starters a", "form.form #f-label")
    hand = await reach(page, "#f-label")
    await hand.key("a", 2)
    await hand.type("By keys")
    await hand.key("Enter")
    await page.until("document.body.innerText.includes('By keys')")
    await page.until("!location.pathname.endsWith('/new')")
    listed = await person.call("GET", f"{person.space.path}/automations")
    assert [each["label"] for each in listed["automations"]] == ["By keys"]


async def test_versions_are_compared_and_restored_by_keys_alone(page: Page, person: Person) -> None:
    automation_id = await person.automation(graph(node("a", "transform", output={"n": 1})))
    path = f"{person.space.path}/automations/{automation_id}"
    await person.call("PATCH", path, {"graph": graph(node("a", "transform", output={"n": 2}))})
    await person.call("POST", f"{path}/publish", {})
    _, older = (await person.call("GET", f"{path}/versions"))["versions"]
    await page.open(f"{person.home}/automations/{automation_id}/versions/{older['id']}")
    await enter(page, "form.filters button[type=submit]", ".differences")
    await enter(page, "[commandfor=restore]", "#restore[open]")
    await (await reach(page, "#restore .primary")).key("Enter")
    await page.until("document.querySelector('#restore[open]') === null")

    async def is_restored() -> bool:
        found = await draft(person, automation_id)
        return found["graph"]["nodes"][0]["config"] == {"output": {"n": 1}}

    await eventually(is_restored, "the version that is restored")


async def test_a_canary_is_started_and_promoted_by_keys_alone(page: Page, person: Person) -> None:
    automation_id = await person.automation(graph(node("a", "transform", output={"n": 1})))
    path = f"{person.space.path}/automations/{automation_id}"
    await person.call("PATCH", path, {"graph": failing()})
    await page.open(f"{person.home}/automations/{automation_id}/canary")
    hand = await reach(page, "[name=percent]")
    await hand.key("a", 2)
    await hand.type("50")
    await enter(page, ".run-by-hand .primary", ".both-versions")
    await enter(page, "[commandfor=promote]", "#promote[open]")
    await (await reach(page, "#promote .primary")).key("Enter")
    await page.until(f"location.pathname.endsWith('/{automation_id}')")
    assert (await draft(person, automation_id))["version"] == 2


async def test_runs_are_searched_opened_and_compared_by_keys_alone(
    page: Page, person: Person
) -> None:
    choice = node("large", "condition", expression="trigger.total > 100.0")
    stop = node("refuse", "stop", result="failed", message="Too large.")
    automation_id = await person.automation(
        graph(choice, stop, edges=[("large", "refuse", "true")])
    )
    for total, name in ((1.5, "Ada"), (400.5, "Grace")):
        run_id = await person.start(automation_id, {"total": total, "customer": name})
        await ended(person, run_id)
    await page.open(f"{person.home}/runs")
    await page.until("document.querySelectorAll('tbody tr').length === 2")
    hand = await reach(page, "[name=text]")
    await hand.type("grace")
    await hand.key("Enter")
    await page.until("document.querySelectorAll('tbody tr').length === 1")
    await enter(page, "tbody a[href*='/runs/']", "a[href$='/comparison']")
    assert run_id in await page.evaluate("location.pathname")
    await enter(page, "a[href$='/comparison']", "#parts")


async def test_many_runs_are_retried_by_keys_alone(page: Page, person: Person) -> None:
    automation_id = await person.automation(failing())
    for _ in range(2):
        await ended(person, await person.start(automation_id))
    await page.open(f"{person.home}/runs?status=failed")
    await page.until("document.querySelectorAll('.pick').length === 2")
    hand = await reach(page, "tbody tr:nth-child(1) .pick input")
    await hand.key(" ")
    hand = await reach(page, "tbody tr:nth-child(2) .pick input")
    await hand.key(" ")
    await enter(page, "#bulk button[value=retry]", "select[name=from]")
    assert "2 of 2 selected runs" in await page.text(".form")
    await (await reach(page, ".form button.primary")).key("Enter")
    await page.until("location.pathname.includes('/runs/operations/')")


async def test_an_alert_is_made_by_keys_alone(page: Page, person: Person) -> None:
    await page.open(f"{person.home}/alert-rules")
    await enter(page, "main a[href$='alert-rules/new']", "main a[href$='kind=failures']")
    await enter(page, "main a[href$='kind=failures']", "form.form [name=label]")
    hand = await reach(page, "[name=label]")
    await hand.key("a", 2)
    await hand.type("By keys")
    await (await reach(page, "form.form button.primary")).key("Enter")
    await page.until("document.querySelector('h1').innerText === 'By keys'")


async def test_an_automation_is_paused_and_resumed_by_keys_alone(
    page: Page, person: Person
) -> None:
    automation_id = await person.automation(failing())
    await page.open(f"{person.home}/automations/{automation_id}/pause")
    hand = await reach(page, "[name=reason]")
    await hand.type("Stocktaking")
    await (await reach(page, "form[action$='/pause'] button")).key("Enter")
    await page.until("document.querySelector('main').innerText.includes('“Stocktaking”')")
    await (await reach(page, "form[action$='/resume'] button")).key("Enter")
    await page.until("!document.querySelector('main').innerText.includes('“Stocktaking”')")


async def test_failures_of_a_kind_are_opened_by_keys_alone(page: Page, person: Person) -> None:
    automation_id = await person.automation(failing())
    for _ in range(2):
        await ended(person, await person.start(automation_id))

    async def are_grouped() -> bool:
        await page.open(f"{person.home}/incidents")
        return bool(await page.evaluate("document.querySelector('main tbody a') !== null"))

    await eventually(are_grouped, "the incident of both failures")
    await enter(page, "main tbody a", "form[action$='/edit']")
    assert "Too large." in await page.text("main")


async def test_a_failed_run_is_read_and_retried_by_keys_alone(
    page: Page, person: Person, serve: Serve
) -> None:
    broken = await serve(reply(404, {"error": "moved"}), reply(200, {"stock": 7}))
    content = graph(node("call", "http_request", label="Ask", url=broken.url))
    run_id = await person.run(content, {"order": 7})
    assert await ended(person, run_id) == "failed"
    automation_id = (await person.call("GET", f"/v1/runs/{run_id}"))["run"]["automationId"]
    await opened(page, person, automation_id, f"?run={run_id}")
    await page.until(f"{one('.step[data-node=call]')}.dataset.status === 'failed'")
    await (await reach(page, face("call"))).key("Enter")
    await page.until("document.querySelector('.panel-out .problem') !== null")
    assert "404" in await page.text(".panel-out")
    await page.until("document.querySelector('.panel-in').innerText.includes('order')")
    await Hand(page).key("Escape")
    await page.until(f"{FOCUS}.dataset.face === 'call'")
    retry = ".canvas-bar[data-run] .primary"
    await (await reach(page, retry)).key("Enter")
    await page.until(f"{BAR}.dataset.run !== '{run_id}'")
    await page.until(f"{BAR}.dataset.status === 'succeeded'")


async def test_an_approval_is_given_by_keys_alone(page: Page, person: Person) -> None:
    ask = node("ask", "approval", label="Ask", title="Order it?", role="owner", allowSelf=True)
    automation_id = await person.automation(graph(ask))
    run_id = await person.start(automation_id)

    async def waits() -> bool:
        run = (await person.call("GET", f"/v1/runs/{run_id}"))["run"]
        return bool(run["status"] == "waiting")

    await eventually(waits, "a run that waits for approval")
    await opened(page, person, automation_id, f"?run={run_id}")
    await (await reach(page, ".canvas-bar[data-run] .primary")).key("Enter")
    await page.until(f"{BAR}.dataset.status === 'succeeded'")


async def test_a_secret_is_chosen_and_a_call_is_copied_by_keys_alone(
    page: Page, person: Person
) -> None:
    await person.call("PUT", f"{person.space.path}/secrets/shop_token", {"value": "hidden"})
    content = graph(node("call", "http_request", label="Ask", url="https://example.com/"))
    automation_id = await person.automation(
        content, publish=False, triggerConfig={"kind": "webhook", "auth": "none"}
    )
    await opened(page, person, automation_id)
    await (await reach(page, face("call"))).key("Enter")
    secret = '[data-path="config.url"] .segments button:nth-child(3)'
    await (await reach(page, secret)).key("Enter")
    select = '[data-path="config.url"] select'
    await page.until(f"{one(select)}.options.length > 1")
    hand = await reach(page, select)
    await hand.key("s")
    await page.until(f"{one(select)}.value === 'shop_token'")
    await hand.key("Escape")
    await saved(page)
    (call,) = (await draft(person, automation_id))["graph"]["nodes"]
    assert call["config"]["url"] == {"type": "secret", "value": "shop_token"}
    await (await reach(page, face(":trigger"))).key("Enter")
    await page.until("document.querySelector('.webhook pre') !== null")
    copy = '[aria-label="Copy: Example call"]'
    await (await reach(page, copy)).key("Enter")
    await page.until(f"{one(copy)}.innerText === 'Copied'")


async def test_nodes_are_reached_added_and_asked_for_their_menu_by_keys_alone(
    page: Page, person: Person
) -> None:
    content = graph(
        node("read", "transform", label="Read", output={"a": 1}),
        node("tell", "transform", label="Tell", output={"a": 1}),
        edges=[("read", "tell")],
    )
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    hand = await reach(page, face(":trigger"))
    outline = f"getComputedStyle({FOCUS}).outlineStyle"
    assert await page.evaluate(outline) == "solid"
    await hand.key("ArrowRight")
    await hand.key("ArrowRight")
    await page.until(f"{FOCUS}.dataset.face === 'tell'")
    await hand.key("+")
    await page.until(f"{FOCUS}.classList.contains('find-node')")
    await hand.type("delay")
    await hand.key("Enter")
    await page.until("document.querySelector('.panel-of') !== null")
    # Escape closes what is innermost: the panel, then the menu, then the selection.
    await hand.key("Escape")
    await page.until(f"{FOCUS}.dataset.face === 'delay'")
    await hand.key("ContextMenu")
    await page.until("document.querySelector('.canvas-menu') !== null")
    await page.until(f"{FOCUS}.innerText.startsWith('Open')")
    await hand.key("Escape")
    await page.until("document.querySelector('.canvas-menu') === null")
    await page.until(f"{FOCUS}.dataset.face === 'delay'")
    await page.until("document.querySelector('.tools') !== null")
    await hand.key("Escape")
    await page.until("document.querySelectorAll('.vue-flow__node.selected').length === 0")
    await hand.key("?")
    await page.until("document.querySelector('dialog#canvas-shortcuts') !== null")
