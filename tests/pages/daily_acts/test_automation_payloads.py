"""The forms of a trigger: what it needs, and the data that starts a test.

The JSON of that data is the second tab.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Page
from tests.support.canvas import Hand, choose, draft, face, fill, one, opened, press, saved
from tests.support.engine import Json, graph, node
from tests.support.person import Person, violations


def input_of(path: str) -> str:
    """The input of a field of the form, as an expression."""
    return one(f'[data-path="{path}"] :is(input, textarea)')


pytestmark = [pytest.mark.takes(seconds=60), pytest.mark.long]

DIALOG = "document.querySelector('dialog#test')"
BAR = "document.querySelector('.canvas-bar[data-run]')"


async def asked(page: Page, person: Person, trigger: Json) -> str:
    """The id of an automation with this trigger, whose dialog of a test is open."""
    content = graph(node("read", "transform", label="Read", output={"total": 42}))
    automation_id = await person.automation(content, publish=False, triggerConfig=trigger)
    await opened(page, person, automation_id)
    await press(page, "Test")
    await page.until(f"{DIALOG} !== null")
    # Nothing is asked for as JSON.
    assert await page.evaluate(f"{DIALOG}.querySelector('textarea, .ace_editor')") is None
    return automation_id


async def begun(page: Page, person: Person) -> Any:
    """The payload of the run that the test started, once it has ended well."""
    await page.click("dialog#test [type=submit]")
    await page.until(f"{BAR}.dataset.status === 'succeeded'")
    run_id = await page.evaluate(f"{BAR}.dataset.run")
    run = (await person.call("GET", f"/v1/runs/{run_id}"))["run"]
    path = f"{person.space.path}/automations/{run['automationId']}/runs/{run_id}"
    return (await person.call("GET", path))["triggerPayload"]


async def orders(person: Person) -> tuple[str, Any]:
    """A table, and a record of it."""
    fields = [
        {"key": "price", "label": "Price", "kind": "number"},
        {"key": "paid", "label": "Paid", "kind": "checkbox"},
    ]
    body = {"label": "Orders", "fields": fields}
    made = await person.call("POST", f"{person.space.path}/databases", body)
    path = f"/v1/databases/{made['id']}/records"
    record = await person.call("POST", path, {"title": "Tea", "data": {"price": 3}})
    return made["id"], record


async def test_the_input_of_a_manual_run_is_a_form_of_its_schema(
    page: Page, person: Person, screens: Path
) -> None:
    properties = {"name": {"type": "string"}, "count": {"type": "number"}}
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    automation_id = await asked(page, person, {"kind": "manual", "inputSchema": schema})
    await fill(page, "input.name", "Ada")
    await fill(page, "input.count", "2")
    assert await violations(page) == []
    await page.screenshot(screens / "canvas-test-form-light.png")
    await press(page, "Save as example")
    await saved(page)
    (example,) = (await draft(person, automation_id))["graph"]["testPayloads"]
    assert example["payload"] == {"name": "Ada", "count": 2}
    # The second tab has the same as JSON, and what is typed there is in the form.
    await press(page, "JSON")
    text = await page.evaluate(f"{DIALOG}.querySelector('textarea').value")
    assert json.loads(text) == {"name": "Ada", "count": 2}
    await page.evaluate(f"{DIALOG}.querySelector('textarea').select()")
    await page.send("Input.insertText", text='{"name": ')
    await press(page, "Form")
    await page.until(f"{DIALOG}.innerText.includes('Enter a JSON object.')")
    await page.send("Input.insertText", text="")
    await page.evaluate(f"{DIALOG}.querySelector('textarea').select()")
    await page.send("Input.insertText", text='{"name": "Bo"}')
    await press(page, "Form")
    await page.until(f"{input_of('input.name')}.value === 'Bo'")
    assert await begun(page, person) == {"name": "Bo"}


async def test_a_call_of_a_webhook_has_fields_by_keys_alone(page: Page, person: Person) -> None:
    await asked(page, person, {"kind": "webhook", "auth": "none"})
    hand = Hand(page)
    await page.evaluate(f"{one('[data-path=body] .adding input')}.focus()")
    await hand.type("order")
    await hand.key("Enter")
    await page.until("document.querySelector('[data-path=\"body.order\"]') !== null")
    await page.evaluate(f"{input_of('body.order')}.focus()")
    await hand.type("A-7")
    payload = await begun(page, person)
    assert payload == {"method": "POST", "headers": {}, "query": {}, "body": {"order": "A-7"}}
    # The next test begins with what that call had.
    await press(page, "Test")
    await page.until(f"{input_of('body.order')}.value === 'A-7'")
    assert hand.clicks == 0


@pytest.mark.parametrize("kind", ["record_created", "record_updated"])
async def test_a_record_is_picked_for_its_event(page: Page, person: Person, kind: str) -> None:
    database_id, record = await orders(person)
    await asked(page, person, {"kind": kind, "databaseId": database_id})
    await choose(page, "#payload-record", record["id"])
    await page.until(f"{DIALOG}.innerText.includes('Price')")
    await fill(page, "data.price", "5")
    payload = await begun(page, person)
    assert payload["record"]["id"] == record["id"]
    assert payload["record"]["data"]["price"] == 5
    before = payload["before"]
    if kind == "record_created":
        assert before is None
    else:
        assert before["data"]["price"] == 3
        assert payload["changedKeys"] == ["price"]


async def test_a_form_asks_its_questions(page: Page, person: Person) -> None:
    database_id, _ = await orders(person)
    fields = [{"key": "title", "required": True}, {"key": "price", "label": "How much?"}]
    body = {"label": "Ask", "databaseId": database_id, "title": "Ask", "fields": fields}
    form = await person.call("POST", f"{person.space.path}/forms", body)
    await asked(page, person, {"kind": "form_submitted", "formItemId": form["itemId"]})
    await page.until(f"{DIALOG}.innerText.includes('How much?')")
    await fill(page, "data.title", "Coffee")
    await fill(page, "data.price", "7")
    payload = await begun(page, person)
    assert payload["record"]["title"] == "Coffee"
    assert payload["record"]["data"] == {"title": "Coffee", "price": 7}
    assert payload["submission"]["formItemId"] == form["itemId"]


async def test_a_schedule_is_due_at_a_time(page: Page, person: Person) -> None:
    trigger = {"kind": "schedule", "cron": "0 9 * * *", "timezone": "Europe/Berlin"}
    await asked(page, person, trigger)
    await page.evaluate(
        f"(() => {{ const at = {one('#payload-due')}; at.value = '2026-05-01T09:30';"
        " at.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )
    due = await page.evaluate("new Date('2026-05-01T09:30').toISOString()")
    payload = await begun(page, person)
    assert payload == {"scheduledAt": due, "timezone": "Europe/Berlin"}
    await page.click(face("read"))
    await page.until("document.querySelector('.panel-in').innerText.includes('scheduledAt')")


def marked(path: str) -> str:
    return f"{one(f'[data-path={json.dumps(path)}] .field-label .needed')} !== null"


async def test_required_keys_of_a_trigger_are_marked_before_it_is_saved(
    page: Page, person: Person
) -> None:
    database_id, _ = await orders(person)
    content = graph(node("read", "transform", label="Read", output={"total": 42}))
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    await page.click(face(":trigger"))
    await page.until(f"{one('#trigger-kind')} !== null")
    # A draft waits until it is let go.
    await page.evaluate(
        "(() => { const ask = window.fetch;"
        " const open = new Promise(done => { window.letGo = done; });"
        " window.fetch = async (path, how) => { if (how?.method === 'PATCH') await open;"
        " return ask(path, how); }; })()"
    )
    await choose(page, "#trigger-kind", "record_matches")
    for name, is_needed in (("databaseId", True), ("filter", True), ("concurrency", False)):
        path = f"triggerConfig.{name}"
        await page.until(f"{one(f'[data-path={json.dumps(path)}]')} !== null")
        assert await page.evaluate(marked(path)) is is_needed, name
    await page.evaluate("letGo()")
    # Each problem is said at its field, and no more once it is solved.
    wrong = "[...document.querySelectorAll('.panel-field.wrong')].map(one => one.dataset.path)"
    await page.until(f"{wrong}.join() === 'triggerConfig.databaseId,triggerConfig.filter'")
    assert await page.evaluate(f"{one('.panel-problems')}") is None
    assert await violations(page) == []
    await choose(page, '[data-path="triggerConfig.databaseId"] select', database_id)
    await page.until(f"{wrong}.join() === 'triggerConfig.filter'")


async def test_a_key_that_a_choice_requires_is_marked_with_it(page: Page, person: Person) -> None:
    content = graph(node("check", "condition", label="Check", expression="true"))
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    await page.click(face("check"))
    await page.until(marked("config.expression"))
    # Escape closes a list of proposals, and then the panel.
    hand = Hand(page)
    await page.click('[data-path="config.expression"] .code-field')
    await hand.type(" && n")
    popup = "[...document.querySelectorAll('.ace_autocomplete')].some(one => one.checkVisibility())"
    await page.until(popup)
    await hand.key("Escape")
    await page.until(f"!{popup}")
    assert await page.evaluate(f"{one('.panel-of')} !== null")
    await hand.key("Escape")
    await page.until(f"{one('.panel-of')} === null")
    await page.click(face(":trigger"))
    await choose(page, "#trigger-kind", "webhook")
    add = one('[data-path="triggerConfig.dedupe"] .button')
    await page.until(f"{add} !== null")
    await page.evaluate(f"{add}.click()")
    source = '[data-path="triggerConfig.dedupe.source"] select'
    for name, is_needed in (("path", True), ("body_hash", False)):
        await choose(page, source, name)
        await page.until(f"{one(source)}.value === {json.dumps(name)}")
        assert await page.evaluate(marked("triggerConfig.dedupe.name")) is is_needed
    await saved(page)
