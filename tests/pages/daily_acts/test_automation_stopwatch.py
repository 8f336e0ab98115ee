"""An automation is built from nothing, tested, published and called, in a minute and a half."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.canvas import Hand, face
from tests.support.endpoint import Serve, reply
from tests.support.engine import Json
from tests.support.patience import found_when
from tests.support.person import Person, sign_in

pytestmark = [pytest.mark.takes(seconds=90)]

MOST_SECONDS = 90
FIELDS = [{"key": "order", "label": "Order", "kind": "number"}]


async def built(hand: Hand, url: str) -> None:
    """Webhook, HTTP call, condition, approval, record, notification: one after the other."""
    await hand.look()
    await hand.click(face(":trigger"))
    await hand.choose("#trigger-kind", "Webhook")
    await hand.press("Add next node")
    await hand.type("http")
    await hand.key("Enter")
    await hand.look()
    await hand.into("config.url", url)
    await hand.press("Add next node")
    await hand.type("cond")
    await hand.key("Enter")
    await hand.look()
    await hand.into("config.expression", "nodes.http_request.status == 200")
    await hand.press("True")
    await hand.type("appr")
    await hand.key("Enter")
    await hand.look()
    await hand.into("config.title", "Order it?")
    await hand.choose("config.role", "Owner")
    await hand.press("Approved")
    await hand.type("create")
    await hand.key("Enter")
    await hand.look()
    await hand.choose("config.databaseId", "Orders")
    await hand.into("config.title", "From the canvas")
    await hand.choose('select[aria-label="Add a field to Values"]', "Order (number)")
    await hand.click('[data-path="config.data.order"] input')
    await hand.press("body")
    await hand.type(".order")
    await hand.press("Add next node")
    await hand.type("notify")
    await hand.key("Enter")
    await hand.look()
    await hand.into("config.title", "Ordered")
    await hand.press("Role")
    await hand.choose("config.role", "Owner")
    await hand.key("Escape")


async def approved(person: Person, path: str) -> Json:
    """The run of the webhook once it was approved and has ended."""

    def open_run(runs: list[Json]) -> list[Json]:
        return [one for one in runs if (one["source"], one["status"]) == ("webhook", "waiting")]

    async def runs() -> list[Json]:
        return open_run((await person.call("GET", path))["runs"])

    (run,) = await found_when(runs, bool, "a run that waits for approval")
    approval = f"{path}/{run['id']}/nodes/approval/resume"
    await person.call("POST", approval, {"decision": "approved"})
    ended: Json = await person.call("GET", f"{path}/{run['id']}?wait=30")
    return ended


async def tried(hand: Hand) -> None:
    await hand.look()
    await hand.press("Test")
    await hand.look()
    await hand.press("Run test", "dialog")
    await hand.page.until(
        "document.querySelector('.canvas-bar[data-run]').dataset.status === 'succeeded'"
    )


async def published(hand: Hand) -> None:
    await hand.look()
    await hand.press("Publish")
    await hand.look()
    await hand.key("Enter")
    await hand.page.until("document.querySelector('dialog#publish') === null")


async def called(hand: Hand) -> None:
    """Copy the call, and paste it into a shell, where it is accepted."""
    await hand.page.evaluate(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    )
    await hand.click(face(":trigger"))
    await hand.look()
    await hand.click("[aria-label='Copy: Example call']")
    call = await hand.page.until("window.copied")
    assert "…" not in call
    # A new line in the shell, and its Enter.
    hand.strokes += 3
    shell = await asyncio.create_subprocess_exec(
        "bash", "-c", call, stdout=PIPE, stderr=DEVNULL, env={"PATH": os.environ["PATH"]}
    )
    answer, _ = await shell.communicate()
    assert b'"runId"' in answer or b'"data"' in answer, answer


@pytest.mark.long
async def test_an_automation_is_built_tested_published_and_called_in_ninety_seconds(
    page: Page, person: Person, serve: Serve, screens: Path
) -> None:
    endpoint = await serve(reply(200, {"stock": 7}))
    path = person.space.path
    body = {"label": "Orders", "fields": FIELDS}
    database = await person.call("POST", f"{path}/databases", body)
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.home}/automations/new?starter=blank")
    hand = Hand(page)
    await hand.look()
    await hand.click("#f-label")
    await hand.type("Order")
    await hand.key("Enter")
    await page.until("document.getElementById('editor')?.dataset.ready === 'true'")
    await built(hand, endpoint.url)
    await tried(hand)
    await published(hand)
    await called(hand)
    print(hand)  # noqa: T201  # the figures are what one runs it for
    await page.screenshot(screens / "stopwatch.png")
    assert hand.seconds <= MOST_SECONDS
    # Of JSON, not a line was typed.
    assert not [text for text in hand.texts if set(text) & set('{}[]"')]
    (automation,) = (await person.call("GET", f"{path}/automations"))["automations"]
    run = await approved(person, f"{path}/automations/{automation['id']}/runs")
    assert (run["status"], run.get("error")) == ("succeeded", None)
    assert len(endpoint.requests) == 1
    records = (await person.call("GET", f"/v1/databases/{database['id']}/records"))["records"]
    assert [one["title"] for one in records] == ["From the canvas"]
    assert records[0]["data"]["order"] == 1
