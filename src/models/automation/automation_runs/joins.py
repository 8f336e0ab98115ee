"""Parts of statements about runs, for nouns whose rows name one."""

from sqlalchemy import ColumnElement, FromClause

from models.automation.automation_runs.tables import automation_run
from models.core.base import Id

RUN = automation_run.c
"""The columns of runs that `run_of` joins."""


def run_of(run_id: ColumnElement[Id]) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the run that a column names: `select(…).join(*run_of(noun.c.run_id))`."""
    # By id alone: the primary key finds one, whatever PostgreSQL believes of a workspace's runs.
    return automation_run, RUN.id == run_id
