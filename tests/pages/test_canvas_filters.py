"""Filters of triggers by clicks: fields have the operators of their kind, with their operands."""

import json
from typing import Any

import pytest

from models.core.filters.grammar import OPERATORS, ValueForm
from tests.support.browser import Page
from tests.support.canvas import choose, draft, face, one, opened, press, saved
from tests.support.engine import graph, node
from tests.support.person import Person

pytestmark = [pytest.mark.takes(seconds=150)]

OPTIONS = [{"key": "open", "name": "Not paid"}, {"key": "paid", "name": "All paid"}]
FIELDS: list[dict[str, Any]] = [
    {"key": "name", "label": "Customer", "kind": "text"},
    {"key": "amount", "label": "Amount", "kind": "number"},
    {"key": "paid", "label": "Paid", "kind": "checkbox"},
    {"key": "due", "label": "Due", "kind": "date"},
    {"key": "sent", "label": "Sent", "kind": "datetime"},
    {"key": "state", "label": "State", "kind": "select", "options": OPTIONS},
    {"key": "tags", "label": "Tags", "kind": "multi_select", "options": OPTIONS},
]
FORMS = {
    "name": ValueForm.TEXT,
    "amount": ValueForm.NUMBER,
    "paid": ValueForm.BOOLEAN,
    "due": ValueForm.DAY,
    "sent": ValueForm.MOMENT,
    "state": ValueForm.OPTION,
    "tags": ValueForm.OPTIONS,
}
FIELD, OPERATOR = '[aria-label="Field 1"]', '[aria-label="Operator 1"]'
CHOICES = f"[...{one(OPERATOR)}.options].map((each) => each.value)"
WITHOUT_JSON = "document.querySelector('.panel-of .json-field') === null"
FAULTS = "[...document.querySelectorAll('.panel-of .fault')].map((each) => each.innerText)"
TEXTS = """(async () => {
  const typed = '.filter-row .panel-field input[type=text]';
  for (let at = 0; at < document.querySelectorAll(typed).length; at += 1) {
    const input = document.querySelectorAll(typed)[at];
    input.value = %s;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    await Vue.nextTick();
  }
})()"""


@pytest.mark.long
async def test_each_field_has_the_operators_of_its_kind_and_each_operator_its_operand(
    page: Page, person: Person
) -> None:
    body = {"label": "Invoices", "fields": FIELDS}
    database = await person.call("POST", f"{person.space.path}/databases", body)
    content = graph(node("one", "transform", output={"a": 1}))
    trigger = {"kind": "record_created", "databaseId": database["id"]}
    automation_id = await person.automation(content, publish=False, triggerConfig=trigger)
    await opened(page, person, automation_id)
    await page.click(face(":trigger"))
    await press(page, "Add condition")
    for key, form in FORMS.items():
        await choose(page, FIELD, key)
        assert await page.until(CHOICES) == [op.value for op in OPERATORS[form]], key
        for op in OPERATORS[form]:
            await choose(page, OPERATOR, op.value)
            assert await page.evaluate(WITHOUT_JSON), (key, op)
            if form in {ValueForm.DAY, ValueForm.MOMENT}:
                day = "2026-11-30" if form is ValueForm.DAY else "2026-11-30T10:00:00Z"
                await page.evaluate(TEXTS % json.dumps(day))
            await page.until("document.querySelector('.save-state').innerText !== 'Not saved'")
            await saved(page)
            stored = (await draft(person, automation_id))["triggerConfig"]["filter"]
            assert (stored["field"].rsplit(".", 1)[-1], stored["op"]) == (key, op.value)
            faults = await page.evaluate(FAULTS)
            assert faults == [], (key, op, stored)
    # Options have the names that the table gives them.
    await choose(page, FIELD, "state")
    await choose(page, OPERATOR, "eq")
    names = f"[...{one('.filter-row .panel-field select')}.options].map((each) => each.text)"
    assert {"Not paid", "All paid"} <= set(await page.evaluate(names))
