"""Every scope guards something: an operation, or what an operation lets a caller do further."""

from models.core.access.rules import Scope
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
