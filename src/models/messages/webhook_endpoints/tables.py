"""The table of webhook endpoints; it holds secrets sealed only."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, LargeBinary, Text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.bounds import Bound
from models.core.repository import Repository
from models.messages.webhook_endpoints.rules import DisabledReason, secret_place
from runtime.crypto import sealed
from runtime.postgresql.schema import Timestamp, one_of, partial_index, table_of


class WebhookEndpoint(SQLModel, table=True):
    """A server that is told of events; without `event_types` of all of them.

    Events up to `log_position` have become deliveries. `failing_since` is the first failure after
    the last success.
    """

    __tablename__ = "webhook_endpoint"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("disabled_reason", DisabledReason),
        Index("ix_webhook_endpoint_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        partial_index("ix_webhook_endpoint_enabled", "workspace_id", where="enabled"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    url: str
    description: str | None = None
    event_types: list[str] = Field(sa_type=ARRAY(Text))
    enabled: bool
    disabled_at: datetime | None = Field(default=None, sa_type=Timestamp)
    disabled_reason: str | None = None
    failing_since: datetime | None = Field(default=None, sa_type=Timestamp)
    sealed_secret: bytes = Field(
        sa_type=LargeBinary, sa_column_kwargs=sealed(lambda row: secret_place(row.id))
    )
    sealed_previous_secret: bytes | None = Field(
        default=None, sa_type=LargeBinary, sa_column_kwargs=sealed(lambda row: secret_place(row.id))
    )
    previous_secret_until: datetime | None = Field(default=None, sa_type=Timestamp)
    log_position: int = Field(sa_type=BigInteger)
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


webhook_endpoint = table_of(WebhookEndpoint)

ENDPOINTS = Repository(
    "endpoint",
    webhook_endpoint,
    WebhookEndpoint,
    limit=Bound(webhook_endpoint, 50, "endpoints"),
)
