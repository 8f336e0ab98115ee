"""The table of secret keys; it holds their ids, which say nothing of the keys."""

from datetime import datetime

from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from runtime.schema import Timestamp, table_of


class SecretKey(SQLModel, table=True):
    """A key under which processes write, or wrote, and `since` when.

    The one with the highest `position` is the newest. A row is removed after its key was taken out
    of the configuration and nothing is left under it.
    """

    __tablename__ = "secret_key"

    id: bytes = Field(primary_key=True, sa_type=BYTEA)
    position: int = Field(unique=True)
    since: datetime = Field(sa_type=Timestamp)


secret_key = table_of(SecretKey)
