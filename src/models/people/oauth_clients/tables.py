"""The table of choices."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class OauthClientChoice(SQLModel, table=True):
    """The workspace that a user last chose for a client."""

    __tablename__ = "oauth_client_choice"
    __table_args__ = (
        ForeignKeyConstraint(["user_id"], ["app_user.id"], ondelete="CASCADE"),
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"], ondelete="CASCADE"),
        Index("ix_oauth_client_choice_workspace_id", "workspace_id"),
    )

    user_id: Id = Field(primary_key=True)
    oauth_client_id: str = Field(primary_key=True)
    workspace_id: Id
    updated_at: datetime = Field(sa_type=Timestamp)


oauth_client_choice = table_of(OauthClientChoice)
