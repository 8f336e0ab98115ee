"""The table of operations as durable work, for what all such work shares."""

from models.automation.run_operations.rules import OPERATION_LIFECYCLE
from models.automation.run_operations.tables import run_operation
from models.core.lifecycle.commands import WorkTable
from runtime.families import Family

RUN_OPERATIONS = WorkTable(run_operation, OPERATION_LIFECYCLE, family=Family.RUN_OPERATION)
