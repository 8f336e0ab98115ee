"""The table of model settings; it holds the key of the endpoint sealed only."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, LargeBinary
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of
from runtime.sealed_columns import sealed


def key_place(workspace_id: Id) -> str:
    """The place that the sealed key is bound to."""
    return f"model_settings|{workspace_id}|sealed_api_key"


class ModelSettings(SQLModel, table=True):
    """The model of one workspace: an endpoint that speaks as OpenAI's does."""

    __tablename__ = "model_settings"
    __table_args__ = (ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),)

    workspace_id: Id = Field(primary_key=True)
    base_url: str
    model: str
    sealed_api_key: bytes | None = Field(
        default=None,
        sa_type=LargeBinary,
        sa_column_kwargs=sealed(lambda row: key_place(row.workspace_id)),
    )
    enabled: bool
    timeout_seconds: int
    updated_by_user_id: Id
    updated_at: datetime = Field(sa_type=Timestamp)


model_settings = table_of(ModelSettings)
