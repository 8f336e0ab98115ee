"""Tables of forms and of what was submitted through them."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.purging import Retention
from runtime.postgresql.schema import Timestamp, same_workspace, table_of

_ZERO = {"server_default": sa.text("0")}


class Form(SQLModel, table=True):
    """The target of an item of kind form; its answers become records of a database.

    `submission_count` is counted in the transaction of each submission, so that no two of them
    pass `max_submissions` together. The form acts in the name of its creator.
    """

    __tablename__ = "form"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("item_id", "item.id", ondelete="CASCADE"),
        same_workspace("database_id", "database.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        sa.Index("uq_form_item_id", "item_id", unique=True),
        sa.Index("ix_form_workspace_id_database_id", "workspace_id", "database_id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id
    database_id: Id
    title: str | None = None
    description: str | None = None
    fields: list[dict[str, Any]] = Field(sa_type=JSONB)
    submit_label: str
    confirmation: str
    public: bool
    accepting: bool
    closes_at: datetime | None = Field(default=None, sa_type=Timestamp)
    max_submissions: int | None = None
    submission_count: int = Field(default=0, sa_column_kwargs=_ZERO)
    version: int = Field(default=1, sa_column_kwargs={"server_default": sa.text("1")})
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class FormSubmission(SQLModel, table=True):
    """One answer, and the record it became."""

    __tablename__ = "form_submission"
    __table_args__ = (
        same_workspace("form_id", "form.id", ondelete="CASCADE"),
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        sa.Index(
            "ix_form_submission_workspace_id_form_id_created_at_id",
            "workspace_id",
            "form_id",
            "created_at",
            "id",
        ),
        sa.Index("ix_form_submission_workspace_id_record_id", "workspace_id", "record_id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    form_id: Id
    record_id: Id
    created_at: datetime = Field(sa_type=Timestamp)


class FormQuota(SQLModel, table=True):
    """A limit of submissions, by form and address: the moment at which it is full again.

    The address is a digest under the secret of the platform, empty for the limit of the form.
    """

    __tablename__ = "form_quota"
    __table_args__ = (
        same_workspace("form_id", "form.id", ondelete="CASCADE"),
        sa.Index("ix_form_quota_full_at", "full_at"),
    )

    form_id: Id = Field(primary_key=True)
    address: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    workspace_id: Id
    full_at: datetime = Field(sa_type=Timestamp)


form = table_of(Form)
form_submission = table_of(FormSubmission)
form_quota = table_of(FormQuota)

purge_quotas = Retention(form_quota, form_quota.c.full_at)
"""Limits that are full again."""
