"""The table of logged requests."""

from datetime import datetime

from sqlalchemy import Index, text
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of

IS_CHANGE = text("method NOT IN ('GET', 'HEAD', 'OPTIONS')")
"""The calls whose methods are not safe (RFC 9110, 9.2.1)."""


class RequestLog(SQLModel, table=True):
    """One call. It has no foreign keys: it outlives what it names, and never blocks a call."""

    __tablename__ = "request_log"
    __table_args__ = (
        Index("ix_request_log_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        Index("ix_request_log_created_at", "created_at"),
        Index(
            "ix_request_log_changes",
            *("workspace_id", "created_at", "id"),
            postgresql_where=IS_CHANGE,
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id | None = None
    principal_type: str
    principal_id: Id
    api_key_id: Id | None = None
    method: str
    path: str
    status: int
    idempotency_key: str | None = None
    error: str | None = None
    duration_ms: float
    created_at: datetime = Field(sa_type=Timestamp)


request_log = table_of(RequestLog)
