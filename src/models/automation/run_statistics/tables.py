"""Tables of the statistics of runs."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, SmallInteger
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, table_of


class EndedRun(SQLModel, table=True):
    """A run whose end is not yet part of the sums.

    A trigger of the runs writes it with the end, so nothing is counted that did not happen, and no
    run waits for a sum. It refers to nothing by a constraint: each end would pay for the look.
    """

    __tablename__ = "ended_run"
    __table_args__ = (Index("ix_ended_run_workspace_id", "workspace_id"),)

    run_id: Id = Field(primary_key=True)
    workspace_id: Id


class RunStatistic(SQLModel, table=True):
    """The runs of an automation that ended alike in a period; tests are not among them.

    Durations and times in the queue are in buckets of `rules`.
    """

    __tablename__ = "run_statistic"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        Index("ix_run_statistic_grain_start", "grain", "start"),
    )

    workspace_id: Id = Field(primary_key=True)
    grain: str = Field(primary_key=True)
    start: datetime = Field(sa_type=Timestamp, primary_key=True)
    automation_id: Id = Field(primary_key=True)
    status: str = Field(primary_key=True)
    duration: int = Field(sa_type=SmallInteger, primary_key=True)
    queueing: int = Field(sa_type=SmallInteger, primary_key=True)
    runs: int = Field(sa_type=BigInteger)


class FailureStatistic(SQLModel, table=True):
    """The failed runs of an automation in a period, by the node that failed and its error code."""

    __tablename__ = "failure_statistic"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        Index("ix_failure_statistic_grain_start", "grain", "start"),
    )

    workspace_id: Id = Field(primary_key=True)
    grain: str = Field(primary_key=True)
    start: datetime = Field(sa_type=Timestamp, primary_key=True)
    automation_id: Id = Field(primary_key=True)
    node_id: str = Field(primary_key=True)
    error_code: str = Field(primary_key=True)
    runs: int = Field(sa_type=BigInteger)


class AttributeCount(SQLModel, table=True):
    """The runs of the platform that ended with a value of an attribute that metrics count.

    The operator lists keys and values, so there are few rows, and none names a workspace.
    """

    __tablename__ = "attribute_count"

    key: str = Field(primary_key=True)
    value: str = Field(primary_key=True)
    status: str = Field(primary_key=True)
    runs: int = Field(sa_type=BigInteger)


ended_run = table_of(EndedRun)
run_statistic = table_of(RunStatistic)
failure_statistic = table_of(FailureStatistic)
attribute_count = table_of(AttributeCount)
