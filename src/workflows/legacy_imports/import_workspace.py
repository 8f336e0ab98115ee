"""One workspace of a legacy import run, stage after stage."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.legacy_imports.workspaces import WorkspaceActivities
    from runtime.families import Queue
    from workflows.policies import BUNDLE_TIMEOUT, HEARTBEAT_TIMEOUT, JOB_RETRY


@workflow.defn(name="ImportWorkspace")
class ImportWorkspace:
    """Do as the status of its run asks: check, import, verify or take back."""

    @workflow.run
    async def run(self, entry_id: str) -> str:
        """The stage that the workspace is in afterwards."""
        table = ["| Stage | Counts |", "|---|---|"]
        while True:
            reply = await workflow.execute_activity_method(
                WorkspaceActivities.work_on,
                entry_id,
                task_queue=Queue.BULK,
                summary=f"Stage {len(table) - 1}",
                start_to_close_timeout=BUNDLE_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=JOB_RETRY,
            )
            counts = ", ".join(f"{count:,} {name}" for name, count in sorted(reply.counts.items()))
            table.append(f"| {reply.stage} | {counts or '-'} |")
            workflow.set_current_details("\n".join(table))
            if reply.done:
                return reply.stage
