"""The tables of sessions and of links to sign in. Both hold digests, never a token."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class BrowserSession(SQLModel, table=True):
    """A person who is signed in with one browser, by the digest of the cookie's token.

    It holds until `expires_at`, unless it is idle for too long before (`rules.IDLE`).
    """

    __tablename__ = "browser_session"
    __table_args__ = (
        ForeignKeyConstraint(["user_id"], ["app_user.id"], ondelete="CASCADE"),
        Index("ix_browser_session_user_id", "user_id"),
        Index("ix_browser_session_last_used_at", "last_used_at"),
    )

    digest: bytes = Field(sa_type=BYTEA, primary_key=True)
    user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    last_used_at: datetime = Field(sa_type=Timestamp)
    expires_at: datetime = Field(sa_type=Timestamp)


class SignInLink(SQLModel, table=True):
    """A link that signs one person in, once, until it expires."""

    __tablename__ = "sign_in_link"
    __table_args__ = (
        ForeignKeyConstraint(["user_id"], ["app_user.id"], ondelete="CASCADE"),
        Index("ix_sign_in_link_user_id", "user_id"),
        Index("ix_sign_in_link_expires_at", "expires_at"),
    )

    digest: bytes = Field(sa_type=BYTEA, primary_key=True)
    user_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)


browser_session = table_of(BrowserSession)
sign_in_link = table_of(SignInLink)
