"""The table of workspace secrets; it holds sealed values only."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, LargeBinary
from sqlmodel import Field, SQLModel

from models.automation.secrets.rules import secret_place
from models.core.base import Id
from runtime.crypto import sealed
from runtime.postgresql.schema import Timestamp, table_of


class WorkspaceSecret(SQLModel, table=True):
    """A named value that outside nodes send. Only its name is shown."""

    __tablename__ = "workspace_secret"
    __table_args__ = (ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),)

    workspace_id: Id = Field(primary_key=True)
    name: str = Field(primary_key=True)
    sealed_value: bytes = Field(
        sa_type=LargeBinary,
        sa_column_kwargs=sealed(lambda row: secret_place(row.workspace_id, row.name)),
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


workspace_secret = table_of(WorkspaceSecret)
