"""The table of jobs as durable work, for what all such work shares."""

from models.core.lifecycle.commands import WorkTable
from models.messages.jobs.rules import JOB_LIFECYCLE
from models.messages.jobs.tables import job

JOBS = WorkTable(job, JOB_LIFECYCLE, family=job.c.family)
