"""Parts of statements about runs, for nouns whose rows name one."""

from sqlalchemy import ColumnElement, FromClause, and_

from models.automation.automation_runs.tables import automation_run
from models.core.base import Id

RUN = automation_run.c
"""The columns of runs that `run_of` joins."""


def run_of(
    workspace_id: ColumnElement[Id] | Id, run_id: ColumnElement[Id]
) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the run that a column names."""
    return automation_run, and_(RUN.workspace_id == workspace_id, RUN.id == run_id)
