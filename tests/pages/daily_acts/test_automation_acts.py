"""The daily acts of an automation's author in a browser, each with the test that does it.

Acts of the canvas have one by mouse; those of building, testing and running have one by keyboard
alone, too. Where a file is named alone, its tests do the act together.
"""

import ast
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.canvas import Hand, draft, edges, face, is_there, one, opened, saved
from tests.support.engine import graph, node
from tests.support.person import Person
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=60)]

PAGES = Path(__file__).parents[1]
KEYS = "daily_acts/test_automation_acts.py:test_an_automation_is_built_by_keys_alone"
NODE_KEYS = "daily_acts/test_automation_acts.py:test_a_node_is_pinned_noted_and_run_by_keys_alone"
STOPWATCH = (
    "daily_acts/test_automation_stopwatch.py:"
    "test_an_automation_is_built_tested_published_and_called_in_ninety_seconds"
)
PANELS = "test_canvas_panels.py:"
CANVAS = "test_canvas.py:"
RUN = "test_run_page.py:"
ACTS = {
    "add a node from a palette": (STOPWATCH, KEYS),
    "drag nodes": (
        CANVAS + "test_nodes_are_dragged_and_connected_by_mouse",
        CANVAS + "test_keys_move_delete_undo_and_redo",
    ),
    "connect nodes": (
        CANVAS + "test_nodes_are_dragged_and_connected_by_mouse",
        CANVAS + "test_nodes_are_added_connected_deleted_and_restored_by_keys",
    ),
    "fill in the form of a node": (STOPWATCH, KEYS),
    "write an expression": (
        PANELS + "test_a_click_on_a_value_puts_its_reference_where_the_cursor_is",
        KEYS,
    ),
    "complete an expression": (
        PANELS + "test_completion_offers_variables_functions_and_keys",
        KEYS,
    ),
    "pick a table, a field and a member by name": (
        PANELS + "test_tables_fields_and_people_are_chosen_by_name",
        KEYS,
    ),
    "fill in the trigger, with a schedule": (
        PANELS + "test_a_schedule_is_said_in_words_and_shows_its_next_times",
        KEYS,
    ),
    "connect an account": ("test_integration_pages.py:",),
    "choose a credential in a node": (
        PANELS + "test_a_call_has_its_secret_by_name_and_what_overlays_stays_there",
    ),
    "run one node": (CANVAS + "test_a_test_shows_states_and_data_on_the_canvas", NODE_KEYS),
    "pin the output of a node": (NODE_KEYS,),
    "look at input and output": (CANVAS + "test_a_test_shows_states_and_data_on_the_canvas",),
    "test without calls to others": (STOPWATCH, KEYS),
    "begin with a starter": (PANELS + "test_each_starter_runs_where_it_needs_nothing_outside",),
    "duplicate": (CANVAS + "test_nodes_are_inserted_duplicated_and_tidied_by_mouse", NODE_KEYS),
    "compare and restore versions": ("test_automation_pages.py:",),
    "canary": ("test_canary_page.py:",),
    "watch the list of runs": ("test_console.py:",),
    "retry from the failed node": (CANVAS + "test_a_failed_run_is_mended_and_retried",),
    "retry many": ("test_run_operations.py:",),
    "compare two runs": ("test_run_comparison_page.py:",),
    "search payloads and errors": ("test_run_filters_page.py:",),
    "approve": (
        "daily_acts/test_automation_large.py:test_a_phone_shows_moves_and_decides",
        "test_decision_page.py:",
    ),
    "alert": ("test_workspace_pages.py:",),
    "pause and resume": ("test_console.py:",),
    "call a webhook": (STOPWATCH,),
    "group failures": ("test_console.py:",),
    "note on the canvas": (NODE_KEYS,),
}
"""Where each act is done; a file alone is where its page is used."""


def test_each_act_has_a_test() -> None:
    assert len(ACTS) == 29
    for act, places in ACTS.items():
        for place in places:
            name, _, test = place.partition(":")
            tree = ast.parse((PAGES / name).read_text(encoding="utf-8"))
            tests = {
                each.name
                for each in tree.body
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                and each.name.startswith("test_")
            }
            assert tests, (act, place)
            assert not test or test in tests, (act, place)


@pytest.fixture
def person(server: Server, space: Space) -> Person:
    return Person(server, space)


FOCUS = "document.activeElement"


async def tab_to(hand: Hand, label: str) -> None:
    """Press Tab until the control of this name, or of this text, has the focus."""
    name = (
        f"({FOCUS}.getAttribute('aria-label') ?? {FOCUS}.labels?.[0]?.innerText"
        f" ?? {FOCUS}.innerText).trim()"
    )
    for _ in range(60):
        if str(await hand.page.evaluate(name)).startswith(label):
            return
        await hand.key("Tab")
    raise AssertionError(f"no Tab leads to {label}")


async def built_by_keys(hand: Hand) -> None:
    """A schedule, a condition and a new record."""
    # The trigger: a schedule.
    await hand.page.evaluate(f"{one(face(':trigger'))}.focus()")
    await hand.key("Enter")
    await hand.page.until("document.querySelector('.panel-of') !== null")
    await tab_to(hand, "Starts")
    await hand.key("s")
    await hand.page.until("document.querySelector('#trigger-kind').value === 'schedule'")
    # Control and Enter lead from each node to the next one.
    await hand.key("Enter", 2)
    await hand.page.until(f"{FOCUS}.classList.contains('find-node')")
    await hand.type("condition")
    await hand.key("Enter")
    await hand.page.until(f"{FOCUS}.classList.contains('ace_text-input')")
    await hand.type("trig")
    popup = "getComputedStyle(document.querySelector('.ace_autocomplete')).display"
    await hand.page.until(f"{popup} !== 'none'")
    await hand.key("Enter")
    await hand.type(".timezone != ''")
    await hand.key("Enter", 2)
    await hand.page.until(f"{FOCUS}.classList.contains('find-node')")
    await hand.type("create")
    await hand.key("Enter")
    await hand.page.until(f"{FOCUS}.tagName === 'SELECT' && {FOCUS}.options.length > 1")
    await hand.key("o")
    await tab_to(hand, "Title")
    await hand.type("By keys")


async def tried_by_keys(hand: Hand) -> None:
    """Close the panel, and start a test by the button that Tab leads to."""
    await hand.key("Escape")
    await hand.page.evaluate("document.querySelector('#editor-tabs a').focus()")
    await tab_to(hand, "Test")
    await hand.key("Enter")
    await hand.page.until("document.querySelector('dialog#test') !== null")
    await tab_to(hand, "Run test")
    await hand.key("Enter")
    await hand.page.until("document.querySelector('.canvas-bar[data-run]') !== null")


@pytest.mark.long
async def test_an_automation_is_built_by_keys_alone(page: Page, person: Person) -> None:
    fields = [{"key": "order", "label": "Order", "kind": "number"}]
    body = {"label": "Orders", "fields": fields}
    database = await person.call("POST", f"{person.space.path}/databases", body)
    path = f"{person.space.path}/automations"
    made = await person.call("POST", path, {"label": "By keys", "enabled": True})
    await opened(page, person, made["id"])
    hand = Hand(page)
    await built_by_keys(hand)
    await saved(page)
    content = await draft(person, made["id"])
    assert content["triggerConfig"]["kind"] == "schedule"
    assert await edges(person, made["id"]) == [("condition", "create_record", "true")]
    condition, create = content["graph"]["nodes"]
    assert condition["config"] == {"expression": "trigger.timezone != ''"}
    assert create["config"] == {"databaseId": database["id"], "title": "By keys"}
    assert content["referenceIssues"] == []
    await tried_by_keys(hand)
    assert hand.clicks == 0


@pytest.mark.long
async def test_a_node_is_pinned_noted_and_run_by_keys_alone(page: Page, person: Person) -> None:
    content = graph(node("read", "transform", label="Read", output={"total": 42}))
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    hand = Hand(page)
    await page.evaluate(f"{one(face('read'))}.focus()")
    await hand.key("Enter")
    await page.until("document.querySelector('.panel-of') !== null")
    await page.evaluate("document.querySelector('.panel-of .button').focus()")
    await tab_to(hand, "Settings")
    await hand.key("Enter")
    # The output that tests use instead of the node; the first of both is that of retries.
    await tab_to(hand, "Add")
    await hand.key("Tab")
    await tab_to(hand, "Add")
    await hand.key("Enter")
    await page.until("document.querySelector('[data-path=mock] .group') !== null")
    await tab_to(hand, "Use it")
    await hand.key(" ")
    await tab_to(hand, "New name in Output")
    await hand.type("total")
    await hand.key("Enter")
    await tab_to(hand, "Notes")
    await hand.type("Ask Ada first.")
    await page.until("document.querySelector('.note-of').innerText === 'Ask Ada first.'")
    await hand.key("Escape")
    await page.until(f"{FOCUS}.dataset.face === 'read'")
    await hand.key("d", 2)
    await page.until(is_there("read_2"))
    await tab_to(hand, "Run this node")
    await hand.key("Enter")
    await page.until("document.querySelector('dialog#run') !== null")
    await hand.key("Enter")
    await page.until(
        "document.querySelector('.canvas-bar[data-run]').dataset.status === 'succeeded'"
    )
    await saved(page)
    nodes = (await draft(person, automation_id))["graph"]["nodes"]
    assert nodes[0]["mock"] == {"enabled": True, "output": {"total": ""}}
    assert [each["notes"] for each in nodes] == ["Ask Ada first."] * 2
    assert hand.clicks == 0
