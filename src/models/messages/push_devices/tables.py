"""The table of push devices; it holds tokens sealed only."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, LargeBinary
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.messages.push_devices.rules import PushPlatform, PushProvider, token_place
from runtime.schema import Timestamp, one_of, table_of
from runtime.sealed_columns import sealed


class PushDevice(SQLModel, table=True):
    """An active registration; one that is revoked is deleted, and its token with it."""

    __tablename__ = "push_device"
    __table_args__ = (
        ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        one_of("platform", PushPlatform),
        one_of("provider", PushProvider),
        Index("uq_push_device_installation_id", "installation_id", unique=True),
        Index("uq_push_device_token_digest", "token_digest", unique=True),
        Index("ix_push_device_user_id", "user_id", "registered_at", "id"),
    )

    id: Id = Field(primary_key=True)
    user_id: Id
    installation_id: str
    platform: str
    provider: str
    token_digest: bytes = Field(sa_type=LargeBinary)
    sealed_token: bytes = Field(
        sa_type=LargeBinary,
        sa_column_kwargs=sealed(lambda row: token_place(row.id), digest="token_digest"),
    )
    app_version: str | None = None
    locale: str | None = None
    registered_at: datetime = Field(sa_type=Timestamp)


push_device = table_of(PushDevice)
