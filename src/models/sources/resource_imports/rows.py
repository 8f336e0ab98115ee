"""The rows of an import: their table, what is still to be imported, and what was."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.repository import update_rows
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.resource_imports.rules import ImportedKind, imported_kind, sheet_label
from runtime.database import UnitOfWork
from runtime.ids import new_id
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


class ImportedRow(Protocol):
    """A resource that was imported, or is still to be, and what it was made into."""

    id: Id
    workspace_id: Id
    connection_id: Id
    root_id: Id
    parent_id: Id | None
    external_type: str
    external_id: str
    sheet_name: str | None
    resource_name: str
    mime_type: str | None
    offered_revision: str | None
    kind: str
    item_id: Id | None
    item_title: str | None
    revision: str | None
    digest: str | None
    local_state: str | None
    blocks: list[Any] | None
    run_id: Id | None
    seen_by: Id
    pending: bool


def _seen(
    work: UnitOfWork, job_id: Id, resource: ProviderResource, *, pending: bool = True
) -> dict[str, Any]:
    return {
        "external_type": resource.external_type,
        "resource_name": resource.name,
        "offered_revision": resource.revision,
        "mime_type": resource.mime_type,
        "seen_by": job_id,
        "pending": pending,
        "updated_at": work.now,
    }


async def add_root(
    work: UnitOfWork,
    workspace_id: Id,
    connection_id: Id,
    job_id: Id,
    resource: ProviderResource,
    kind: ImportedKind,
) -> Id:
    """The row of a resource that was not imported before."""
    row_id = new_id()
    await work.execute(
        sa.insert(imported_resource).values(
            id=row_id,
            workspace_id=workspace_id,
            connection_id=connection_id,
            root_id=row_id,
            external_id=resource.external_id,
            kind=kind.value,
            created_at=work.now,
            **_seen(work, job_id, resource),
        )
    )
    return row_id


async def renew_root(work: UnitOfWork, root_id: Id, job_id: Id, resource: ProviderResource) -> None:
    """Have a resource imported again, and nothing that an earlier import left to be done."""
    await work.execute(
        sa.update(imported_resource)
        .where(imported_resource.c.root_id == root_id, imported_resource.c.pending)
        .values(pending=False, run_id=None)
    )
    await _write(work, [(root_id, _seen(work, job_id, resource))])


async def record_listed(
    work: UnitOfWork,
    folder: ImportedRow,
    job_id: Id,
    resources: Sequence[ProviderResource],
    room: int,
) -> tuple[int, list[ProviderResource]]:
    """Record the resources below a folder that are to be imported.

    Gives the number of new ones, and the resources that cannot be imported. Each resource is
    imported once, wherever and however often it is listed.
    """
    by_id = {item.external_id: item for item in resources}
    existing_rows = await work.rows(
        sa.select(imported_resource).where(
            imported_resource.c.root_id == folder.root_id,
            imported_resource.c.external_id.in_(list(by_id)),
            imported_resource.c.sheet_name.is_(None),
        ),
        of=ImportedRow,
    )
    await _renew(work, job_id, [(row, by_id.pop(row.external_id)) for row in existing_rows])
    usable = {item.external_id: kind for item in by_id.values() if (kind := imported_kind(item))}
    fresh = [item for item in by_id.values() if item.external_id in usable][: max(room, 0)]
    rows = [
        {
            "id": new_id(),
            "workspace_id": folder.workspace_id,
            "connection_id": folder.connection_id,
            "root_id": folder.root_id,
            "parent_id": folder.id,
            "external_id": item.external_id,
            "kind": usable[item.external_id].value,
            "created_at": work.now,
            **_seen(work, job_id, item),
        }
        for item in fresh
    ]
    if rows:
        await work.execute(sa.insert(imported_resource), rows)
    return len(rows), [item for item in by_id.values() if item.external_id not in usable]


async def _renew(
    work: UnitOfWork, job_id: Id, known: Sequence[tuple[ImportedRow, ProviderResource]]
) -> None:
    changes = [(row.id, _seen(work, job_id, one)) for row, one in known if row.seen_by != job_id]
    await _write(work, changes)


async def record_sheets(work: UnitOfWork, book: ImportedRow, names: Sequence[str] = ()) -> None:
    """The sheets of a workbook beside its first are to be imported: those known, and these."""
    values = {
        "external_type": book.external_type,
        "offered_revision": book.offered_revision,
        "mime_type": book.mime_type,
        "seen_by": book.seen_by,
        "pending": True,
        "updated_at": work.now,
    }
    existing_rows = await work.rows(
        sa.update(imported_resource)
        .where(
            imported_resource.c.root_id == book.root_id,
            imported_resource.c.external_id == book.external_id,
            imported_resource.c.sheet_name.is_not(None),
        )
        .values(values)
        .returning(imported_resource.c.sheet_name)
    )
    before = {row.sheet_name for row in existing_rows}
    fresh = [
        {
            "id": new_id(),
            "workspace_id": book.workspace_id,
            "connection_id": book.connection_id,
            "root_id": book.root_id,
            "parent_id": book.parent_id,
            "external_id": book.external_id,
            "sheet_name": name,
            "resource_name": sheet_label(book.resource_name, name),
            "kind": ImportedKind.DATABASE.value,
            "created_at": work.now,
            **values,
        }
        for name in dict.fromkeys(names)
        if name not in before
    ]
    if fresh:
        await work.execute(sa.insert(imported_resource), fresh)


async def pending_rows(work: UnitOfWork, root_id: Id, limit: int) -> Sequence[ImportedRow]:
    """The rows still to be imported, folders before what stands below them."""
    statement = sa.select(imported_resource).where(
        imported_resource.c.root_id == root_id, imported_resource.c.pending
    )
    return await work.rows(statement.order_by(imported_resource.c.id).limit(limit), of=ImportedRow)


async def find_row(work: UnitOfWork, workspace_id: Id, row_id: Id) -> ImportedRow | None:
    """A row of an import."""
    return await work.first(
        sa.select(imported_resource).where(
            imported_resource.c.workspace_id == workspace_id, imported_resource.c.id == row_id
        ),
        of=ImportedRow,
    )


async def count_rows(work: UnitOfWork, root_id: Id) -> int:
    """The number of resources an import has."""
    counted = sa.select(sa.func.count()).where(imported_resource.c.root_id == root_id)
    return int(await work.scalar(counted))


async def settle(work: UnitOfWork, row: ImportedRow, **values: object) -> None:
    """A resource is imported, or is not going to be."""
    await settle_all(work, [(row, values)])


async def settle_all(
    work: UnitOfWork, settled: Sequence[tuple[ImportedRow, Mapping[str, object]]]
) -> None:
    """Resources are imported, or are not going to be; the same values are written of each."""
    await _write(
        work, [(row.id, {**values, "pending": False, "run_id": None}) for row, values in settled]
    )


async def change(work: UnitOfWork, row: ImportedRow, **values: object) -> None:
    """Write values of a row."""
    await _write(work, [(row.id, values)])


async def _write(work: UnitOfWork, changes: Sequence[tuple[Id, Mapping[str, object]]]) -> None:
    """Write the same columns of several rows."""
    changed = [(row_id, {**new, "updated_at": work.now}) for row_id, new in changes]
    await update_rows(work, imported_resource, changed)
