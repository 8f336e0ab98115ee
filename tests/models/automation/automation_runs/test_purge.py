"""Runs that ended long ago are forgotten; what they executed is not."""

from models.automation.automation_runs.tables import automation_run, purge_runs
from models.tables import metadata
from runtime.derived_ids import derived_id
from tests.support.ageing import ago, ids_of, make_automation, old_run, purged, rows_of
from tests.support.spaces import Space


async def test_only_runs_that_ended_long_ago_are_purged(space: Space, foreign: Space) -> None:
    version = await make_automation(space)
    before = await rows_of(space)
    kept = {
        await old_run(space, version, 89),
        await old_run(space, version, 89, accepted=91),
        *[await old_run(space, version, 91, status) for status in ("queued", "running", "waiting")],
    }
    for status in ("succeeded", "failed", "cancelled", "timed_out"):
        await old_run(space, version, 91, status)
    theirs = await old_run(foreign, await make_automation(foreign), 89)
    await purged(space.database, purge_runs, ago(90))
    assert await ids_of(space, automation_run) == kept
    assert await ids_of(foreign, automation_run) == {theirs}
    after = await rows_of(space)
    nodes = {"automation_run": 5, "node_run": 5, "node_run_attempt": 5}
    assert after == {**before, **nodes}
    assert await purged(space.database, purge_runs, ago(90)) == 0


async def test_one_purge_deletes_a_bounded_number_of_rows(space: Space) -> None:
    await purged(space.database, purge_runs, ago(90))
    version = await make_automation(space)
    before = await rows_of(space)
    for _ in range(4):
        await old_run(space, version, 91)
    assert await purged(space.database, purge_runs, ago(90), limit=2) == 12
    assert await rows_of(space) == before


async def test_ids_derived_from_what_asked_for_a_run_go_like_others(space: Space) -> None:
    version = await make_automation(space)
    for number in range(3):
        await old_run(space, version, 91, run_id=derived_id("purge", space.id, number))
    await purged(space.database, purge_runs, ago(90))
    assert await ids_of(space, automation_run) == set()


def test_every_table_of_a_run_refers_to_the_run() -> None:
    """So that the purge finds it. What tells of a run to others outlives it."""
    untied = {
        table.name
        for table in metadata.sorted_tables
        if "run_id" in table.c
        and not {"automation_run", "node_run", "action_run"}
        & {key.referred_table.name for key in table.foreign_key_constraints}
    }
    of_imports = {"source_row", "staged_row", "imported_resource", "data_source_run_rejection"}
    of_imports |= {"import_id_map", "legacy_import_workspace"}
    assert untied - of_imports <= {
        *("notification", "record_change", "run_operation_result", "webhook_receipt"),
        *("ended_run", "ungrouped_failure", "incident_run", "alert_firing", "inbox_outcome"),
    }
