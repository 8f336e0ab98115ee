"""Every scope guards something: an operation, or what an operation lets a caller do further."""

import re

import pytest

from models.core.access.rules import Scope
from tests.contract.interface_document import rows, section
from tests.contract.operations import operations

FURTHER = {
    Scope.TIME_ENTRIES_MANAGE: "other people's entries: tests/api/data/test_time_entries.py",
}
"""Scopes that no operation needs as a whole, and what they guard inside of one."""


def test_every_scope_guards_an_operation() -> None:
    assert len(Scope) == 49
    needed = {
        scope
        for one in operations()
        for scope in (*one.access["scopes"], *one.access.get("anyScope", ()))
    }
    assert {scope.value for scope in Scope} - needed - {scope.value for scope in FURTHER} == set()
    assert not FURTHER.keys() & needed, "an operation needs these now: take them off the list"


REQUIRED = {
    row["Operation"]: row["Required"]
    for row in rows(section("## Authentication"))
    if "Required" in row
}
ABOUT = {
    "Test-run, run now, run from node, restore version, cancel run (automations)": """
        test_run_automation run_automation run_automation_from_node restore_automation_version
        cancel_automation_run""",
    "Import form": "import_form",
    "Mount provider resource": "mount_resource",
    "Browse connection": "browse_connection",
    "Read resource by reference": "read_resource",
    "Duplicate database": "duplicate_database",
    "Create database from template": "create_database_from_template create_database_of_template",
    "List record templates": "list_record_templates",
    "Import spreadsheet": "import_spreadsheet",
    "Preview data source": "preview_data_source",
    "Get data source, list its runs": "get_data_source list_data_source_runs",
    "List action runs": "list_action_runs",
    "Run action": "run_action",
    "Run button action": "run_button",
    "Replace home layout": "replace_home_layout",
    "Seed from draft plan or starter template": "seed_from_draft seed_from_template",
    "Mint realtime ticket": "create_realtime_ticket",
    "Workspace notification list and mark-read; archive when restricted to a workspace": """
        list_notifications mark_notifications_read""",
    "List share links": "list_share_links",
}
"""The operations that each row of the interface's table of requirements is about."""
CHECKED_WITHIN = {"files:read"}
"""Scopes that a call needs for what its body names alone."""
LEVELS = ("view", "edit", "run")


def test_every_row_of_requirements_is_about_operations() -> None:
    assert REQUIRED.keys() == ABOUT.keys()


@pytest.mark.parametrize("title", ABOUT)
def test_an_operation_requires_what_the_interface_says(title: str) -> None:
    named = set(re.findall(r"\b[a-z_]+:[a-z]+\b", REQUIRED[title])) - CHECKED_WITHIN
    level = re.search(rf"\b({'|'.join(LEVELS)}) access", REQUIRED[title])
    for operation in (one for one in operations() if one.id in ABOUT[title].split()):
        access = operation.access
        assert named <= set(access["scopes"]), operation.id
        if level and operation.id != "run_button":
            assert access["itemLevel"] == level[1], operation.id
        if "session" in REQUIRED[title]:
            assert access["credential"] == "session"
