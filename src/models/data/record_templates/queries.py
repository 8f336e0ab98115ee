"""Reading record templates."""

from collections.abc import Collection, Sequence
from typing import Protocol

from sqlalchemy import ARRAY, ColumnElement, Uuid, func, literal, select

from models.content.surfaces.queries import has_blocks
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest
from models.data.record_templates.shapes import RecordTemplateList, RecordTemplateShape
from models.data.record_templates.tables import RecordTemplate, record_template
from models.data.records.prefills import Prefill
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

_FILLED = has_blocks(record_template.c.workspace_id, record_template.c.content_surface_id).label(
    "filled"
)
"""True when a template's surface has blocks."""


async def list_templates(
    work: UnitOfWork, workspace_id: Id, database_id: Id, page: PageRequest
) -> RecordTemplateList:
    """The templates of a database by label."""
    columns = record_template.c
    own = select(record_template).where(
        columns.workspace_id == workspace_id, columns.database_id == database_id
    )
    shown = await page.ascending(work, own, columns.label, columns.id, of=RecordTemplate)
    templates = [RecordTemplateShape.model_validate(row) for row in shown.items]
    return RecordTemplateList(templates=templates, cursor=shown.cursor)


async def template_prefills(
    work: UnitOfWork, workspace_id: Id, database_id: Id, template_ids: Collection[Id]
) -> dict[Id, Prefill]:
    """The prefill of each of these templates of a database; one statement.

    Raises `NotFoundError` for an id that is no template of the database.
    """
    wanted = record_template.c.id == func.any(literal(list(template_ids), ARRAY(Uuid)))
    rows = await _prefilling(work, workspace_id, database_id, wanted)
    if len(rows) < len(set(template_ids)):
        raise NotFoundError("record template")
    return {row.id: _prefill(row) for row in rows}


class _PrefillRow(Protocol):
    """A template; `filled` says whether its surface has blocks."""

    id: Id
    data: JsonObject
    relations: JsonObject
    content_surface_id: Id
    filled: bool


async def _prefilling(
    work: UnitOfWork, workspace_id: Id, database_id: Id, condition: ColumnElement[bool]
) -> Sequence[_PrefillRow]:
    return await work.rows(
        select(record_template, _FILLED).where(
            record_template.c.workspace_id == workspace_id,
            record_template.c.database_id == database_id,
            condition,
        ),
        of=_PrefillRow,
    )


def _prefill(row: _PrefillRow) -> Prefill:
    return Prefill(row.data, row.relations, row.content_surface_id if row.filled else None)


async def find_template(
    work: UnitOfWork, workspace_id: Id, database_id: Id, template_id: Id
) -> RecordTemplate:
    """A template, locked until the transaction ends. Raises `NotFoundError`."""
    row = await work.first(
        select(record_template)
        .where(
            record_template.c.workspace_id == workspace_id,
            record_template.c.database_id == database_id,
            record_template.c.id == template_id,
        )
        .with_for_update(),
        of=RecordTemplate,
    )
    if row is None:
        raise NotFoundError("record template")
    return row
