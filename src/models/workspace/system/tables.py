"""The table of worker processes."""

from datetime import datetime

from sqlalchemy import Text
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


worker_process = table_of(WorkerProcess)
