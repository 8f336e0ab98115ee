"""The tables of records and of their side index."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of

_ByCodePoint = sa.Text(collation="C")


class Record(SQLModel, table=True):
    """A record: `data` maps field keys to values; the title lives in its own column alone.

    `computed` maps keys of computed fields to what last followed from other values; a key without a
    value is left out. `number` is set when the database has an auto_number field.

    A record that nothing changed is what was created: its creation is read from it, and
    `creation_principal_type`, `creation_run_id` and `creation_node_id` say who wrote. They are
    empty where the history is written (ADR 0117).
    """

    __tablename__ = "record"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("database_id", "database.id"),
        sa.CheckConstraint("jsonb_typeof(data) = 'object'", name="data_is_object"),
        sa.CheckConstraint("NOT data ? 'title'", name="title_has_its_column"),
        sa.Index(
            "ix_record_workspace_id_database_id_archived_created_at_id",
            "workspace_id",
            "database_id",
            "archived",
            "created_at",
            "id",
            postgresql_where=sa.text("deleted_at IS NULL"),
        ),
        partial_index("ix_record_trash", "deleted_at", "id", where="deleted_at IS NOT NULL"),
        partial_index(
            "ix_record_creation_run_id",
            *("creation_run_id", "id"),
            where="creation_run_id IS NOT NULL",
        ),
        # For those who go through all records of a database, the trash included.
        sa.Index("ix_record_workspace_id_database_id_id", "workspace_id", "database_id", "id"),
        # Most changes move no indexed column: with room on its page a record is written in place.
        {"postgresql_with": {"fillfactor": 85}},
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    database_id: Id
    content_surface_id: Id | None = None
    title: str
    data: dict[str, Any] = Field(sa_type=JSONB)
    computed: dict[str, Any] = Field(
        sa_type=JSONB, sa_column_kwargs={"server_default": sa.text("'{}'::jsonb")}
    )
    number: int | None = Field(default=None, sa_type=sa.BigInteger)
    archived: bool
    created_by_user_id: Id | None = None
    updated_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)
    creation_principal_type: str | None = None
    creation_run_id: Id | None = None
    creation_node_id: str | None = None


class RecordIndex(SQLModel, table=True):
    """One value of one record in an order a btree can serve; `index_id` names the field's index.

    An entry without a value is a record whose field is empty. Entries follow the values alone:
    whether a record is archived or in the trash is asked of the record.
    """

    __tablename__ = "record_index"
    __table_args__ = (
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        sa.Index(
            "ix_record_index_number",
            *("workspace_id", "index_id", "number", "record_id"),
            postgresql_where=sa.text("number IS NOT NULL"),
        ),
        sa.Index(
            "ix_record_index_text",
            *("workspace_id", "index_id", "text", "record_id"),
            postgresql_where=sa.text("text IS NOT NULL"),
        ),
        sa.Index(
            "ix_record_index_folded",
            *("workspace_id", "index_id", "folded", "record_id"),
            postgresql_where=sa.text("folded IS NOT NULL"),
        ),
        sa.Index(
            "ix_record_index_blank",
            *("workspace_id", "index_id", "record_id"),
            postgresql_where=sa.text("number IS NULL AND text IS NULL"),
        ),
    )

    workspace_id: Id = Field(primary_key=True)
    record_id: Id = Field(primary_key=True)
    index_id: Id = Field(primary_key=True)
    number: Decimal | None = Field(default=None, sa_type=sa.Numeric)
    text: str | None = Field(default=None, sa_type=_ByCodePoint)
    folded: str | None = Field(default=None, sa_type=_ByCodePoint)


class RecordLink(SQLModel, table=True):
    """One link between two records, stored once: under the older of the two fields that show it.

    `position` orders the targets of `record_id`, `target_position` the records that point at
    `target_id`. A place counts from 0 where the list was written on its own side; a link that came
    from the other side stands behind, in the order of time (milliseconds since 1970).
    """

    __tablename__ = "record_link"
    __table_args__ = (
        sa.ForeignKeyConstraint(["field_id"], ["field.id"], ondelete="CASCADE"),
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        same_workspace("target_id", "record.id", ondelete="CASCADE"),
        sa.Index(
            "ix_record_link_workspace_id_target_id_field_id",
            "workspace_id",
            "target_id",
            "field_id",
        ),
        sa.Index("ix_record_link_field_id", "field_id"),
    )

    workspace_id: Id = Field(primary_key=True)
    record_id: Id = Field(primary_key=True)
    field_id: Id = Field(primary_key=True)
    target_id: Id = Field(primary_key=True)
    position: int = Field(sa_type=sa.BigInteger)
    target_position: int = Field(sa_type=sa.BigInteger)


class RecordCount(SQLModel, table=True):
    """A part of the number of records that a database has outside the trash: the sum over its rows.

    A trigger of `record` writes one with each statement that changes the number, so that writers of
    one database do not wait for each other; `counts.merge_counts` makes one row of them.
    """

    __tablename__ = "record_count"
    __table_args__ = (sa.Index("ix_record_count_database_id", "database_id"),)

    id: int = Field(
        sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)], primary_key=True
    )
    database_id: Id
    number: int = Field(sa_type=sa.BigInteger)


record = table_of(Record)
record_link = table_of(RecordLink)
record_index = table_of(RecordIndex)
record_count = table_of(RecordCount)
