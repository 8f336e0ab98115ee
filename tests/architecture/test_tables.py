"""A resource's tables are its own: the imports by others are listed, and the list only shrinks."""

import ast
from collections import Counter

import pytest

from tests.architecture.private_tables import (
    IMPORTS,
    LISTED,
    faults,
    found,
    imported_tables,
    tables_of,
)


def test_tables_are_imported_by_their_noun_or_listed() -> None:
    assert faults(found()) == []


def test_a_new_pair_and_a_spare_line_are_seen() -> None:
    counted = Counter(dict.fromkeys(LISTED, 1))
    spare = next(iter(LISTED))
    del counted[spare]
    counted["data.forms", "data.fields"] += IMPORTS - counted.total()
    assert faults(counted) == [
        f"{spare[0]} -> {spare[1]}: take it off",
        "data.forms -> data.fields: is not listed",
    ]


def test_a_table_is_known_in_any_module_of_its_noun() -> None:
    assert tables_of("people.users") == {"AppUser", "app_user"}
    assert {"Job", "job"} == tables_of("messages.jobs")


@pytest.mark.parametrize(
    ("source", "resources"),
    [
        ("from models.people.users import app_user", {"people.users"}),
        ("from models.people import users\nusers.app_user.c.id", {"people.users"}),
        ("import models.people.users\nmodels.people.users.AppUser", {"people.users"}),
        ("from models.people.users import USER, user_of", set()),
        ("from models.messages.jobs import tables", {"messages.jobs"}),
        ("from models.messages.jobs.store import job", {"messages.jobs"}),
        (
            "from models.automation.automation_runs.tables import IS_OPEN",
            {"automation.automation_runs"},
        ),
        ("from models.messages.jobs.store import JOBS", set()),
        ("from models.automation.automation_runs.tables import purge_runs", set()),
    ],
)
def test_an_import_is_judged_by_its_name(source: str, resources: set[str]) -> None:
    assert set(imported_tables(ast.parse(source))) == resources
