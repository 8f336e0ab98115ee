"""Deleting what units did in experiments that were archived long enough ago."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, literal_column, select

from models.core.purging import MAX_ROWS
from models.people.experiments.rules import ExperimentStatus
from models.people.experiments.tables import experiment, experiment_unit
from runtime.database import UnitOfWork


async def purge_units(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove units of experiments that were archived before a moment; the experiments stay.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    over = select(experiment.c.id).where(
        experiment.c.status == ExperimentStatus.ARCHIVED, experiment.c.updated_at < before
    )
    row: ColumnElement[Any] = literal_column("experiment_unit.ctid")
    theirs = experiment_unit.c.experiment_id.in_(over)
    some = select(row).select_from(experiment_unit).where(theirs).limit(limit).correlate(None)
    return (await work.execute(delete(experiment_unit).where(row.in_(some)))).rowcount
