"""The table of runs of data sources as durable work, for what all such work shares."""

from sqlalchemy import case

from models.core.lifecycle.commands import WorkTable
from models.sources.data_source_runs.rules import RUN_LIFECYCLE
from models.sources.data_source_runs.tables import data_source_run
from runtime.families import Family

DATA_SOURCE_RUNS = WorkTable(
    data_source_run,
    RUN_LIFECYCLE,
    family=case(
        (data_source_run.c.data_source_id.is_(None), Family.SPREADSHEET_IMPORT.value),
        else_=Family.DATA_SOURCE_REFRESH.value,
    ),
)
