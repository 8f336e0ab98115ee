"""The table of runs of actions as durable work, for what all such work shares."""

from models.automation.action_runs.rules import RUN_LIFECYCLE
from models.automation.action_runs.tables import action_run
from models.core.lifecycle.commands import WorkTable
from runtime.families import Family

ACTION_RUNS = WorkTable(
    action_run,
    RUN_LIFECYCLE,
    accepted_column="started_at",
    family=Family.ACTION_RUN,
)
