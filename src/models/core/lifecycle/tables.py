"""The table of work that may be what its worker was lost with."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, table_of


class WorkSuspect(SQLModel, table=True):
    """Work that was open when a worker started: the worker before it may have been lost with it.

    `lost` counts the workers that it was executed by and that gave no report of it; `held_by` is
    the process that executes it now, as `host:pid`. Quarantined work is executed in a process of
    its own.
    """

    __tablename__ = "work_suspect"
    __table_args__ = (Index("ix_work_suspect_suspected_at", "suspected_at"),)

    id: Id = Field(primary_key=True)
    lost: int
    suspected_at: datetime = Field(sa_type=Timestamp)
    held_by: str | None = None
    quarantined_at: datetime | None = Field(default=None, sa_type=Timestamp)


work_suspect = table_of(WorkSuspect)
