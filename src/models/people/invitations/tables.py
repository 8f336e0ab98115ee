"""The table of invitations; it holds a digest of the token and never the token."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.access.rules import Role
from models.core.base import Id
from runtime.schema import Timestamp, one_of, partial_index, table_of


class Invitation(SQLModel, table=True):
    """An invitation is open until it is accepted, revoked or past its expiry.

    `email` is in lower case; one person has one open invitation to a workspace.
    """

    __tablename__ = "invitation"
    __table_args__ = (
        UniqueConstraint("digest"),
        UniqueConstraint("workspace_id", "id"),
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        ForeignKeyConstraint(["invited_by_user_id"], ["app_user.id"]),
        one_of("role", Role),
        Index("ix_invitation_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        partial_index(
            "uq_invitation_workspace_id_email_open",
            "workspace_id",
            "email",
            where="accepted_at IS NULL AND revoked_at IS NULL",
            unique=True,
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    email: str
    role: str
    digest: bytes = Field(sa_type=BYTEA)
    invited_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    expires_at: datetime = Field(sa_type=Timestamp)
    accepted_at: datetime | None = Field(default=None, sa_type=Timestamp)
    revoked_at: datetime | None = Field(default=None, sa_type=Timestamp)


invitation = table_of(Invitation)
