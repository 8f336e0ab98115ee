"""The table of users; `user` itself is a reserved word of SQL."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint, func, text
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class AppUser(SQLModel, table=True):
    """One person, known by what one issuer calls them; the profile is the issuer's last word."""

    __tablename__ = "app_user"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Id = Field(primary_key=True)
    issuer: str
    subject: str
    email: str | None = None
    name: str | None = None
    platform_admin: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


app_user = table_of(AppUser)
Index("ix_app_user_email", func.lower(app_user.c.email))
