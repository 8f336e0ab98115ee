"""What the workers of a process look after, and what operators are shown of it."""

from typing import Any, cast

from cli.worker_activities import families_of
from models.core.lifecycle.commands import executed_tables
from models.tables import metadata


def test_operators_see_the_work_of_every_family() -> None:
    looked_after = {family.kind.table.name for family in families_of(cast("Any", None))}
    assert {kind.table.name for kind in executed_tables(metadata)} == looked_after
