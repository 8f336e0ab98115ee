"""The console in a real browser: what a person sees and does there."""

import re
from pathlib import Path

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.engine import Json, graph, node
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server
from tests.support.spaces import Space
from tests.support.visitor import link_for

pytestmark = pytest.mark.takes(seconds=40)

HOSTILE = "<img src=x onerror=alert(1)>"


def approval(role: str = "owner", **config: object) -> Json:
    config = {"role": role, "allowSelf": True, "title": "Refund 1042?", **config}
    return graph(
        node("read", "transform", label="Read the order", output={"total": 42}),
        node("ask", "approval", label="Ask somebody", **config),
        node("pay", "transform", label="Refund payment", output={"paid": True}),
        edges=[("read", "ask"), ("ask", "pay", "approved")],
    )


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_pictures_of_every_page(
    page: Page, server: Server, person: Person, screens: Path, dark: bool
) -> None:
    theme = "dark" if dark else "light"
    await page.show(dark=dark)
    await page.open(f"{server.url}/sign-in")
    await page.screenshot(screens / f"console-sign-in-{theme}.png")
    await sign_in(page, server, person.space)
    await page.open(f"{server.url}/")
    await page.screenshot(screens / f"console-empty-home-{theme}.png")
    await page.open(f"{person.home}/runs")
    await page.screenshot(screens / f"console-empty-runs-{theme}.png")
    await furnish(person)
    await page.open(person.home)
    await page.until("document.querySelectorAll('.approval').length === 2")
    for name, path in {
        "home": "", "runs": "/runs", "failed": "/runs?status=failed", "automations": "/automations",
    }.items():  # fmt: skip
        await page.open(person.home + path)
        await page.screenshot(screens / f"console-{name}-{theme}.png")
        await page.show(dark=dark, width=360, height=780)
        await page.screenshot(screens / f"console-{name}-{theme}-360.png")
        assert await axis(page) <= 0, name
        await page.show(dark=dark)
    await page.open(f"{person.home}/automations")
    await page.click("tbody tr:nth-child(2) .main a")
    await page.until("document.querySelector('#graph .node') !== null")
    await page.screenshot(screens / f"console-automation-{theme}.png")
    await page.click("[commandfor=run]")
    await page.screenshot(screens / f"console-run-now-{theme}.png")
    await page.press("Escape")
    await page.click("#runs ~ * a, .columns tbody tr:first-child .main a")
    await page.until("document.querySelector('#graph .node') !== null")
    await page.until("document.getElementById('live').innerText === 'live'")
    await page.screenshot(screens / f"console-run-{theme}.png")
    await page.show(dark=dark, width=360, height=780)
    await page.screenshot(screens / f"console-run-{theme}-360.png")
    assert await axis(page) <= 0


@pytest.mark.long
async def test_a_person_signs_in_by_a_link_and_out_again(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    await page.open(server.url + await link_for(person.space))
    assert "Sign in as Test?" in await page.text("main")
    await page.screenshot(screens / "console-link.png")
    await page.press("Enter")  # the button has the focus
    await page.until(f"location.pathname === '/workspaces/{person.space.id}'")
    assert await page.evaluate("document.cookie") == ""
    await page.until("document.querySelector('.person summary') !== null")
    await page.click(".person summary")
    await page.until("document.querySelector('.person').open")
    await page.screenshot(screens / "console-menu.png")
    await page.click(".person form .place")
    await page.until("location.pathname === '/sign-in'")
    await page.open(person.home)
    await page.until("location.pathname === '/sign-in'")


@pytest.mark.long
async def test_a_command_is_shown_and_copied(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    await person.automation(graph(node("only", "transform", output={})))
    await sign_in(page, server, person.space)
    source = "navigator.clipboard.writeText = async (text) => { window.copied = text; };"
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=source)
    await page.open(f"{person.home}/automations")
    await page.click("tbody .main a")
    await page.until("document.querySelector('#graph .node') !== null")
    await page.click("[popovertarget=curl]")
    await page.until("document.querySelector('#curl:popover-open') !== null")
    await page.screenshot(screens / "console-curl.png")
    await page.click("#curl .copy")
    await page.until("document.querySelector('#curl .copy').innerText === 'Copied'")
    copied = await page.evaluate("window.copied")
    assert copied.startswith(f"curl {server.url}{person.space.path}/automations/")
    assert "Copy" not in copied
    await page.press("Escape")
    await page.until("document.querySelector('#curl:popover-open') === null")


@pytest.mark.long
async def test_a_person_decides_in_the_page(page: Page, server: Server, person: Person) -> None:
    questions = [
        {"key": "amount", "label": "Amount", "kind": "number", "required": True},
        {"key": "fast", "label": "At once", "kind": "checkbox"},
        {"key": "why", "label": "Reason", "kind": "select", "options": ["Broken", "Late"]},
    ]
    run_id = await person.run(approval(form=questions, message=HOSTILE))
    await sign_in(page, server, person.space)
    await page.open(f"{server.url}/runs/{run_id}")
    await page.until("document.querySelector('.approval') !== null")
    assert await page.text(".approval .message") == HOSTILE
    await page.write("[name='answer.number.amount']", "12.5")
    await page.click("[type=checkbox]")
    await page.write("[name=comment]", "Go ahead.")
    await page.click(".approval [value=approved]")
    await page.until("document.querySelector('.toast')?.innerText.includes('Approved')")
    await page.until("document.getElementById('status').dataset.status === 'succeeded'")
    await page.until("document.querySelector('.approval') === null")
    await page.until("document.querySelector('[commandfor=retry]') !== null")
    run = await person.call("GET", f"/v1/runs/{run_id}")
    path = f"{person.space.path}/automations/{run['automation']['id']}/runs/{run_id}"
    nodes = (await person.call("GET", path))["nodeRuns"]
    (answer,) = [one["output"] for one in nodes if one["nodeId"] == "ask"]
    assert answer["data"] == {"amount": 12.5, "fast": True}
    assert answer["comment"] == "Go ahead."


@pytest.mark.long
async def test_a_refused_decision_keeps_what_was_typed(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    questions = [{"key": "amount", "label": "Amount", "kind": "text", "required": True}]
    await person.run(approval(form=questions))
    await sign_in(page, server, person.space)
    await page.open(person.home)
    await page.until("document.querySelector('.approval') !== null")
    await page.evaluate("document.querySelector('.approval [required]').required = false")
    await page.write("[name=comment]", "I think so.")
    await page.click(".approval [value=approved]")
    await page.until("document.querySelector('.toast')?.innerText.includes('amount: is required')")
    await page.screenshot(screens / "console-toast.png")
    assert await page.evaluate("document.querySelector('[name=comment]').value") == "I think so."
    page.problems.clear()  # the browser notes the 400
    await page.click(".toast .dismiss")
    await page.until("document.querySelector('.toast') === null")


@pytest.mark.long
async def test_a_run_is_cancelled_with_the_keyboard(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    run_id = await person.run(graph(node("long", "delay", seconds=80_000)))
    await sign_in(page, server, person.space)
    await page.open(f"{server.url}/runs/{run_id}")
    await page.until("document.getElementById('status').dataset.status === 'waiting'")
    await page.until("document.getElementById('live').innerText === 'live'")
    await page.evaluate("document.querySelector('[commandfor=cancel]').focus()")
    # What is refreshed keeps the focus.
    before = page.requests.count(f"{server.url}/runs/{run_id}")
    await page.evaluate("document.body.dispatchEvent(new Event('changed'))")

    async def is_refreshed() -> bool:
        return page.requests.count(f"{server.url}/runs/{run_id}") > before

    await eventually(is_refreshed, what="the refresh")
    await page.until("document.querySelector('.htmx-request') === null")
    assert await page.evaluate("document.activeElement.getAttribute('commandfor')") == "cancel"
    await page.press("Enter")
    await page.until("document.getElementById('cancel').open")
    await page.screenshot(screens / "console-cancel.png")
    await page.press("Escape")
    await page.until("!document.getElementById('cancel').open")
    await page.press("Enter")
    await page.until("document.getElementById('cancel').open")
    for _ in range(6):
        if await page.evaluate("document.activeElement.innerText") == "Cancel run":
            break
        await page.press("Tab")
    await page.press("Enter")
    await page.until("document.getElementById('status').dataset.status === 'cancelled'")
    await page.until("!document.querySelector('dialog')?.open")
    await page.until("document.querySelector('[commandfor=retry]') !== null")


@pytest.mark.long
async def test_the_keyboard_reaches_the_content(page: Page, server: Server, person: Person) -> None:
    run_id = await person.run(graph(node("only", "transform", output={})))
    await sign_in(page, server, person.space)
    await page.open(f"{person.home}/runs")
    await page.press("Tab")
    assert await page.evaluate("document.activeElement.innerText") == "Skip to content"
    await page.press("Enter")
    for _ in range(40):
        await page.press("Tab")
        if await page.evaluate("document.activeElement.getAttribute('href')") == f"/runs/{run_id}":
            break
    await page.press("Enter")
    await page.until(f"location.pathname === '/runs/{run_id}'")


@pytest.mark.long
async def test_a_list_is_refreshed_while_it_is_shown(
    page: Page, server: Server, person: Person
) -> None:
    automation_id = await person.automation(graph(node("only", "transform", output={})))
    await sign_in(page, server, person.space)
    await page.open(f"{person.home}/runs")
    assert "No runs yet" in await page.text("main")
    await person.start(automation_id)
    await page.until("document.querySelector('.badge[data-status=succeeded]') !== null")
    assert re.search(r"\d+ s ago|now", await page.text("tbody time"))
    title = await page.evaluate("document.querySelector('tbody time').title")
    assert "T" in title.splitlines()[1], "the exact time on hover"
    before = page.requests.count(f"{person.home}/runs")
    await page.evaluate(
        "(() => { const one = document.querySelector('select[name=source]'); one.value = 'webhook';"
        " one.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    await page.until("document.querySelector('main').innerText.includes('No matching runs')")
    await page.until("location.search === '?source=webhook'")
    assert page.requests.count(f"{person.home}/runs") == before


@pytest.mark.long
async def test_everything_works_without_scripts(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    await page.send("Emulation.setScriptExecutionDisabled", value=True)
    run_id = await person.run(approval())
    await sign_in(page, server, person.space)

    async def shows(word: str) -> None:
        async def is_there() -> bool:
            return word in await page.evaluate("document.body?.innerText ?? ''")

        await eventually(is_there, what=word)

    await page.open(f"{person.home}/runs")
    assert "UTC" in await page.text("tbody time")
    await page.click("[name=source]")
    await page.press("Escape")
    await page.click(".apply")
    await shows("Orders")

    async def asks() -> bool:
        await page.open(f"{server.url}/runs/{run_id}")
        return "Refund 1042?" in await page.evaluate("document.body?.innerText ?? ''")

    await eventually(asks, what="the question")
    assert "Refund payment" in await page.text(".nodes")
    await page.screenshot(screens / "console-run-without-scripts.png")
    await page.click(".approval [value=approved]")

    async def has_ended() -> bool:
        run = (await person.call("GET", f"/v1/runs/{run_id}"))["run"]
        return bool(run["status"] == "succeeded")

    await eventually(has_ended, what="the end of the run")
    await page.open(f"{server.url}/runs/{run_id}")
    await page.click("[commandfor=retry]")
    await page.click("#retry button[value=start]")
    await shows("replay")
    assert run_id not in await page.evaluate("location.pathname")


@pytest.mark.long
@pytest.mark.parametrize(
    "role", [Role.VIEWER, Role.GUEST, None], ids=["viewer", "guest", "stranger"]
)
async def test_pages_as_others_see_them(
    page: Page, server: Server, person: Person, foreign: Space, role: Role | None, screens: Path
) -> None:
    automation_id = await person.automation(graph(node("long", "delay", seconds=80_000)))
    run_id = await person.start(automation_id)
    space = foreign if role is None else person.space
    await sign_in(page, server, space, None if role is None else (await space.member(role))[0])
    texts = {}
    for path in ("", "/runs", "/automations", f"/automations/{automation_id}"):
        await page.open(person.home + path)
        texts[path] = await page.text("main")
        await page.screenshot(screens / f"console-{role}{path.replace('/', '-')[:14]}.png")
    await page.open(f"{server.url}/runs/{run_id}")
    texts["run"] = await page.text("main")
    sees = {path for path, text in texts.items() if "page not found" not in text.lower()}
    assert sees == {
        Role.VIEWER: set(texts), Role.GUEST: {"", "/runs", "/automations"}, None: set()
    }[role]  # fmt: skip
    for text in texts.values():
        for word in ("Cancel run", "Run now", "Disable", "Publish"):
            assert word not in text
    page.problems.clear()  # the browser notes each 404


async def furnish(person: Person) -> None:
    """A workspace in which something happens."""
    fails = graph(
        node("read", "transform", label="Read the ledger", output={}),
        node("stop", "stop", label="Close", result="failed", message="The ledger is not balanced."),
        edges=[("read", "stop")],
    )
    schedule = {"kind": "schedule", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    simple = graph(node("only", "transform", label="Sum up", output={"sum": 1}))
    automations: list[tuple[str, Json, Json]] = [
        ("Nightly ledger", fails, {}),
        ("Morning report", simple, {"triggerConfig": schedule}),
        ("Refund of an order", approval(), {}),
    ]
    for label, content, fields in automations:
        automation_id = await person.automation(content, label=label, **fields)
        for number in range(2):
            await person.start(automation_id, {"order": number})
    await person.automation(simple, label="Invoice reminder", publish=False, enabled=False)
