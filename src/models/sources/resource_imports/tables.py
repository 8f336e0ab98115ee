"""The table of imported resources."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.sources.resource_imports.rules import ImportedKind
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of


class ImportedResourceRow(SQLModel, table=True):
    """A resource that was imported, and what it was made into.

    What stands below an imported folder has its row as `root_id`, each resource once; the folder
    itself is its own root. `local_state` and `item_title` are what the item was like when the
    import left it: the file it places, the keys of the fields that rows fill. `blocks` are digests
    of a page's (`pages.Written`). `revision` is that of what was imported, `offered_revision`
    that of what the provider shows. A row that is `pending` is still to be imported by the job
    `seen_by`; `run_id` is the run that brings in a table's rows. The first sheet of a workbook has
    the row of the workbook, each other one a row with its `sheet_name`.
    """

    __tablename__ = "imported_resource"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        same_workspace("root_id", "imported_resource.id", ondelete="CASCADE"),
        same_workspace("item_id", "item.id", ondelete="CASCADE"),
        one_of("kind", ImportedKind),
        sa.Index(
            "uq_imported_resource_root_id_external_id",
            "root_id",
            "external_id",
            "sheet_name",
            unique=True,
            postgresql_nulls_not_distinct=True,
        ),
        sa.Index("ix_imported_resource_item_id", "item_id"),
        partial_index("ix_imported_resource_pending", "root_id", "id", where="pending"),
        partial_index(
            "ix_imported_resource_of_connection",
            "workspace_id",
            "connection_id",
            "external_id",
            where="root_id = id",
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    connection_id: Id
    root_id: Id
    parent_id: Id | None = None
    external_type: str
    external_id: str
    sheet_name: str | None = None
    resource_name: str
    mime_type: str | None = None
    offered_revision: str | None = None
    kind: str
    item_id: Id | None = None
    item_title: str | None = None
    revision: str | None = None
    digest: str | None = None
    local_state: str | None = None
    blocks: list[Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    run_id: Id | None = None
    seen_by: Id
    pending: bool
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


imported_resource = table_of(ImportedResourceRow)
