"""The table of signing secrets."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, LargeBinary
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class WebhookSigningSecret(SQLModel, table=True):
    """A workspace's secret, sealed; made when it is first needed."""

    __tablename__ = "webhook_signing_secret"
    __table_args__ = (ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),)

    workspace_id: Id = Field(primary_key=True)
    sealed: bytes = Field(sa_type=LargeBinary)
    created_at: datetime = Field(sa_type=Timestamp)


webhook_signing_secret = table_of(WebhookSigningSecret)
