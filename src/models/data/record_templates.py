"""Record templates: the values, links and content a new record of a database begins with."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.content.surfaces.commands import create_content_surface, delete_content_surface
from models.content.surfaces.queries import has_blocks
from models.core import base as core_base
from models.core.access.rules import Actor, Scope
from models.core.bundles import BundleKind, Stage, shape_problem
from models.core.pagination import Listed, PageRequest
from models.core.problems import refuse
from models.core.references.rules import Definition, Reference, Sought, cleared, members_at
from models.core.values import next_updated_at
from models.data.fields.commands import of_live_databases, share_schema
from models.data.fields.queries import load_schema
from models.data.fields.rows import DATABASE, live_databases
from models.data.fields.rules.fields import FieldSpecs, Schema
from models.data.records.details import open_records
from models.data.records.queries import RECORD
from models.data.records.rules.links import read_relations
from models.data.records.rules.values import Change, DataCheck
from models.data.records.rules.writes import Checked, Write, WriteOp
from models.data.records.shapes import Relations, RelationsInput
from models.data.records.write import Prefill, check_references
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of
from runtime.postgresql.statements import lock_name


class RecordTemplate(SQLModel, table=True):
    """Prefilled values of a record; `data` holds the title too, `relations` ids as text.

    The surface belongs to the template alone; its blocks are copied to new records.
    """

    __tablename__ = "record_template"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("database_id", "database.id"),
        same_workspace("content_surface_id", "surface.id"),
        sa.CheckConstraint("jsonb_typeof(data) = 'object'", name="data_is_object"),
        sa.CheckConstraint("jsonb_typeof(relations) = 'object'", name="relations_is_object"),
        sa.Index("ix_record_template_label", "workspace_id", "database_id", "label", "id"),
        partial_index(
            "uq_record_template_default",
            "workspace_id",
            "database_id",
            where="is_default",
            unique=True,
        ),
    )

    id: core_base.Id = TableField(primary_key=True)
    workspace_id: core_base.Id
    database_id: core_base.Id
    label: str
    description: str | None = None
    icon: str | None = None
    data: dict[str, Any] = TableField(sa_type=JSONB)
    relations: dict[str, Any] = TableField(sa_type=JSONB)
    content_surface_id: core_base.Id
    is_default: bool
    created_at: datetime = TableField(sa_type=Timestamp)
    updated_at: datetime = TableField(sa_type=Timestamp)


record_template = table_of(RecordTemplate)

MAX_TEMPLATES = 200

Description = Annotated[str, Field(max_length=4_000)]


class CreateRecordTemplate(core_base.Input):
    """Body of create record template; `data` and `relations` are as in a record.

    At most one template of a database is the default: the one that was set last.
    """

    label: core_base.Label
    description: Description | None = None
    icon: core_base.Icon | None = None
    data: core_base.JsonObject | None = None
    relations: RelationsInput | None = None
    is_default: bool = False


class UpdateRecordTemplate(core_base.Input):
    """Body of update record template: `data` and `relations` replace what was there."""

    label: core_base.Label | None = None
    description: Description | None = None
    icon: core_base.Icon | None = None
    data: core_base.JsonObject | None = None
    relations: RelationsInput | None = None
    is_default: bool | None = None


class RecordTemplateShape(core_base.Shape):
    """A record template; its content is on the surface `contentSurfaceId`."""

    id: core_base.Id
    workspace_id: core_base.Id
    database_id: core_base.Id
    label: str
    description: str | None
    icon: str | None
    data: core_base.JsonObject
    relations: Relations
    content_surface_id: core_base.Id
    is_default: bool
    created_at: core_base.Moment
    updated_at: core_base.Moment


class RecordTemplateList(Listed):
    templates: list[RecordTemplateShape]


def read_prefill(
    fields: FieldSpecs, data: Mapping[str, Any], relations: Mapping[str, Any]
) -> tuple[Change, dict[str, list[core_base.Id]]]:
    """The values and links a template prefills; what is null or empty is left out.

    Raises `ValidationError` with every problem at `data.<fieldKey>` or `relations.<fieldKey>`.
    """
    optional = {key: replace(spec, required=False) for key, spec in fields.items()}
    change, problems = DataCheck(optional).patch(data)
    links, wrong = read_relations(optional, relations)
    refuse([*problems, *wrong])
    return Change(change.values), {key: ids for key, ids in links.items() if ids}


_FILLED = has_blocks(record_template.c.workspace_id, record_template.c.content_surface_id).label(
    "filled"
)
"""True when a template's surface has blocks."""


async def list_templates(
    work: UnitOfWork, workspace_id: core_base.Id, database_id: core_base.Id, page: PageRequest
) -> RecordTemplateList:
    """The templates of a database by label."""
    columns = record_template.c
    own = sa.select(record_template).where(
        columns.workspace_id == workspace_id, columns.database_id == database_id
    )
    shown = await page.ascending(work, own, columns.label, columns.id, of=RecordTemplate)
    return RecordTemplateList.of(shown)


async def template_definitions(
    work: UnitOfWork, actor: Actor, sought: Sought
) -> Sequence[Definition]:
    """The record templates that may name a thing."""
    database_id = sought.database_id
    if database_id is None:
        return []
    return [
        Definition(
            kind="record_template",
            id=row.id,
            label=row.label,
            scope=Scope.DATABASES_READ,
            item_id=row.item_id,
            database_id=database_id,
            document={"data": row.data, "relations": row.relations},
            references=list(cleared(_template_references(str(database_id), row))),
        )
        for row in await work.rows(
            _template_rows(actor.workspace_id, database_id), of=_PlacedTemplate
        )
    ]


class _PlacedTemplate(Protocol):
    """A template with the item of its database."""

    id: core_base.Id
    label: str
    item_id: core_base.Id
    data: core_base.JsonObject
    relations: core_base.JsonObject


def _template_references(database: str, row: _PlacedTemplate) -> Iterator[Reference]:
    """The fields and options that a record template fills in."""
    for name in ("data", "relations"):
        yield from members_at(database, getattr(row, name), name)


def _template_rows(workspace_id: core_base.Id, database_id: core_base.Id) -> sa.Select[Any]:
    template = record_template.c
    columns = (template.id, template.label, template.data, template.relations, DATABASE.item_id)
    return (
        live_databases(workspace_id, *columns)
        .join(record_template, template.database_id == DATABASE.id)
        .where(template.workspace_id == workspace_id, DATABASE.id == database_id)
        .order_by(template.label, template.id)
    )


async def template_prefills(
    work: UnitOfWork,
    workspace_id: core_base.Id,
    database_id: core_base.Id,
    template_ids: Collection[core_base.Id],
) -> dict[core_base.Id, Prefill]:
    """The prefill of each of these templates of a database; one statement.

    Raises `NotFoundError` for an id that is no template of the database.
    """
    wanted = record_template.c.id == sa.func.any(sa.literal(list(template_ids), sa.ARRAY(sa.Uuid)))
    rows = await _prefilling(work, workspace_id, database_id, wanted)
    if len(rows) < len(set(template_ids)):
        raise NotFoundError("record template")
    return {row.id: _prefill(row) for row in rows}


class _PrefillRow(Protocol):
    """A template; `filled` says whether its surface has blocks."""

    id: core_base.Id
    data: core_base.JsonObject
    relations: core_base.JsonObject
    content_surface_id: core_base.Id
    filled: bool


async def _prefilling(
    work: UnitOfWork,
    workspace_id: core_base.Id,
    database_id: core_base.Id,
    condition: sa.ColumnElement[bool],
) -> Sequence[_PrefillRow]:
    return await work.rows(
        sa.select(record_template, _FILLED).where(
            record_template.c.workspace_id == workspace_id,
            record_template.c.database_id == database_id,
            condition,
        ),
        of=_PrefillRow,
    )


def _prefill(row: _PrefillRow) -> Prefill:
    return Prefill(row.data, row.relations, row.content_surface_id if row.filled else None)


async def find_template(
    work: UnitOfWork,
    workspace_id: core_base.Id,
    database_id: core_base.Id,
    template_id: core_base.Id,
) -> RecordTemplate:
    """A template, locked until the transaction ends. Raises `NotFoundError`."""
    return await work.one(
        sa.select(record_template)
        .where(
            record_template.c.workspace_id == workspace_id,
            record_template.c.database_id == database_id,
            record_template.c.id == template_id,
        )
        .with_for_update(),
        "record template",
        of=RecordTemplate,
    )


async def create_template(
    work: UnitOfWork, actor: Actor, database_id: core_base.Id, body: CreateRecordTemplate
) -> RecordTemplateShape:
    """A new template with an empty surface.

    Raises `NotFoundError` for what its values name, `ValidationError` at `data.<fieldKey>`,
    `ConflictError` when there are too many.
    """
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    await _lock_templates(work, database_id)
    count = sa.select(sa.func.count()).where(*_of_template(actor.workspace_id, database_id))
    if await work.scalar(count) >= MAX_TEMPLATES:
        raise ConflictError(f"A database has at most {MAX_TEMPLATES} templates. Delete one first.")
    data, relations = await _prefilled(work, actor, schema, body.data, body.relations)
    if body.is_default:
        await _unset_default(work, actor.workspace_id, database_id)
    row = await work.first(
        sa.insert(record_template)
        .values(
            id=new_id(),
            workspace_id=actor.workspace_id,
            database_id=database_id,
            label=body.label,
            description=body.description,
            icon=body.icon,
            data=data,
            relations=relations,
            content_surface_id=await create_content_surface(work, actor, database_id),
            is_default=body.is_default,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(record_template)
    )
    return RecordTemplateShape.model_validate(row)


async def update_template(
    work: UnitOfWork,
    actor: Actor,
    database_id: core_base.Id,
    template_id: core_base.Id,
    body: UpdateRecordTemplate,
) -> RecordTemplateShape:
    """Change what the body names. Raises what `create_template` raises."""
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    await _lock_templates(work, database_id)
    row = await find_template(work, actor.workspace_id, database_id, template_id)
    changes: dict[str, Any] = {
        **body.model_dump(include={"label", "is_default"}, exclude_none=True),
        **body.model_dump(include={"description", "icon"}, exclude_unset=True),
    }
    if body.data is not None or body.relations is not None:
        data = row.data if body.data is None else body.data
        relations = row.relations if body.relations is None else body.relations
        data, relations = await _prefilled(work, actor, schema, data, relations)
        changes |= {"data": data, "relations": relations}
    if not changes:
        return RecordTemplateShape.model_validate(row)
    if body.is_default:
        await _unset_default(work, actor.workspace_id, database_id)
    new_row = await work.first(
        sa.update(record_template)
        .where(
            record_template.c.workspace_id == actor.workspace_id,
            record_template.c.id == template_id,
        )
        .values(**changes, updated_at=next_updated_at(record_template.c.updated_at, work.now))
        .returning(record_template)
    )
    return RecordTemplateShape.model_validate(new_row)


async def delete_template(
    work: UnitOfWork, actor: Actor, database_id: core_base.Id, template_id: core_base.Id
) -> core_base.Deleted:
    """Delete a template with its surface; records made from it stay. Raises `NotFoundError`."""
    row = await find_template(work, actor.workspace_id, database_id, template_id)
    await work.execute(
        sa.delete(record_template).where(
            record_template.c.workspace_id == actor.workspace_id,
            record_template.c.id == template_id,
        )
    )
    await delete_content_surface(work, actor, row.content_surface_id)
    return core_base.Deleted(id=template_id)


async def remove_usages(
    work: UnitOfWork, workspace_id: core_base.Id, database_id: core_base.Id, field_key: str
) -> None:
    """Remove a field that is about to be deleted from the templates of its database."""
    table = record_template.c
    await work.execute(
        sa.update(record_template)
        .where(
            *_of_template(workspace_id, database_id),
            table.data.has_key(field_key) | table.relations.has_key(field_key),
        )
        .values(
            data=_without(table.data, field_key),
            relations=_without(table.relations, field_key),
            updated_at=work.now,
        )
    )


async def remove_invalid_usages(work: UnitOfWork, schema: Schema, field_key: str) -> None:
    """Remove values that no longer fit a field, after it was changed."""
    rows = await work.rows(
        sa.select(record_template)
        .where(
            *_of_template(schema.workspace_id, schema.database_id),
            record_template.c.data.has_key(field_key),
        )
        .order_by(record_template.c.id)
        .with_for_update()
    )
    for row in rows:
        try:
            read_prefill(schema.fields, {field_key: row.data[field_key]}, {})
        except ValidationError:
            await work.execute(
                sa.update(record_template)
                .where(
                    record_template.c.workspace_id == schema.workspace_id,
                    record_template.c.id == row.id,
                )
                .values(data=_without(record_template.c.data, field_key), updated_at=work.now)
            )


def _without(column: sa.ColumnElement[Any], key: str) -> sa.ColumnElement[Any]:
    return column.op("-", return_type=JSONB())(sa.literal(key, sa.Text))


async def _prefilled(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    data: Mapping[str, Any] | None,
    relations: Mapping[str, Any] | None,
) -> tuple[core_base.JsonObject, core_base.JsonObject]:
    change, links = read_prefill(schema.fields, data or {}, relations or {})
    await check_named(work, actor, schema, change, links)
    targets = {key: [str(target) for target in ids] for key, ids in links.items()}
    return dict(change.values), targets


async def _unset_default(
    work: UnitOfWork, workspace_id: core_base.Id, database_id: core_base.Id
) -> None:
    await work.execute(
        sa.update(record_template)
        .where(*_of_template(workspace_id, database_id), record_template.c.is_default)
        .values(is_default=False, updated_at=work.now)
    )


async def _lock_templates(work: UnitOfWork, database_id: core_base.Id) -> None:
    """Lock the templates of a database, new ones included, until the transaction ends."""
    place = f"record-templates/{database_id}"
    await lock_name(work, place)


def _of_template(workspace_id: core_base.Id, database_id: core_base.Id) -> tuple[Any, ...]:
    return (
        record_template.c.workspace_id == workspace_id,
        record_template.c.database_id == database_id,
    )


async def check_named(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    change: Change,
    links: Mapping[str, Sequence[core_base.Id]],
) -> None:
    """Check that the people, files and records exist, as for a record with these values.

    Raises `NotFoundError` and `ValidationError`.
    """
    await _check_targets(work, actor, schema, links)
    as_record = Checked(Write(op=WriteOp.CREATE), None, change, links)
    refuse(await check_references(work, actor, schema, [as_record]))


async def _check_targets(
    work: UnitOfWork, actor: Actor, schema: Schema, links: Mapping[str, Sequence[core_base.Id]]
) -> None:
    pairs = {
        (schema.fields[key].target_id, target)
        for key, targets in links.items()
        for target in targets
    }
    if not pairs:
        return
    ids = [target for _, target in pairs]
    rows = await work.rows(
        open_records(actor, ids, RECORD.database_id, RECORD.id).where(RECORD.deleted_at.is_(None))
    )
    if pairs - {(row.database_id, row.id) for row in rows}:
        raise NotFoundError("record")


_RELATIONS = core_base.deferred_adapter(dict[str, list[core_base.InputId]])


def _bundled_rows(workspace_id: core_base.Id) -> sa.Select[Any]:
    return of_live_databases(workspace_id, record_template)


RECORD_TEMPLATES = BundleKind(
    name="record_template",
    stage=Stage.CONTENT,
    file="databases.ndjson",
    table=record_template,
    rows=_bundled_rows,
    references={"database_id": "database", "content_surface_id": "surface"},
    contents=("data", "relations"),
    check=lambda row: shape_problem(_RELATIONS, row["relations"], "relations"),
)


async def rewrite_values(
    work: UnitOfWork,
    workspace_id: core_base.Id,
    template_id: core_base.Id,
    data: core_base.JsonObject,
    relations: core_base.JsonObject,
) -> None:
    """Store the values of a template in which a field has another key."""
    columns = record_template.c
    await work.execute(
        sa.update(record_template)
        .where(columns.workspace_id == workspace_id, columns.id == template_id)
        .values(
            data=data,
            relations=relations,
            updated_at=next_updated_at(columns.updated_at, work.now),
        )
    )
