"""The daily acts of an automation's author in a browser, each with the test that does it.

The last test of each act does it by the keyboard alone.
"""

import ast
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.canvas import Hand, draft, edges, face, is_there, one, opened, saved
from tests.support.engine import graph, node
from tests.support.person import Person

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
BY_KEYS = "daily_acts/test_automation_keys.py:"
BY_KEYS_ON_CANVAS = CANVAS + "test_nodes_are_added_connected_deleted_and_restored_by_keys"
NOTES = "daily_acts/test_automation_notes.py:"
INPUT_OUTPUT = CANVAS + "test_a_test_shows_states_and_data_on_the_canvas"
RETRY_KEYS = BY_KEYS + "test_a_failed_run_is_read_and_retried_by_keys_alone"
SEARCH_KEYS = BY_KEYS + "test_runs_are_searched_opened_and_compared_by_keys_alone"
SECRET_KEYS = BY_KEYS + "test_a_secret_is_chosen_and_a_call_is_copied_by_keys_alone"
COMPARISON = (
    "test_run_comparison_page.py:"
    "test_a_person_finds_where_a_run_parted_from_the_last_that_succeeded"
)
ACTS = {
    "add a node from a palette": (STOPWATCH, KEYS),
    "drag nodes": (
        CANVAS + "test_nodes_are_dragged_and_connected_by_mouse",
        CANVAS + "test_keys_move_delete_undo_and_redo",
    ),
    "connect nodes": (
        CANVAS + "test_nodes_are_dragged_and_connected_by_mouse",
        BY_KEYS_ON_CANVAS,
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
    "connect an account": (
        "test_integration_pages.py:test_a_connection_is_made_and_tested",
        BY_KEYS + "test_an_account_is_connected_by_keys_alone",
    ),
    "choose a credential in a node": (
        PANELS + "test_a_call_has_its_secret_by_name_and_what_overlays_stays_there",
        SECRET_KEYS,
    ),
    "run one node": (INPUT_OUTPUT, NODE_KEYS),
    "pin the output of a node": (NODE_KEYS,),
    "look at input and output": (INPUT_OUTPUT, RETRY_KEYS),
    "test without calls to others": (STOPWATCH, KEYS),
    "begin with a starter": (
        PANELS + "test_each_starter_runs_where_it_needs_nothing_outside",
        BY_KEYS + "test_a_starter_is_begun_with_by_keys_alone",
    ),
    "duplicate": (CANVAS + "test_nodes_are_inserted_duplicated_and_tidied_by_mouse", NODE_KEYS),
    "compare and restore versions": (
        "test_automation_pages.py:test_two_versions_are_one_picture",
        BY_KEYS + "test_versions_are_compared_and_restored_by_keys_alone",
    ),
    "canary": (
        "test_canary_page.py:test_a_person_tries_a_draft_on_some_runs_and_promotes_it",
        BY_KEYS + "test_a_canary_is_started_and_promoted_by_keys_alone",
    ),
    "watch the list of runs": (
        "test_console.py:test_a_list_is_refreshed_while_it_is_shown",
        SEARCH_KEYS,
    ),
    "retry from the failed node": (CANVAS + "test_a_failed_run_is_mended_and_retried", RETRY_KEYS),
    "retry many": (
        "test_run_operations.py:test_ticked_runs_are_retried_and_followed",
        BY_KEYS + "test_many_runs_are_retried_by_keys_alone",
    ),
    "compare two runs": (COMPARISON, SEARCH_KEYS),
    "search payloads and errors": (
        "test_run_filters_page.py:test_a_person_finds_runs_by_a_text_and_keeps_the_filter",
        SEARCH_KEYS,
    ),
    "approve": (
        "test_decision_page.py:test_a_person_decides_by_the_link_alone",
        BY_KEYS + "test_an_approval_is_given_by_keys_alone",
    ),
    "alert": (BY_KEYS + "test_an_alert_is_made_by_keys_alone",),
    "pause and resume": (BY_KEYS + "test_an_automation_is_paused_and_resumed_by_keys_alone",),
    "call a webhook": (STOPWATCH, SECRET_KEYS),
    "group failures": (BY_KEYS + "test_failures_of_a_kind_are_opened_by_keys_alone",),
    "note on the canvas": (
        NOTES + "test_a_note_is_moved_resized_colored_and_deleted_by_mouse",
        NOTES + "test_a_note_is_written_moved_copied_and_deleted_by_keys_alone",
    ),
}
"""The tests of each act. The last one does it by the keyboard alone: no act is without keys."""


def names_of_tests(name: str) -> set[str]:
    """The tests of a file below the folder of pages."""
    tree = ast.parse((PAGES / name).read_text(encoding="utf-8"))
    functions = (each for each in tree.body if isinstance(each, ast.AsyncFunctionDef))
    return {each.name for each in functions if each.name.startswith("test_")}


def test_each_act_has_a_test_and_one_by_keys() -> None:
    assert len(ACTS) == 29
    for act, places in ACTS.items():
        for place in places:
            name, _, test = place.partition(":")
            assert test in names_of_tests(name), (act, place)
        assert "keys" in places[-1], act


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
