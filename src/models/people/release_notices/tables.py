"""The tables of release notices and of how far users have read them."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKeyConstraint, Identity, Index
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.people.release_notices.rules import ReleaseChannel
from runtime.schema import Timestamp, one_of, table_of


class ReleaseNotice(SQLModel, table=True):
    """News on one channel; `number` grows in the order in which notices were published."""

    __tablename__ = "release_notice"
    __table_args__ = (
        ForeignKeyConstraint(["published_by_user_id"], ["app_user.id"]),
        one_of("channel", ReleaseChannel),
        Index("uq_release_notice_channel_number", "channel", "number", unique=True),
    )

    id: Id = Field(primary_key=True)
    number: int = Field(sa_type=BigInteger, sa_column_args=[Identity(always=True)])
    channel: str
    title: str
    body: str
    url: str | None = None
    published_by_user_id: Id
    published_at: datetime = Field(sa_type=Timestamp)


class ReleaseWatermark(SQLModel, table=True):
    """The last notice that a user has seen on a channel."""

    __tablename__ = "release_watermark"
    __table_args__ = (
        ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        ForeignKeyConstraint(["release_id"], ["release_notice.id"]),
        one_of("channel", ReleaseChannel),
        Index("ix_release_watermark_release_id", "release_id"),
    )

    user_id: Id = Field(primary_key=True)
    channel: str = Field(primary_key=True)
    release_id: Id
    number: int = Field(sa_type=BigInteger)
    updated_at: datetime = Field(sa_type=Timestamp)


release_notice = table_of(ReleaseNotice)
release_watermark = table_of(ReleaseWatermark)
