"""The daily acts with data, each with the tests that do it in a real browser.

Acts whose tests are in no other module are tried here.
"""

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.pages.daily_acts.view_acts import tasks
from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Person, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

ACTS: Mapping[str, tuple[str, ...]] = {
    "table from template": (
        "test_acts.test_a_table_is_made_from_a_template",
        "test_data_keys.test_tables_come_and_go_by_keys_alone",
    ),
    "create field": (
        "test_grid_rows.test_fields_are_added_renamed_and_arranged_in_the_view",
        "test_data_keys.test_columns_are_made_and_arranged_by_keys_alone",
    ),
    "rename, change kind": (
        "test_grid_rows.test_fields_are_added_renamed_and_arranged_in_the_view",
        "test_grid_fields.test_a_conversion_shows_what_does_not_fit_first",
        "test_data_keys.test_fields_get_options_and_another_type_by_keys_alone",
    ),
    "options and colors": (
        "test_grid_fields.test_options_are_changed_beside_the_table_and_undone",
        "test_data_keys.test_fields_get_options_and_another_type_by_keys_alone",
    ),
    "hide column": (
        "test_grid_rows.test_fields_are_added_renamed_and_arranged_in_the_view",
        "test_data_keys.test_columns_are_made_and_arranged_by_keys_alone",
    ),
    "resize columns": (
        "test_grid_rows.test_fields_are_added_renamed_and_arranged_in_the_view",
        "test_data_keys.test_columns_are_made_and_arranged_by_keys_alone",
    ),
    "reorder columns": (
        "test_grid_rows.test_fields_are_added_renamed_and_arranged_in_the_view",
        "test_data_keys.test_columns_are_made_and_arranged_by_keys_alone",
    ),
    "sort": (
        "test_views.test_sorts_groups_and_fields_are_chosen_and_saved",
        "test_data_keys.test_a_view_is_arranged_by_keys_alone",
    ),
    "filter, one condition": (
        "test_views.test_a_nested_filter_is_built_by_clicks_and_saved",
        "test_views.test_a_filter_is_built_by_keys_alone",
    ),
    "filter with and/or": (
        "test_views.test_a_nested_filter_is_built_by_clicks_and_saved",
        "test_data_keys.test_a_view_is_arranged_by_keys_alone",
    ),
    "group rows": (
        "test_views.test_sorts_groups_and_fields_are_chosen_and_saved",
        "test_data_keys.test_a_view_is_arranged_by_keys_alone",
    ),
    "save a view": (
        "test_views.test_sorts_groups_and_fields_are_chosen_and_saved",
        "test_data_keys.test_a_view_is_arranged_by_keys_alone",
    ),
    "new board, calendar": (
        "test_views.test_a_view_of_each_kind_is_made_here",
        "test_data_keys.test_a_board_is_made_by_keys_alone",
    ),
    "edit cell": (
        "test_grid.test_a_refused_value_stays_as_typed_and_blocks_nothing",
        "test_grid.test_cells_are_reached_and_typed_by_keys_alone",
    ),
    "type over, Tab on": (
        "test_grid.test_a_refused_value_stays_as_typed_and_blocks_nothing",
        "test_grid.test_cells_are_reached_and_typed_by_keys_alone",
    ),
    "arrow keys": ("test_grid.test_cells_are_reached_and_typed_by_keys_alone",),
    "copy and paste from Excel": (
        "test_grid_clipboard.test_shapes_of_the_clipboard",
        "test_grid_clipboard.test_a_table_of_excel_is_pasted_as_one_batch_and_undone",
        "test_data_keys.test_a_record_is_filled_and_discussed_by_keys_alone",
    ),
    "undo": (
        "test_grid_undo.test_random_acts_are_undone_to_what_history_says",
        "test_data_keys.test_rows_are_added_edited_and_deleted_by_keys_alone",
    ),
    "select rows": (
        "test_grid_rows.test_many_rows_are_deleted_at_once_and_come_back",
        "test_data_keys.test_rows_are_added_edited_and_deleted_by_keys_alone",
    ),
    "bulk edit, bulk delete": (
        "test_grid_rows.test_rows_are_added_duplicated_and_edited_together",
        "test_grid_rows.test_many_rows_are_deleted_at_once_and_come_back",
        "test_data_keys.test_rows_are_added_edited_and_deleted_by_keys_alone",
    ),
    "add row inline": (
        "test_grid_rows.test_rows_are_added_duplicated_and_edited_together",
        "test_data_keys.test_rows_are_added_edited_and_deleted_by_keys_alone",
    ),
    "drag card": (
        "test_views_board.test_a_card_is_dragged_into_another_column",
        "test_views_board.test_a_card_is_moved_by_keys_alone",
    ),
    "drag event": (
        "test_views_calendar.test_an_event_is_dragged_to_another_day",
        "test_views_calendar.test_an_event_is_moved_and_stretched_by_keys_alone",
        "test_views_hours.test_an_event_is_dragged_to_another_hour_and_day",
        "test_views_hours.test_hours_are_changed_by_keys_alone",
    ),
    "attach file": (
        "test_grid_kinds.test_files_are_dropped_on_a_cell",
        "test_data_keys.test_a_file_is_chosen_by_keys_alone",
    ),
    "comment": (
        "test_grid_comments.test_a_comment_that_is_begun_stays_with_its_record",
        "test_data_keys.test_a_record_is_filled_and_discussed_by_keys_alone",
    ),
    "mention": (
        "test_grid_comments.test_a_member_is_mentioned_in_a_comment",
        "test_data_keys.test_a_record_is_filled_and_discussed_by_keys_alone",
    ),
    "relation picker": (
        "test_grid_kinds.test_people_and_records_are_searched",
        "test_data_keys.test_a_record_is_filled_and_discussed_by_keys_alone",
    ),
    "history of a record": (
        "test_acts.test_the_history_of_a_record_is_read",
        "test_data_keys.test_a_record_is_filled_and_discussed_by_keys_alone",
    ),
    "import CSV, XLSX, undo": (
        "test_dropped_files.test_a_dropped_file_becomes_a_database",
        "test_acts.test_an_import_is_undone",
        "test_data_keys.test_tables_come_and_go_by_keys_alone",
    ),
    "header row, date format": (
        "test_imports.test_header_row_and_date_order_are_chosen",
        "test_imports.test_header_row_and_date_order_are_chosen_by_keys_alone",
    ),
    "export": (
        "test_acts.test_a_table_is_exported",
        "test_data_keys.test_tables_come_and_go_by_keys_alone",
    ),
    "public form": (
        "test_acts.test_a_visitor_answers_a_public_form",
        "test_data_keys.test_tables_come_and_go_by_keys_alone",
    ),
    "write a page or note": (
        "test_notes_blocks.test_blocks_are_selected_by_mouse_copied_cut_and_pasted",
        "test_notes.test_a_page_is_written_by_keys_alone",
    ),
}
"""The last test of each does it by the keyboard alone, those before it by mouse."""


def test_every_act_has_tests_that_are_there() -> None:
    here = Path(__file__).parent
    there = {
        f"{path.stem}.{one.name}"
        for path in here.glob("test_*.py")
        for one in ast.parse(path.read_text()).body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named = {one for tests in ACTS.values() for one in tests}
    assert named <= there
    assert all("keys" in tests[-1] for tests in ACTS.values())
    assert len(ACTS) == 33


@pytest.fixture
async def person(page: Page, server: Server, space: Space) -> Person:
    await sign_in(page, server, space)
    return Person(server, space)


async def test_a_table_is_made_from_a_template(page: Page, person: Person) -> None:
    await page.open(f"{person.home}/databases/new")
    await page.click("input[name=template]:not([value=''])")
    await page.write("[name=label]", "Work")
    await page.click("form.choose button[type=submit]")
    await page.until("document.querySelector('h1').innerText === 'Work'")
    await page.until("document.getElementById('table').dataset.ready === 'true'")
    assert await page.evaluate("document.querySelectorAll('[data-head-cell]').length") > 1


async def test_the_history_of_a_record_is_read(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    listed = await person.call("GET", f"/v1/databases/{database_id}/records")
    tea = next(one["id"] for one in listed["records"] if one["title"] == "Tea")
    await person.call("PATCH", f"/v1/records/{tea}", {"data": {"price": 4}})
    await page.open(f"{person.home}/databases/{database_id}")
    await page.until("document.getElementById('table').dataset.ready === 'true'")
    await page.click(".cell[data-row='3'][data-key='title']")
    await page.press(" ")
    await page.until("document.querySelector('.beside [aria-label=History] del') !== null")
    change = await page.text(".beside [aria-label=History] .changes")
    assert change.split() == ["Price", "3", "→", "4"]


async def test_an_import_is_undone(page: Page, person: Person) -> None:
    await page.open(f"{person.home}/import")
    await page.evaluate(
        "(() => { const data = new DataTransfer();"
        " data.items.add(new File(['name,price\\nTea,3\\nMilk,1\\n'], 'Prices.csv'));"
        " document.dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true}));"
        " })()"
    )
    await page.until("document.querySelector('[name=label]') !== null")
    await page.click("form[action$='/start'] .primary")
    await page.until("document.querySelector('[data-status=succeeded]') !== null")
    await page.until("document.querySelector(\"form[action$='/undo'] button\") !== null")
    await page.click("form[action$='/undo'] button")
    await page.until("document.querySelector(\"form[action$='/undo']\") === null")
    path = await page.evaluate("location.href")

    async def is_undone() -> bool:
        await page.open(path)
        return "Undone" in await page.text("main")

    await eventually(is_undone, what="the import that is undone")


async def test_a_table_is_exported(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    await page.open(f"{person.home}/databases/{database_id}")
    await page.click(".more-actions summary")
    await page.click("[commandfor=export]")
    await page.until("document.querySelector('#export[open]') !== null")
    await page.click("#export button[type=submit]")
    await page.until("document.querySelector('a[download]') !== null")
    path = await page.evaluate("document.querySelector('a[download]').href")
    text = await page.evaluate(f"fetch({path!r}).then(answer => answer.text())")
    assert sorted(line.split(",")[0] for line in text.splitlines()[1:]) == [
        *("Milk", "Rice", "Salt", "Tea")
    ]


async def test_a_visitor_answers_a_public_form(page: Page, person: Person) -> None:
    database_id = await tasks(person)
    body = {"label": "Ask", "databaseId": database_id, "public": True, "title": "Tell us"}
    fields = [{"key": "title", "required": True}, {"key": "price"}]
    path = f"{person.space.path}/forms"
    form = await person.call("POST", path, {**body, "fields": fields})
    await page.open(f"{person.server.url}/forms/{form['itemId']}")
    await page.write("[name='field.title']", "Coffee")
    await page.write("[name='field.price']", "7")
    await page.click("button[type=submit]")
    await page.until("document.querySelector('form') === null")
    listed = await person.call("GET", f"/v1/databases/{database_id}/records")
    assert listed["records"][0]["data"] == {"title": "Coffee", "price": 7}
