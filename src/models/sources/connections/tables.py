"""The table of connections; it holds credentials sealed only."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.sources.connections.providers import ProviderName
from runtime.crypto import sealed
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of


def credentials_place(connection_id: Id) -> str:
    """The place that the sealed credentials of a connection are bound to."""
    return f"connection|{connection_id}|sealed_credentials"


class Connection(SQLModel, table=True):
    """A connection to a provider. It is its maker's own until it is shared with the workspace."""

    __tablename__ = "connection"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("provider", ProviderName),
        sa.Index("ix_connection_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    provider: str
    label: str
    config: dict[str, Any] = Field(sa_type=JSONB)
    sealed_credentials: bytes = Field(
        sa_type=sa.LargeBinary, sa_column_kwargs=sealed(lambda row: credentials_place(row.id))
    )
    shared: bool
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class ProviderSwitch(SQLModel, table=True):
    """A provider that was switched off, or on again; the others are on."""

    __tablename__ = "provider_switch"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], ondelete="CASCADE"),
    )

    workspace_id: Id = Field(primary_key=True)
    provider: str = Field(primary_key=True)
    enabled: bool
    updated_at: datetime = Field(sa_type=Timestamp)


class FailingConnection(SQLModel, table=True):
    """A connection whose last calls failed, with their number; a success removes the row."""

    __tablename__ = "failing_connection"
    __table_args__ = (same_workspace("connection_id", "connection.id", ondelete="CASCADE"),)

    connection_id: Id = Field(primary_key=True)
    workspace_id: Id
    failures: int = Field(sa_type=sa.BigInteger)
    failing_since: datetime = Field(sa_type=Timestamp)
    failed_at: datetime = Field(sa_type=Timestamp)
    message: str


connection = table_of(Connection)
provider_switch = table_of(ProviderSwitch)
failing_connection = table_of(FailingConnection)
