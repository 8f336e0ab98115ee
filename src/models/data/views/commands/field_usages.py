"""Removing fields from the manifests of views, when they are deleted or converted."""

from collections.abc import Sequence

from sqlalchemy import select, update

from models.core.base import Id
from models.core.revisions import next_updated_at
from models.data.fields.queries import field_with_key
from models.data.fields.rules.fields import Schema
from models.data.views.queries import names_field
from models.data.views.rules.kinds import Placement, ViewKind
from models.data.views.rules.manifest import read_manifest
from models.data.views.rules.removal import without_field
from models.data.views.shapes import Manifest
from models.data.views.tables import View, view
from runtime.database import UnitOfWork
from runtime.errors import PlatformError


async def remove_usages(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> None:
    """Remove a field that is about to be deleted from the manifests of its database's views.

    A view whose kind needs the field becomes a table. A view placed at the field, a relation, is
    placed with the other views.
    """
    gone = field_with_key(workspace_id, database_id, field_key)
    await work.execute(
        update(view)
        .where(
            view.c.workspace_id == workspace_id,
            view.c.relation_field_id == gone,
        )
        .values(placement=Placement.DATABASE.value, relation_field_id=None, updated_at=work.now)
    )
    for row in await _naming(work, workspace_id, database_id, field_key):
        await _drop_field(work, row, field_key)


async def remove_invalid_usages(work: UnitOfWork, schema: Schema, field_key: str) -> None:
    """Remove a field from the manifests that no longer fit it, after it was changed."""
    rows = await _naming(work, schema.workspace_id, schema.database_id, field_key)
    for row in rows:
        try:
            manifest = Manifest.model_validate(row.manifest)
            read_manifest(ViewKind(row.kind), manifest, schema.fields, work.now)
        except PlatformError:
            await _drop_field(work, row, field_key)


async def _naming(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> Sequence[View]:
    """The views of a database that name a field, locked in the order of their ids."""
    return await work.rows(
        select(view)
        .where(
            view.c.workspace_id == workspace_id,
            view.c.database_id == database_id,
            names_field(field_key),
        )
        .order_by(view.c.id)
        .with_for_update(),
        of=View,
    )


async def _drop_field(work: UnitOfWork, row: View, field_key: str) -> None:
    kind, manifest = without_field(ViewKind(row.kind), row.manifest, field_key)
    if manifest == row.manifest:
        return
    await work.execute(
        update(view)
        .where(view.c.workspace_id == row.workspace_id, view.c.id == row.id)
        .values(
            kind=kind.value,
            manifest=manifest,
            definition_version=view.c.definition_version + 1,
            updated_at=next_updated_at(view.c.updated_at, work.now),
        )
    )
