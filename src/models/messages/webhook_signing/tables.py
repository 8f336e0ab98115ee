"""The table of signing secrets."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, LargeBinary
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.messages.webhook_signing.rules import secret_place
from runtime.schema import Timestamp, table_of
from runtime.sealed_columns import sealed


class WebhookSigningSecret(SQLModel, table=True):
    """A workspace's secret, sealed; made when it is first needed."""

    __tablename__ = "webhook_signing_secret"
    __table_args__ = (ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),)

    workspace_id: Id = Field(primary_key=True)
    sealed: bytes = Field(
        sa_type=LargeBinary, sa_column_kwargs=sealed(lambda row: secret_place(row.workspace_id))
    )
    created_at: datetime = Field(sa_type=Timestamp)


webhook_signing_secret = table_of(WebhookSigningSecret)
