"""The store of tickets."""

from datetime import datetime

from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class RealtimeTicket(SQLModel, table=True):
    """A ticket that nobody has used, by the digest of it.

    The table is unlogged: it is not on standbys, and empty after a crash, when clients mint again.
    `session_expires_at` is when the session it was minted with ends, and so does the connection.
    """

    __tablename__ = "realtime_ticket"
    __table_args__ = ({"prefixes": ["UNLOGGED"]},)

    digest: bytes = Field(sa_type=BYTEA, primary_key=True)
    workspace_id: Id
    user_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)
    session_expires_at: datetime = Field(sa_type=Timestamp)


realtime_ticket = table_of(RealtimeTicket)
