"""Every prepared statement can be written for the driver, and its plan holds as tables grow."""

import importlib
from collections.abc import Iterator, Mapping

import pytest

from runtime.database import libpq_url
from runtime.postgresql.statements import PreparedStatement
from tests.architecture.source import SRC, files
from tests.support.plans import numbered_parameters, planning_once, whole_scans
from tests.support.postgres import migrated_database

EMPTIED = ("outbox", "trigger_event", "debounced_change", "webhook_receipt", "job", "delivery")
"""Tables that work fills and empties. PostgreSQL may know for a while that they have no rows."""
READ_WHOLE = {
    # Open work alone, for the number that is under way.
    ("activities.outbox.claims._CLAIM", "ix_action_run_open_workspace_id"),
    ("activities.outbox.claims._CLAIM", "ix_job_open_line"),
    ("models.messages.deliveries.lines._NEXT", "ix_delivery_open_target_id"),
    # As far as the first row that is due.
    ("models.automation.triggers.dispatch._DUE", "trigger_event"),
    # They have a few rows.
    ("models.core.lifecycle.lost_workers._SUSPECTED", "work_suspect"),
    ("models.workspace.system._BEAT", "worker_process"),
}
"""The statements that may read an index, or a table, from end to end."""


def _statements() -> Iterator[tuple[str, PreparedStatement]]:
    """The statements that modules of ours bind, by name or in a mapping, with their names."""
    for path in files():
        if "PreparedStatement(" in path.read_text("utf-8"):
            module = ".".join(path.relative_to(SRC).with_suffix("").parts)
            for name, value in vars(importlib.import_module(module)).items():
                for one in value.values() if isinstance(value, Mapping) else [value]:
                    if isinstance(one, PreparedStatement):
                        yield f"{module}.{name}", one


def test_every_prepared_statement_compiles() -> None:
    statements = list(_statements())
    assert len(statements) > 50
    for _, statement in statements:
        assert statement._compiled.text


@pytest.mark.long
async def test_no_statement_that_was_planned_early_reads_whole_tables() -> None:
    """Connections keep a plan until statistics are renewed, up to a minute later."""
    whole = set()
    with migrated_database("early") as url:
        async with planning_once(libpq_url(url)) as connection:
            for table in EMPTIED:
                await connection.execute(f"VACUUM ANALYZE {table}")
            for name, statement in _statements():
                explain = (
                    f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered_parameters(statement.text)}"
                )
                ((plan,),) = await (await connection.execute(explain)).fetchall()
                whole |= {(name, scan) for scan in whole_scans(plan[0]["Plan"])}
    assert whole == READ_WHOLE
