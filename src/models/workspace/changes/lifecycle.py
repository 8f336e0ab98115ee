"""The table of change sets as durable work, for what all such work shares."""

from models.core.lifecycle.commands import WorkTable
from models.workspace.changes.rules.status import CHANGE_LIFECYCLE
from models.workspace.changes.tables import change_set

CHANGE_SETS = WorkTable(change_set, CHANGE_LIFECYCLE)
