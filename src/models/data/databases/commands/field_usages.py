"""Removing a field from what names it: views and record templates."""

from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.record_templates import commands as record_templates
from models.data.views.commands import field_usages as views
from runtime.database import UnitOfWork


async def remove_usages(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> None:
    """Remove a field that is about to be deleted from everything that names it."""
    await views.remove_usages(work, workspace_id, database_id, field_key)
    await record_templates.remove_usages(work, workspace_id, database_id, field_key)


async def remove_invalid_usages(work: UnitOfWork, schema: Schema, field_key: str) -> None:
    """Remove a field from what no longer fits it, after its kind or its options changed."""
    await views.remove_invalid_usages(work, schema, field_key)
    await record_templates.remove_invalid_usages(work, schema, field_key)
