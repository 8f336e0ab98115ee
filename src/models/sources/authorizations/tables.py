"""The table of authorizations that wait for their users; it holds what is secret sealed only."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.crypto import sealed
from runtime.postgresql.schema import Timestamp, table_of


def secrets_place(authorization_id: Id) -> str:
    """The place that the sealed secrets of an authorization are bound to."""
    return f"oauth_authorization|{authorization_id}|sealed"


class OAuthAuthorization(SQLModel, table=True):
    """One user on the way to a provider and back.

    `connection_id` is that of the connection which is authorized anew. `sealed` holds the PKCE
    verifier, and after the user is back the code. `returned_at` is set once: a state is used once.
    """

    __tablename__ = "oauth_authorization"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.Index("ix_oauth_authorization_expires_at", "expires_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    user_id: Id
    provider: str
    connection_id: Id | None = None
    label: str
    shared: bool
    state_digest: bytes = Field(sa_type=sa.LargeBinary, unique=True)
    sealed: bytes = Field(
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: secrets_place(row.id), short_lived=True),
    )
    redirect_uri: str
    created_at: datetime = Field(sa_type=Timestamp)
    expires_at: datetime = Field(sa_type=Timestamp)
    returned_at: datetime | None = Field(default=None, sa_type=Timestamp)


oauth_authorization = table_of(OAuthAuthorization)
