"""The table of share links; it holds a digest of the token and never the token."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class ShareLink(SQLModel, table=True):
    """Public access to one item; `use_count` counts the visits admitted by the token.

    `digest_key` is the id of the secret key that its digest was made with.
    """

    __tablename__ = "share_link"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("workspace_item_id", "item.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        sa.CheckConstraint("use_count >= 0 AND use_count <= max_uses", name="use_count"),
        sa.Index(
            "ix_share_link_workspace_id_workspace_item_id_created_at_id",
            "workspace_id",
            "workspace_item_id",
            "created_at",
            "id",
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    workspace_item_id: Id
    kind: str
    digest: bytes = Field(sa_type=BYTEA)
    digest_key: bytes | None = Field(default=None, sa_type=BYTEA)
    expires_at: datetime | None = Field(default=None, sa_type=Timestamp)
    max_uses: int | None = None
    use_count: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    allow_download: bool
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    revoked_at: datetime | None = Field(default=None, sa_type=Timestamp)


share_link = table_of(ShareLink)
