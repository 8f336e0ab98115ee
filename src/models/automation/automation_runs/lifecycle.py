"""The table of runs of automations as durable work, for what all such work shares."""

from models.automation.automation_runs.rules import RUN_LIFECYCLE
from models.automation.automation_runs.tables import automation_run
from models.core.lifecycle.commands import WorkTable
from runtime.families import Family

AUTOMATION_RUNS = WorkTable(automation_run, RUN_LIFECYCLE, family=Family.AUTOMATION_RUN)
