"""Pages of an author in a real browser: the editor, versions, runs by hand, settings."""

import json
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.engine import Json, graph, node
from tests.support.person import Person, axis, quoted, sign_in
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

HOSTILE = "</script><img src=x onerror=alert(1)>"


def first() -> Json:
    return graph(
        node("read", "transform", label="Read the order", output={"total": 42}),
        node("wait", "delay", label="Wait a little", seconds=1),
        edges=[("read", "wait")],
    )


def second() -> Json:
    return graph(
        node("read", "transform", label="Read the order", output={"total": 43}),
        node("tell", "transform", label=HOSTILE, output={"sent": True}),
        edges=[("read", "tell")],
    )


async def rewrite(page: Page, text: str) -> None:
    """Put another text into the graph of the editor, as if it was typed."""
    await page.evaluate("document.getElementById('graph-text').value = ''")
    await page.write("#graph-text", text)


def drawn(node_id: str) -> str:
    return f"document.querySelector('#graph .node[data-node={node_id}]') !== null"


@pytest.mark.parametrize("width", [1000, 1280])
async def test_names_in_the_list_are_not_broken(
    page: Page, server: Server, person: Person, width: int
) -> None:
    automation_id = await person.automation(first())
    await sign_in(page, server, person.space)
    await page.show(width=width)
    await page.open(f"{person.home}/automations")
    assert await page.evaluate("document.querySelector('.table .main').offsetWidth") >= 160
    assert await axis(page) <= 0
    await page.open(f"{person.home}/automations/{automation_id}")
    assert await axis(page) <= 0


async def test_a_graph_is_written_without_scripts(
    page: Page, server: Server, person: Person
) -> None:
    automation_id = await person.automation(first())
    path = f"{person.home}/automations/{automation_id}"
    await page.send("Emulation.setScriptExecutionDisabled", value=True)
    await sign_in(page, server, person.space)
    await page.open(f"{path}/edit?tab=json")
    await rewrite(page, '{\n"nodes": [')
    await page.click(".editor [formaction$=check]")
    await page.until("document.getElementById('live').innerText.includes('Line 2')")
    assert await page.evaluate("document.getElementById('graph-text').value") == '{\n"nodes": ['
    await rewrite(page, json.dumps(second(), indent=1))
    await page.click(".editor .button.primary")
    await page.until("document.querySelector('.notice') !== null")
    assert "Ready to publish" in await page.text("#live")
    saved = await person.call("GET", f"{person.space.path}/automations/{automation_id}")
    assert [one["id"] for one in saved["graph"]["nodes"]] == ["read", "tell"]


async def test_a_conflict_keeps_what_was_typed(page: Page, server: Server, person: Person) -> None:
    automation_id = await person.automation(first(), publish=False)
    await page.send("Emulation.setScriptExecutionDisabled", value=True)
    await sign_in(page, server, person.space)
    await page.open(f"{person.home}/automations/{automation_id}/edit?tab=json")
    change = {"graph": graph(node("theirs", "transform", output={}))}
    await person.call("PATCH", f"{person.space.path}/automations/{automation_id}", change)
    mine = json.dumps(second())
    await rewrite(page, mine)
    await page.click(".editor .button.primary")
    await page.until("document.querySelector('[role=alert]') !== null")
    assert await page.evaluate("document.getElementById('graph-text').value") == mine
    assert await page.text(".editor .button.primary") == "Overwrite"
    await page.click(".editor .button.primary")
    await page.until("document.querySelector('.notice') !== null")
    # The browser tells a page that was answered with 409 as an error, which it is not here.
    page.problems = [one for one in page.problems if "409" not in one]


async def test_two_versions_are_one_picture(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    automation_id = await person.automation(first())
    path = f"{person.space.path}/automations/{automation_id}"
    await person.call("PATCH", path, {"graph": second()})
    await person.call("POST", f"{path}/publish", {"note": "Tells at once."})
    versions = (await person.call("GET", f"{path}/versions"))["versions"]
    newer, older = (one["id"] for one in versions)
    await sign_in(page, server, person.space)
    at = f"{person.home}/automations/{automation_id}"
    await page.open(f"{at}/versions/{newer}?against={older}")
    await page.until(drawn("tell"))
    changes = "[...document.querySelectorAll('#graph .node')].map(one => one.dataset.change)"
    assert sorted(await page.evaluate(changes)) == ["added", "changed", "removed"]
    edges = "document.querySelectorAll('#graph .edge[data-change]').length"
    assert await page.evaluate(edges) == 2
    assert await page.evaluate(f"document.body.innerText.includes({quoted(HOSTILE)})")
    pages = {
        "version": f"/versions/{newer}?against={older}",
        "editor": "/edit?tab=json",
        "run-form": "/run",
    }
    for name, tail in {**pages, "automation-settings": "/settings", "automation-page": ""}.items():
        for dark in (False, True):
            await page.show(dark=dark)
            await page.open(f"{at}{tail}")
            theme = "dark" if dark else "light"
            await page.screenshot(screens / f"console-{name}-{theme}.png")
        await page.show(width=360, height=780)
        await page.open(f"{at}{tail}")
        await page.screenshot(screens / f"console-{name}-360.png")
        assert await axis(page) <= 0, name
    await page.show()


async def test_a_test_runs_from_the_form(page: Page, server: Server, person: Person) -> None:
    automation_id = await person.automation(first())
    await person.start(automation_id, {"order": 7})
    await sign_in(page, server, person.space)
    await page.open(f"{person.home}/automations/{automation_id}/run")
    assert '"order": 7' in await page.evaluate("document.querySelector('[name=payload]').value")
    await page.click("[formaction$=test-run]")
    await page.until("location.pathname.startsWith('/runs/')")
    runs = (await person.call("GET", f"{person.space.path}/automations/{automation_id}/runs"))[
        "runs"
    ]
    assert [(one["source"], one["triggerPayload"]) for one in runs] == [
        ("test", {"order": 7}),
        ("manual", {"order": 7}),
    ]
