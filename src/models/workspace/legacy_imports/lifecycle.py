"""The table of runs of legacy imports as durable work, for what all such work shares."""

from models.core.lifecycle.commands import WorkTable
from models.workspace.legacy_imports.rules import RUN_LIFECYCLE
from models.workspace.legacy_imports.tables import legacy_import_run
from runtime.families import Family

LEGACY_IMPORTS = WorkTable(legacy_import_run, RUN_LIFECYCLE, family=Family.LEGACY_IMPORT)
