"""The workflow of one import of a spreadsheet."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.data_source_runs.bringing_in import bring_in


@workflow.defn(name="SpreadsheetImport")
class SpreadsheetImport:
    """One run; the argument is its id. Nothing of it is visible before all of it is."""

    @workflow.run
    async def run(self, run_id: str) -> str:
        return await bring_in(run_id, "The import")
