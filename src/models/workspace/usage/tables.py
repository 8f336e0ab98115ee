"""The table of usage totals."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class UsageTotal(SQLModel, table=True):
    """The rows of one counter that a workspace made from the begin of `month` to `counted_until`.

    Rows made later are counted when the counter is read.
    """

    __tablename__ = "usage_total"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        Index("ix_usage_total_counted_until", "counted_until"),
    )

    workspace_id: Id = Field(primary_key=True)
    counter: str = Field(primary_key=True)
    month: datetime = Field(sa_type=Timestamp)
    number: int = Field(sa_type=BigInteger)
    counted_until: datetime = Field(sa_type=Timestamp)


usage_total = table_of(UsageTotal)
