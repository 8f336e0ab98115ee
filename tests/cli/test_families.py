"""The list of families is whole: the names that commands know, and the tables of the models."""

import subprocess
import sys

import pytest

from activities.schedules.families import SCHEDULES
from cli.families.registry import FAMILIES, ROUTES, tables_of
from runtime.families import Family

LISTING = """
from models.core.lifecycle.commands import executed_tables
from models.tables import metadata
print(*(kind.table.name for kind in executed_tables(metadata)))
"""


def test_every_name_has_a_workflow() -> None:
    sweeps = {Family.MAINTENANCE, Family.RETENTION}
    assert {*ROUTES, *SCHEDULES, *sweeps} == set(Family)


@pytest.mark.long
def test_a_process_that_knows_the_tables_alone_sees_the_work_of_every_family() -> None:
    """The outbox and the overview of operators ask the metadata; here nothing else is imported."""
    command = [sys.executable, "-c", LISTING]
    seen = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert seen == sorted({kind.table.name for kind in tables_of(FAMILIES).values()})
