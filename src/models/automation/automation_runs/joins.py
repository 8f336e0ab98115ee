"""Parts of statements about runs, for nouns whose rows name one."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, exists, select

from models.automation.automation_runs.rules import NodeStatus, RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id

RUN = automation_run.c
"""The columns of runs that `run_of` joins."""
REPLAY = automation_run.alias("replay_run").c
"""The columns of runs beside those, which `is_replay_of` speaks of."""


def run_of(run_id: ColumnElement[Id]) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the run that a column names: `select(…).join(*run_of(noun.c.run_id))`."""
    # By id alone: the primary key finds one, whatever PostgreSQL believes of a workspace's runs.
    return automation_run, RUN.id == run_id


def failed_node_of(run_id: ColumnElement[Id]) -> Select[Any]:
    """The node that failed last in the run that a column names, with its error and code."""
    return (
        select(node_run.c.node_id, node_run.c.error_code, node_run.c.error)
        .where(node_run.c.run_id == run_id, node_run.c.status == NodeStatus.FAILED)
        .order_by(node_run.c.completed_at.desc(), node_run.c.node_id)
        .limit(1)
    )


def is_replay_of(run_id: ColumnElement[Id]) -> ColumnElement[bool]:
    """The condition that the run in `REPLAY` retries the run that a column names."""
    return and_(REPLAY.replay_of_run_id == run_id, REPLAY.source == RunSource.REPLAY)


def succeeded_at(run: FromClause, node_id: str | None) -> ColumnElement[bool]:
    """The condition that a run succeeded at a node; without one, that the run itself did."""
    if node_id is None:
        return run.c.status == RunStatus.SUCCEEDED
    return exists().where(
        node_run.c.run_id == run.c.id,
        node_run.c.node_id == node_id,
        node_run.c.status == NodeStatus.SUCCEEDED,
    )
