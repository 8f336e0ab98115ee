"""The tables of worker processes, and of the work that has ended."""

from datetime import datetime

from sqlalchemy import BigInteger, Identity, Text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class WorkerProcess(SQLModel, table=True):
    """A worker process that was there a short time ago; it says so again every few seconds."""

    __tablename__ = "worker_process"

    id: Id = Field(primary_key=True)
    host: str
    pid: int
    queues: list[str] = Field(sa_type=ARRAY(Text))
    started_at: datetime = Field(sa_type=Timestamp)
    seen_at: datetime = Field(sa_type=Timestamp)


class EndedWork(SQLModel, table=True):
    """A part of the number of ends of a kind of work with a status: the sum over its rows.

    A trigger of each table of durable work writes one with each end, so nothing is counted that
    did not happen, and no end waits for another; `commands.merge_ended_work` makes one row of them.
    """

    __tablename__ = "ended_work"

    id: int = Field(sa_type=BigInteger, sa_column_args=[Identity(always=True)], primary_key=True)
    kind: str
    status: str
    number: int = Field(sa_type=BigInteger)


ended_work = table_of(EndedWork)
worker_process = table_of(WorkerProcess)
