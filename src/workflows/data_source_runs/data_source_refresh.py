"""The workflow of one refresh of a data source."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.data_source_runs.execution import execute


@workflow.defn(name="DataSourceRefresh")
class DataSourceRefresh:
    """One run; the argument is its id. Nothing of it is visible before all of it is."""

    @workflow.run
    async def run(self, run_id: str) -> str:
        return await execute(run_id, "The refresh")
