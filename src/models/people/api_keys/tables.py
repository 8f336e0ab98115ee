"""The table of API keys; it holds a digest of the secret and never the secret."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class ApiKey(SQLModel, table=True):
    """A key acts as `bound_user_id` until it is revoked or expires.

    `digest_key` is the id of the secret key that its digest was made with.
    """

    __tablename__ = "api_key"
    __table_args__ = (
        UniqueConstraint("digest"),
        UniqueConstraint("workspace_id", "id"),
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        ForeignKeyConstraint(["bound_user_id"], ["app_user.id"]),
        ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        Index("ix_api_key_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    name: str
    prefix: str
    digest: bytes = Field(sa_type=BYTEA)
    digest_key: bytes | None = Field(default=None, sa_type=BYTEA)
    scopes: list[str] = Field(sa_type=ARRAY(Text))
    bound_user_id: Id
    created_by_user_id: Id
    last_used_at: datetime | None = Field(default=None, sa_type=Timestamp)
    expires_at: datetime | None = Field(default=None, sa_type=Timestamp)
    revoked_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


api_key = table_of(ApiKey)
