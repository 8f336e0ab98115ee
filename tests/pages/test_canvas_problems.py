"""Why a draft, or an edge, is refused: in the words of the page, where a person looks."""

import pytest

from api.console.automations.starters import starters
from tests.support.browser import Page
from tests.support.canvas import draft, drag, edges, face, middle, one, opened, press, saved
from tests.support.engine import graph, node
from tests.support.person import Person, sign_in

pytestmark = [pytest.mark.takes(seconds=60)]


async def test_problems_name_fields_by_their_labels(page: Page, person: Person) -> None:
    content = graph(
        node("act", "action", label="Act"),
        node("wait", "delay", label="Pause"),
        node("ask", "approval", label="Ask"),
        node("send", "send_webhook", label="Send", type="a.b"),
        node("pick", "switch", label="Pick", cases=[{"key": "a", "when": "1 >"}]),
        edges=[("act", "wait"), ("wait", "ask"), ("ask", "send", "approved"), ("send", "pick")],
    )
    await opened(page, person, await person.automation(content, publish=False))
    await page.click(".problems summary")
    await page.until("document.querySelectorAll('.problems li').length >= 5")
    told = (await page.text(".problems ul")).replace("\n", " ")
    for words in (
        "Act Action is required",
        "Pause Needs either Duration or Until",
        "Ask Needs Approvers or Role",
        "Send Needs either Webhook endpoint or URL",
        "Pick Cases \u203a 1 \u203a Expression is required",
    ):
        assert words in told, (words, told)
    for key in ("actionId", "seconds", "assignees", "endpointId", "cases"):
        assert key not in told.split(), told
    await page.click(face("act"))
    # Said at the field, and nowhere else.
    await page.until(f"{one('[data-path=actionId] .fault')}.innerText === 'Required'")
    assert await page.evaluate(one(".panel-problems")) is None


async def test_an_edge_is_dropped_on_a_node_or_refused_in_words(page: Page, person: Person) -> None:
    steps = [node(name, "transform", label=name.title(), output={}) for name in ("a", "b", "c")]
    content = graph(*steps, edges=[("a", "b")])
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)

    def way(name: str) -> str:
        return f'.step[data-node="{name}"] .vue-flow__handle.always'

    await drag(page, await middle(page, way("b")), await middle(page, face("c")))
    await page.until("document.querySelectorAll('.vue-flow__edge').length === 3")
    await saved(page)
    joined = [("a", "b", "always"), ("b", "c", "always")]
    await press(page, "Fit")
    canvas = await middle(page, ".flow")
    assert await edges(person, automation_id) == joined
    for target in (face("a"), '.step[data-node="a"] .vue-flow__handle-left'):
        await page.until(f"{one('.canvas-bar.said')} === null")
        await drag(page, await middle(page, way("c")), await middle(page, target))
        await page.until(f"{one('.canvas-bar.said')}.innerText.startsWith('Nodes can')")
        # What is said moves nothing.
        assert await middle(page, ".flow") == canvas
    await saved(page)
    assert await edges(person, automation_id) == joined


async def test_a_text_of_several_lines_is_typed_and_kept(page: Page, person: Person) -> None:
    content = graph(node("text", "transform", label="Text", output={"two": "first\nsecond"}))
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    await page.click(face("text"))
    field = "[data-path='config.output.two'] textarea"
    await page.until(f"{one(field)}.value === 'first\\nsecond'")
    await page.evaluate(f"{one(field)}.focus()")
    await page.evaluate(f"{one(field)}.setSelectionRange(99, 99)")
    await page.send("Input.insertText", text="\nthird")
    await page.until(f"{one('.save-state')}.innerText !== 'Draft saved'")
    await saved(page)
    [kept] = (await draft(person, automation_id))["graph"]["nodes"]
    assert kept["config"]["output"] == {"two": "first\nsecond\nthird"}


async def test_a_trigger_that_is_selected_has_no_empty_toolbar(page: Page, person: Person) -> None:
    content = graph(node("text", "transform", label="Text", output={}))
    await opened(page, person, await person.automation(content, publish=False))
    await page.click(face(":trigger"))
    await page.until("document.querySelector('.panel-of') !== null")
    await page.press("Escape")
    await page.until("document.querySelector('.panel-of') === null")
    await page.until("document.querySelector('.vue-flow__node.selected') !== null")
    assert await page.evaluate(f"{one('.tools')} === null")


async def test_a_node_with_a_problem_is_not_run_alone(page: Page, person: Person) -> None:
    content = graph(
        node("sum", "transform", label="Sum", output={"a": {"type": "expression", "value": "1 +"}})
    )
    await opened(page, person, await person.automation(content, publish=False))
    await page.click(face("sum"))
    await page.until("document.querySelector('.panel-of') !== null")
    await page.press("Escape")
    await press(page, "Run this node")
    await page.until("document.querySelector('dialog[open] .primary') !== null")
    await page.click("dialog[open] .primary")
    told = await page.until(f"{one('.canvas-bar.wrong span')}.innerText")
    assert told.startswith("Fix this problem first. Sum: Values \u203a a: "), told
    assert told.count("compile") == 1, told


OUTSIDE = [key for group in starters().values() for key, each in group.items() if each.outside]


@pytest.mark.long
@pytest.mark.parametrize("key", OUTSIDE)
async def test_a_starter_that_calls_others_is_tested_as_it_is(
    page: Page, person: Person, key: str
) -> None:
    """The first test that a person makes, with nothing changed, and nothing sent."""
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.home}/automations/new?starter={key}")
    await page.click("main form[method=post] button[type=submit]")
    await page.until("document.getElementById('editor').dataset.ready === 'true'")
    await press(page, "Test")
    await page.until("document.querySelector('dialog#test') !== null")
    await press(page, "Run test")
    bar = one(".canvas-bar[data-run]")
    await page.until(f"['succeeded', 'waiting', 'failed'].includes({bar}.dataset.status)")
    assert await page.evaluate(f"{bar}.dataset.status") != "failed", await page.text(".bars")


async def test_an_id_that_a_node_cannot_have_is_refused_at_its_field(
    page: Page, person: Person
) -> None:
    content = graph(node("one", "transform", output={}), node("two", "transform", output={}))
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    await page.click(face("one"))
    await press(page, "Settings")
    for typed, refused in (
        ("a/b", "An ID can't have slashes or colons."),
        ("two", "Another node has the ID two."),
        ("", "Enter an ID."),
    ):
        await page.evaluate(f"{one('#node-id')}.focus(), {one('#node-id')}.select()")
        if typed:
            await page.send("Input.insertText", text=typed)
        else:
            await page.evaluate("document.execCommand('delete')")
        await page.press("Enter")
        assert await page.until(f"{one('#node-id-hint .fault')}?.innerText") == refused
        # The text stays, so that it can be corrected.
        assert await page.evaluate(f"{one('#node-id')}.value") == typed
    await page.evaluate(f"{one('#node-id')}.focus()")
    await page.send("Input.insertText", text="three")
    await page.press("Enter")
    await page.until(f"{one(face('three'))} !== null")
