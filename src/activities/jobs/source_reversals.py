"""Jobs that take back what a run of a data source wrote."""

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.messages.jobs.queries import job_actor
from models.messages.jobs.rows import JobRow
from models.sources.data_source_runs.commands.reversal import revert_run
from runtime.database import UnitOfWork


class SourceReversals(Chunks):
    """One chunk: nobody sees half of what is taken back."""

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        await revert_run(work, await job_actor(work, job), job.subject_id)
        return None
