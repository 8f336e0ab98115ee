"""The list of families is whole: names, tables and activities that operators and workers know."""

from activities.schedules.families import SCHEDULES
from cli.families.registry import FAMILIES, ROUTES, tables_of
from models.core.lifecycle.commands import executed_tables
from models.tables import metadata
from runtime.families import Family


def test_every_name_has_a_workflow() -> None:
    sweeps = {Family.MAINTENANCE, Family.RETENTION}
    assert {*ROUTES, *SCHEDULES, *sweeps} == set(Family)


def test_operators_see_the_work_of_every_family() -> None:
    tables = {kind.table.name for kind in tables_of(FAMILIES).values()}
    assert {kind.table.name for kind in executed_tables(metadata)} == tables
