"""The panels of the editor in a real browser: forms, pickers, triggers and expressions."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from api.console.automations.catalog import catalog
from api.console.automations.starters import Place, document_of, starters
from models.automation.automations.rules.graph.configs import CONFIGS
from models.automation.automations.rules.graph.kinds import NodeKind
from tests.support.browser import Page
from tests.support.engine import Json, graph, node
from tests.support.patience import eventually
from tests.support.person import Person, sign_in, violations

pytestmark = [pytest.mark.takes(seconds=40)]

HOSTILE = "</script><img src=x onerror=alert(1)>{{ 1 }}"

MOUNT = """(async () => {
  const { NodePanel } = await import('/pages/canvas/node-panel.js');
  const { TriggerPanel } = await import('/pages/canvas/trigger-panel.js');
  const { names } = await import('/pages/canvas/names.js');
  const catalog = await (await fetch(location.pathname + '/catalog')).json();
  document.querySelectorAll('dialog').forEach((one) => one.remove());
  const main = document.querySelector('main');
  const problems = window.faults = [];
  window.show = (given) => {
    window.mounted?.unmount();
    main.innerHTML = '<h1>Panel</h1><div id="mounted"></div>';
    const state = window.state = Vue.shallowReactive({ ...given });
    window.changes = [];
    const change = (key) => (value) => { window.changes.push(value); state[key] = value; };
    const kind = (name) => catalog.kinds.find((one) => one.kind === name);
    window.mounted = Vue.createApp({ render: () => (state.node
      ? Vue.h(NodePanel, { ...state, kind: kind(state.node.kind), catalog, names,
        onChange: change('node') })
      : Vue.h(TriggerPanel, { ...state, catalog, names, onChange: change('trigger') })) });
    window.mounted.config.errorHandler = (error) => problems.push(String(error.stack));
    window.mounted.mount('#mounted');
    return Vue.nextTick();
  };
  return true;
})()"""


async def workshop(page: Page, person: Person) -> str:
    """The page of an editor, on which panels can be mounted. The id of its automation."""
    automation_id = await person.automation(graph(node("one", "transform", output={})))
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.home}/automations/{automation_id}/edit")
    await page.until("window.Vue !== undefined && window.ace !== undefined")
    assert await page.evaluate(MOUNT)
    return automation_id


async def show(page: Page, **given: Any) -> None:
    await page.evaluate(f"window.show({json.dumps(given)})")


async def changed(page: Page) -> Any:
    """The last value that the panel gave."""
    assert await page.evaluate("window.faults") == []
    return await page.evaluate("window.changes.at(-1)")


def example_of(kind: NodeKind) -> Json:
    config: Mapping[str, Any] = CONFIGS[kind].model_config
    extra: Any = config["json_schema_extra"]
    return dict(extra["examples"][0])


async def settled(page: Page) -> None:
    """Let the panel draw, and ask for names."""
    await page.evaluate("new Promise((done) => setTimeout(done, 60))")
    assert await page.evaluate("window.faults") == []


@pytest.mark.long
async def test_every_kind_has_a_form_that_changes_nothing_by_itself(
    page: Page, person: Person, screens: Path
) -> None:
    await workshop(page, person)
    await page.show(width=1500, height=1300)
    as_json = (
        "[...document.querySelectorAll('.json-field')].map((one) =>"
        " one.closest('.panel-field').dataset.path)"
    )
    for kind in NodeKind:
        shown = {"id": "n", "kind": kind.value, "config": example_of(kind)}
        await show(page, node=shown, outputs=OUTPUTS)
        await settled(page)
        assert await page.evaluate("window.changes") == [], kind
        # What groups records by is the only part that no control shows.
        expected = ["config.query.groupBy"] if kind is NodeKind.QUERY_RECORDS else []
        assert await page.evaluate(as_json) == expected, kind
        await page.screenshot(screens / f"kind-{kind.value}.png")
    for trigger in catalog()["triggers"]:
        await show(page, trigger={"kind": trigger["kind"]})
        await settled(page)
        assert await page.evaluate("window.changes") == [], trigger["kind"]
        assert await page.evaluate(as_json) == [], trigger["kind"]
        await page.screenshot(screens / f"trigger-{trigger['kind']}.png")


class Maker:
    """Configs that a graph may have: of the schema, bound, unknown, and of another shape."""

    def __init__(self, seed: int, root: Json) -> None:
        self._random = Random(seed)  # noqa: S311  # the same configs in every run
        self._root = root

    def config(self) -> Json:
        made = {
            name: self.value(part)
            for name, part in self._root.get("properties", {}).items()
            if self._random.random() < 0.6
        }
        return made | ({HOSTILE: self.anything()} if self._random.random() < 0.2 else {})

    def value(self, schema: Json, depth: int = 0) -> Any:
        choice = self._random.random()
        if choice < 0.15:
            return self.binding()
        if choice < 0.22:
            return self.anything()
        if "$ref" in schema:
            return self.value(self._root["$defs"][schema["$ref"].rsplit("/", 1)[1]], depth)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.value(self._random.choice(schema[key]), depth)
        if "enum" in schema or "const" in schema:
            return self._random.choice(schema.get("enum") or [schema["const"]])
        return self._of_type(schema, depth)

    def _of_type(self, schema: Json, depth: int) -> Any:
        match schema.get("type"):
            case "string":
                return self._random.choice(["", "text", HOSTILE, "2xx", "0 9 * * 1-5"])
            case "integer" | "number":
                return self._random.choice([0, 1, 90, 3600, 12.5])
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
            case "array":
                items = schema.get("items", {})
                return [self.value(items, depth + 1) for _ in range(self._random.randrange(3))]
            case "object" if "properties" in schema and depth < 4:
                return {
                    name: self.value(part, depth + 1)
                    for name, part in schema["properties"].items()
                    if self._random.random() < 0.6
                }
        return self.anything()

    def binding(self) -> Json:
        return self._random.choice(
            [
                {"type": "trigger", "value": "record.data['odd key'][0]"},
                {"type": "trigger", "value": "$.a"},
                {"type": "trigger", "value": "rows[*].name"},
                {"type": "node", "value": "read.total"},
                {"type": "node", "value": "http-1.body"},
                {"type": "item", "value": "$index"},
                {"type": "item", "value": ""},
                {"type": "run", "value": "id"},
                {"type": "variable", "value": "limit"},
                {"type": "secret", "value": "token"},
                {"type": "template", "value": "Hello {{ trigger.name }}!"},
                {"type": "template", "value": "plain"},
                {"type": "expression", "value": "trigger.name"},
                {"type": "expression", "value": "size(trigger.tags) > 1"},
                {"type": "literal", "value": {"type": "node", "value": "x"}},
                {"type": "literal", "value": "text"},
                {"type": "trigger", "value": 5},
            ]
        )

    def anything(self) -> Any:
        leaf = {"field": "a", "op": "eq", "value": 1}
        return self._random.choice(
            [
                *(None, True, 7, HOSTILE, [1, [2]], {"a": {"b": [None]}}, {}, [], leaf),
                *({"and": [leaf, {"or": [leaf, leaf]}]}, {"and": [leaf]}, {"or": []}),
            ]
        )


@pytest.mark.long
async def test_an_unknown_or_odd_value_is_never_lost(page: Page, person: Person) -> None:
    """Every config opens without a change, and a change of one field keeps the others."""
    await workshop(page, person)
    for number in range(4):
        for kind in catalog()["kinds"]:
            config = Maker(number, kind["schema"]).config()
            given = {"id": "n", "kind": kind["kind"], "label": "Before", "config": config, "x": 1}
            given |= {"input": {"url": {"type": "trigger", "value": "url"}}} if number % 2 else {}
            await show(page, node=given, outputs=OUTPUTS)
            await settled(page)
            assert await page.evaluate("window.changes") == [], (number, kind["kind"], config)
            await page.evaluate("document.querySelector('[data-path=label] input').select()")
            await page.send("Input.insertText", text="After")
            after = await changed(page)
            assert after == {**given, "label": "After"}, (number, kind["kind"])
    for number in range(4):
        for kind in catalog()["triggers"]:
            trigger = {**Maker(number, kind["schema"]).config(), "kind": kind["kind"]}
            await show(page, trigger=trigger)
            await settled(page)
            assert await page.evaluate("window.changes") == [], (number, trigger)
    # Times of a schedule that can't be are refused.
    refused = [one for one in page.problems if "400 (Bad Request)" in one]
    assert page.problems == refused
    page.problems.clear()


OUTPUTS = [
    {
        "id": ":trigger",
        "label": "Trigger",
        "output": {"name": "Ada", "total": 12.5, "lines": [{"odd key": 1}], "record": {"id": "r"}},
    },
    {"id": "read", "label": "Read the order", "output": {"total": 42, "open": True}},
    {"id": "http-1", "label": HOSTILE, "output": {"status": 200}},
    {"id": "later", "label": "Later", "output": None},
]


async def pressed(page: Page, path: str, text: str) -> None:
    """Press a button of a field by its words."""
    await page.evaluate(
        f"[...document.querySelectorAll('[data-path=\"{path}\"] button')]"
        f".find((one) => one.textContent === {json.dumps(text)}).click()"
    )


async def chosen(page: Page, selector: str, value: str) -> None:
    """Choose an option of a select."""
    await page.until(f"document.querySelector('{selector} option[value=\"{value}\"]') !== null")
    await page.evaluate(
        f"(() => {{ const one = document.querySelector('{selector}'); one.value = '{value}';"
        " one.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


async def typed(page: Page, selector: str, text: str) -> None:
    """Replace the text of a field, and leave it."""
    await page.evaluate(f"document.querySelector('{selector}').select()")
    await page.send("Input.insertText", text=text)
    event = "new Event('change', { bubbles: true })"
    await page.evaluate(f"document.querySelector('{selector}').dispatchEvent({event})")


async def clicked(page: Page, selector: str, text: str) -> None:
    """Click the element of a selector that has these words."""
    await page.evaluate(
        f"[...document.querySelectorAll('{selector}')]"
        f".find((one) => one.textContent.trim() === {json.dumps(text)}).click()"
    )


async def written(page: Page, path: str, text: str) -> None:
    """Type into the expression of a field."""
    editor = f"ace.edit(document.querySelector('[data-path=\"{path}\"] .code-field'))"
    await page.until(f"document.querySelector('[data-path=\"{path}\"] .code-field') !== null")
    await page.evaluate(f"(() => {{ const one = {editor}; one.focus(); one.selectAll(); }})()")
    await page.send("Input.insertText", text=text)


@pytest.mark.long
async def test_a_value_becomes_an_expression_and_shows_what_it_gives(
    page: Page, person: Person
) -> None:
    await workshop(page, person)
    given = {"id": "n", "kind": "notify", "config": {"role": "owner", "title": "Late"}}
    await show(page, node=given, outputs=OUTPUTS)
    await pressed(page, "config.title", "Expression")
    assert (await changed(page))["config"]["title"] == {"type": "template", "value": "Late"}
    await written(page, "config.title", "Hello {{ trigger.name")
    place = '[data-path="config.title"]'
    await page.until(f"document.querySelector('{place} .value.wrong') !== null")
    await page.send("Input.insertText", text=" }} {{ nodes.read.total * 2 }}!")
    value = f"document.querySelector('{place} .value:not(.wrong)')?.textContent"
    await page.until(f"{value} === 'Hello Ada 84!'")
    assert (await changed(page))["config"]["title"]["type"] == "template"
    # One value alone is a reference, which may be of any type.
    await pressed(page, "config.title", "Value")
    await written(page, "config.title", 'trigger.lines[0]["odd key"]')
    await page.until(f"{value} === '1'")
    expected = {"type": "trigger", "value": "lines[0]['odd key']"}
    assert (await changed(page))["config"]["title"] == expected
    await written(page, "config.title", "trigger.total + ")
    await page.until(
        f"document.querySelector('{place} .value.wrong').textContent.includes('line 1')"
    )
    await page.until("document.querySelector('.fault-place') !== null")
    # What a run has and the last one did not is no mistake.
    await written(page, "config.title", "item.name")
    await page.until(f"document.querySelector('{place} .value.wrong') === null")
    await written(page, "config.title", "run.startedAt.substring(0, 2)")
    await page.until(f"{value} === '20'")
    await pressed(page, "config.title", "Fixed")
    assert (await changed(page))["config"] == given["config"]


@pytest.mark.long
async def test_a_click_on_a_value_puts_its_reference_where_the_cursor_is(
    page: Page, person: Person
) -> None:
    await workshop(page, person)
    config = {"role": "owner", "title": {"type": "template", "value": "Total: "}, "body": ""}
    await show(page, node={"id": "n", "kind": "notify", "config": config}, outputs=OUTPUTS)
    editor = "ace.edit(document.querySelector('[data-path=\"config.title\"] .code-field'))"
    await page.evaluate(f"(() => {{ {editor}.focus(); {editor}.navigateFileEnd(); }})()")
    reference = (
        "[...document.querySelectorAll('.reference')].find((one) => one.innerText.startsWith('{}'))"
    )
    await page.evaluate(f"{reference.format('total')}.click()")
    found = (await changed(page))["config"]["title"]
    assert found == {"type": "template", "value": "Total: {{ trigger.total }}"}
    await page.evaluate("document.querySelector('[data-path=\"config.body\"] textarea').focus()")
    await page.evaluate(f"{reference.format('status')}.click()")
    found = (await changed(page))["config"]["body"]
    assert found == {"type": "node", "value": "http-1.status"}
    assert await page.evaluate("document.querySelector('img') === null")


@pytest.mark.long
async def test_completion_offers_variables_functions_and_keys(page: Page, person: Person) -> None:
    await workshop(page, person)
    config = {"expression": "true"}
    await show(page, node={"id": "n", "kind": "condition", "config": config}, outputs=OUTPUTS)
    popup = "document.querySelector('.ace_autocomplete')?.innerText ?? ''"
    for text, words in (("nodes.", "read"), ("nodes.read.", "open"), ("si", "size")):
        await written(page, "config.expression", text)
        await page.evaluate(
            "ace.edit(document.querySelector('.code-field')).execCommand('startAutocomplete')"
        )
        await page.until(f"({popup}).includes('{words}')")
    await page.press("Enter")
    assert (await changed(page))["config"] == {"expression": "size()"}


async def furnished(person: Person) -> tuple[str, str]:
    """A table with fields of some kinds, and a secret. The id of the table and of its owner."""
    options = [{"key": "open", "name": "Open"}, {"key": "done", "name": HOSTILE}]
    fields = [
        {"key": "amount", "label": HOSTILE, "kind": "number", "required": True},
        {"key": "status", "label": "Status", "kind": "select", "options": options},
        {"key": "tags", "label": "Tags", "kind": "multi_select", "options": options},
        {"key": "paid", "label": "Paid", "kind": "checkbox"},
        {"key": "due", "label": "Due", "kind": "date"},
    ]
    body = {"label": f"Orders {HOSTILE}", "fields": fields}
    made = await person.call("POST", f"{person.space.path}/databases", body)
    await person.call("PUT", f"{person.space.path}/secrets/shop_token", {"value": "s3cret"})
    return str(made["id"]), str(person.space.user_id)


@pytest.mark.long
async def test_tables_fields_and_people_are_chosen_by_name(page: Page, person: Person) -> None:
    database_id, user_id = await furnished(person)
    await workshop(page, person)
    await show(page, node={"id": "n", "kind": "create_record", "config": {}}, outputs=OUTPUTS)
    await chosen(page, '[data-path="config.databaseId"] select', database_id)
    add = ".record > select.add"
    for key in ("amount", "status", "paid", "tags"):
        await chosen(page, add, key)
    assert (await changed(page))["config"] == {
        "databaseId": database_id,
        "data": {"amount": 0, "status": "open", "paid": False, "tags": []},
    }
    await typed(page, '[data-path="config.data.amount"] input', "12.5")
    await chosen(page, '[data-path="config.data.status"] select', "done")
    await pressed(page, "config.data.paid", "Expression")
    await written(page, "config.data.paid", "nodes.read.open")
    assert (await changed(page))["config"]["data"] == {
        "amount": 12.5,
        "status": "done",
        "paid": {"type": "node", "value": "read.open"},
        "tags": [],
    }
    await show(page, node={"id": "n", "kind": "notify", "config": {"title": "Hello"}})
    await chosen(page, '[data-path="config.userIds"] select', user_id)
    assert (await changed(page))["config"] == {"title": "Hello", "userIds": [user_id]}
    await clicked(page, ".panel-choice .segments button", "Role")
    await chosen(page, '[data-path="config.role"] select', "admin")
    assert (await changed(page))["config"] == {"title": "Hello", "role": "admin"}
    assert await page.evaluate("document.querySelector('main img') === null")


@pytest.mark.long
async def test_records_are_found_by_rows_of_a_filter(page: Page, person: Person) -> None:
    database_id, _ = await furnished(person)
    await workshop(page, person)
    given = {"id": "n", "kind": "query_records", "config": {"databaseId": database_id, "query": {}}}
    await show(page, node=given, outputs=OUTPUTS)
    await page.until("document.querySelector('[data-path=\"config.query.filter\"] .add') !== null")
    await pressed(page, "config.query.filter", "Add condition")
    await page.until("document.querySelector('.filter-row') !== null")
    await chosen(page, '.filter-row select[aria-label="Field 1"]', "status")
    await chosen(page, '[data-path="config.query.filter.value"] select', "done")
    await chosen(page, '[data-path="config.query.filter.value"] select', "open")
    leaf = {"field": "status", "op": "eq", "value": "open"}
    assert (await changed(page))["config"]["query"] == {"filter": leaf}
    await pressed(page, "config.query.filter", "Add condition")
    await chosen(page, 'select[aria-label="Field 2"]', "amount")
    await chosen(page, 'select[aria-label="Operator 2"]', "gte")
    await pressed(page, "config.query.filter.and.1.value", "Expression")
    await written(page, "config.query.filter.and.1.value", "trigger.total")
    bound = {"field": "amount", "op": "gte", "value": {"type": "trigger", "value": "total"}}
    assert (await changed(page))["config"]["query"] == {"filter": {"and": [leaf, bound]}}
    await chosen(page, "select[aria-label=Match]", "or")
    assert (await changed(page))["config"]["query"] == {"filter": {"or": [leaf, bound]}}


@pytest.mark.long
async def test_a_call_has_its_secret_by_name_and_what_overlays_stays_there(
    page: Page, person: Person
) -> None:
    await furnished(person)
    await workshop(page, person)
    overlay = {"body": {"type": "trigger", "value": "name"}}
    given = {
        "id": "n",
        "kind": "http_request",
        "config": {"url": "https://example.test", "auth": {"type": "bearer", "token": "x"}},
        "input": overlay,
    }
    await show(page, node=given, outputs=OUTPUTS)
    await pressed(page, "config.auth.token", "Secret")
    await chosen(page, '[data-path="config.auth.token"] select', "shop_token")
    found = await changed(page)
    token = {"type": "secret", "value": "shop_token"}
    assert found["config"]["auth"] == {"type": "bearer", "token": token}
    assert found["input"] == overlay
    await written(page, "input.body", "trigger.total")
    assert (await changed(page))["input"] == {"body": {"type": "trigger", "value": "total"}}
    await clicked(page, ".panel-choice .segments button", "None")
    assert (await changed(page))["config"] == {"url": "https://example.test"}


@pytest.mark.long
async def test_the_input_of_a_called_automation_is_its_own_form(page: Page, person: Person) -> None:
    properties = {
        "amount": {"type": "number", "title": HOSTILE},
        "state": {"enum": ["open", "done"]},
        "odd": {"type": ["string", "null"], "title": {"a": 1}},
    }
    trigger = {
        "kind": "automation_called",
        "inputSchema": {"type": "object", "properties": properties, "required": ["amount"]},
    }
    content = graph(node("a", "transform", output={}))
    called = await person.automation(content, publish=False, triggerConfig=trigger)
    await workshop(page, person)
    given = {"id": "n", "kind": "call_automation", "config": {"input": {"more": 1}}}
    await show(page, node=given, outputs=OUTPUTS)
    await settled(page)
    assert await page.evaluate("document.querySelector('.rows-of.map') !== null")
    await chosen(page, '[data-path="config.automationId"] select', called)
    amount = '[data-path="config.input.amount"]'
    await page.until(f"document.querySelector('{amount} input') !== null")
    assert HOSTILE in await page.text(amount)
    await typed(page, f"{amount} input", "12")
    await chosen(page, '[data-path="config.input.state"] select', "done")
    expected = {"more": 1, "amount": 12, "state": "done"}
    assert (await changed(page))["config"] == {"automationId": called, "input": expected}
    await pressed(page, "config.input.amount", "Expression")
    await written(page, "config.input.amount", "trigger.total")
    bound = {**expected, "amount": {"type": "trigger", "value": "total"}}
    assert (await changed(page))["config"]["input"] == bound


@pytest.mark.long
async def test_a_schedule_is_said_in_words_and_shows_its_next_times(
    page: Page, person: Person
) -> None:
    await workshop(page, person)
    await show(page, trigger={"kind": "manual"})
    await chosen(page, "#trigger-kind", "schedule")
    trigger = await changed(page)
    assert (trigger["kind"], trigger["cron"]) == ("schedule", "0 9 * * 1-5")
    await page.until("document.querySelectorAll('.next-times li').length === 5")
    await chosen(page, "#schedule-repeat", "weekly")
    await clicked(page, ".panel-check", "Friday")
    assert (await changed(page))["cron"] == "0 9 * * 1,5"
    await typed(page, "#schedule-cron", "0 9 31 2 *")
    await page.until("document.querySelector('.next-times .fault') !== null")
    await typed(page, "#schedule-cron", "*/10 8-17 * * *")
    await page.until("document.querySelectorAll('.next-times li').length === 5")
    assert await page.evaluate("document.querySelector('#schedule-repeat').value") == "cron"
    await chosen(page, "#schedule-repeat", "interval")
    assert (await changed(page))["intervalSeconds"] == 3600
    assert "cron" not in await changed(page)
    assert len(page.problems) == 1
    # The refusal of the day that no month has.
    page.problems.clear()
    # The kind before is still there when one comes back to it.
    await chosen(page, "#trigger-kind", "manual")
    await chosen(page, "#trigger-kind", "schedule")
    assert (await changed(page))["intervalSeconds"] == 3600


@pytest.mark.long
async def test_a_manual_trigger_asks_for_rows_of_input(page: Page, person: Person) -> None:
    await workshop(page, person)
    await show(page, trigger={"kind": "manual"})
    await typed(page, ".inputs .adding input", "amount")
    await pressed(page, "triggerConfig.inputSchema", "Add input")
    await chosen(page, ".inputs select", "number")
    await page.click(".inputs .panel-check input")
    assert await changed(page) == {
        "kind": "manual",
        "inputSchema": {
            "type": "object",
            "properties": {"amount": {"type": "number"}},
            "required": ["amount"],
        },
    }
    # What the rows can't say is kept as it is.
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}
    await show(page, trigger={"kind": "manual", "inputSchema": schema})
    await settled(page)
    assert await page.evaluate("document.querySelector('.inputs') === null")
    assert await page.evaluate("window.changes") == []


@pytest.mark.long
async def test_a_webhook_shows_its_address_and_a_call(page: Page, person: Person) -> None:
    automation_id = await workshop(page, person)
    path = f"{person.space.path}/automations/{automation_id}"
    automation = await person.call("GET", path)
    for trigger, words in (
        ({"kind": "webhook"}, "webhook-signature: v1,"),
        ({"kind": "webhook", "auth": "basic"}, '-u "any:$WEBHOOK_SECRET"'),
        ({"kind": "webhook", "auth": "header"}, "X-Webhook-Secret: $WEBHOOK_SECRET"),
        ({"kind": "webhook", "auth": "none", "methods": ["GET"]}, "curl -X GET"),
    ):
        await show(page, trigger=trigger, automation=automation)
        call = await page.text(
            ".webhook .copyable:last-of-type pre, .webhook [aria-label='Example call']"
        )
        assert words in call
        assert automation["webhookPath"] in call
    assert (
        await page.text("[aria-label='Webhook URL']")
        == person.server.url + automation["webhookPath"]
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("trigger", "choice", "value", "left"),
    [
        (
            {"auth": "header", "header": "X-Key", "secretName": "hook"},
            "auth",
            "basic",
            {"auth": "basic", "secretName": "hook"},
        ),
        ({"auth": "basic", "secretName": "hook"}, "auth", "none", {"auth": "none"}),
        (
            {"respond": "wait", "waitSeconds": 5, "auth": "none"},
            "respond",
            "immediate",
            {"respond": "immediate", "auth": "none"},
        ),
        # A value that did not fit before is the person's to remove.
        (
            {"auth": "none", "header": "X"},
            "respond",
            "wait",
            {"auth": "none", "header": "X", "respond": "wait"},
        ),
    ],
    ids=["header", "secret", "wait", "kept"],
)
async def test_a_choice_takes_along_what_belongs_to_the_one_before(
    page: Page, person: Person, trigger: Json, choice: str, value: str, left: Json
) -> None:
    automation_id = await workshop(page, person)
    automation = await person.call("GET", f"{person.space.path}/automations/{automation_id}")
    await show(page, trigger={"kind": "webhook", **trigger}, automation=automation)
    await chosen(page, f'[data-path="triggerConfig.{choice}"] select', value)
    assert await changed(page) == {"kind": "webhook", **left}


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_no_panel_breaks_a_rule(page: Page, person: Person, dark: bool) -> None:
    await furnished(person)
    await workshop(page, person)
    await page.show(dark=dark)
    problems: Json = {}
    for kind in NodeKind:
        shown = {"id": "n", "kind": kind.value, "config": example_of(kind)}
        await show(page, node=shown, outputs=OUTPUTS, data={"output": {"a": 1}, "input": {"b": 2}})
        await settled(page)
        if found := await violations(page):
            problems[kind.value] = found
    for trigger in catalog()["triggers"]:
        await show(
            page, trigger={"kind": trigger["kind"]}, automation={"webhookPath": "/v1/hooks/a"}
        )
        await settled(page)
        if found := await violations(page):
            problems[trigger["kind"]] = found
    assert not problems, json.dumps(problems, indent=1)


READY = {
    key: one
    for group in starters().values()
    for key, one in group.items()
    if one.nodes and not one.outside
}


@pytest.mark.long
async def test_each_starter_runs_where_it_needs_nothing_outside(person: Person) -> None:
    runs: dict[str, str] = {}
    for key, starter in READY.items():
        places, record = {}, None
        for name, table in starter.tables.items():
            body: Json = {"label": table.label, "fields": table.fields}
            made = await person.call("POST", f"{person.space.path}/databases", body)
            places[name] = Place(made["id"], {one["key"]: one["key"] for one in table.fields})
        if starter.sample is not None:
            path = f"/v1/databases/{next(iter(places.values())).database_id}/records"
            record = await person.call("POST", path, {"data": starter.sample})
        document = document_of(starter, places)
        automation_id = await person.automation(
            document["graph"], triggerConfig=document["triggerConfig"]
        )
        path = f"{person.space.path}/automations/{automation_id}/test-run"
        given: Json = {} if record is None else {"triggerPayload": {"record": record}}
        runs[key] = (await person.call("POST", path, given))["id"]
    for key, run_id in runs.items():

        async def has_settled(run_id: str = run_id) -> bool:
            found = await person.call("GET", f"/v1/runs/{run_id}")
            return found["run"]["status"] in {"succeeded", "failed", "waiting"}

        await eventually(has_settled, what=key)
        found = (await person.call("GET", f"/v1/runs/{run_id}"))["run"]
        # What asks people or waits for time is as far as it comes alone.
        assert found["status"] in {"succeeded", "waiting"}, (key, found.get("error"))
