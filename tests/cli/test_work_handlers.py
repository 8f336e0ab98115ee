"""The list of handlers is whole, and their tables have what all durable work needs."""

import subprocess
import sys

import pytest
from sqlalchemy import Table

from activities.schedules import SCHEDULES
from cli.work_handlers.registry import HANDLERS, ROUTES, tables_of
from runtime.temporal.workflow_kinds import WorkflowKind

LISTING = """
from models.core.lifecycle.commands import executed_tables
from models.tables import metadata
print(*(kind.table.name for kind in executed_tables(metadata)))
"""
_TABLES = tables_of(HANDLERS)


def test_every_name_has_a_workflow() -> None:
    sweeps = {WorkflowKind.MAINTENANCE, WorkflowKind.RETENTION}
    assert {*ROUTES, *SCHEDULES, *sweeps} == set(WorkflowKind)


def test_work_that_may_run_at_once_is_counted_in_the_table_of_a_handler() -> None:
    bounded = [kind for name, kind in _TABLES.items() if name.bounds.running is not None]
    assert [kind.table.name for kind in bounded if not kind.takes_places] == [], (
        "the table of a handler with a bound needs a column dispatched_at"
    )


def test_no_count_of_what_runs_reads_what_has_ended() -> None:
    counted = {kind.table for kind in _TABLES.values() if kind.takes_places}
    assert [table.name for table in counted if not _has_index_of_places(table)] == [], (
        "the table needs indexes_of_work"
    )


def _has_index_of_places(table: Table) -> bool:
    conditions = (index.dialect_options["postgresql"]["where"] for index in table.indexes)
    return any("dispatched_at IS NOT NULL AND status IN" in str(one) for one in conditions)


@pytest.mark.long
def test_a_process_that_knows_the_tables_alone_sees_the_work_of_every_handler() -> None:
    """The outbox and the overview of operators ask the metadata; here nothing else is imported."""
    command = [sys.executable, "-c", LISTING]
    seen = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert seen == sorted({kind.table.name for kind in _TABLES.values()})
