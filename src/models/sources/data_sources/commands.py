"""Creating, changing, deleting and copying data sources, and previewing what one would bring."""

import re
from collections.abc import Iterable, Sequence, Set
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa
from pydantic.alias_generators import to_camel

from models.content.files.queries import readable_file
from models.content.items import commands as item_commands
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.keys import PATTERN, reserve_key, share_field_keys
from models.core.problems import nearest_known, read_part, refuse
from models.core.schedules.commands import follow
from models.core.values import next_updated_at
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.queries import require_edit
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY
from models.data.fields.rules.options import new_options
from models.data.fields.rules.settings import read_settings
from models.data.fields.shapes import CreateField
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import accept_job, find_job, forget_job, purge_jobs
from models.sources.connections.store import get_connection
from models.sources.data_sources import queries, rules
from models.sources.data_sources.tables import DATA_SOURCE_SCHEDULES, data_source
from runtime import errors
from runtime.database import UnitOfWork
from runtime.ids import new_id, parse_id
from runtime.temporal.workflow_kinds import WorkflowKind


async def create_data_source(
    work: UnitOfWork, actor: Actor, body: queries.CreateDataSource
) -> queries.DataSourceRow:
    """A new data source with its item, and a database for its rows unless one is named.

    Raises `NotFoundError` for what the body names and the actor does not see, `DeniedError`
    without edit access to the target, `ValidationError`, `ConflictError` for a key in use, and
    what `check_parent` raises.
    """
    await item_commands.check_parent(work, actor, body.parent_item_id)
    await share_field_keys(work, actor.workspace_id)
    await _check_target(work, actor, body.target_database_id)
    config = await checked_config(work, actor, body.kind, body.config)
    check_fields(body.fields, body.key_fields)
    target_id = body.target_database_id
    if target_id is None:
        target_id = await _new_target(work, actor, body)
    data_source_id = new_id()
    item_id = await item_commands.create_item_for(
        work,
        actor,
        ItemKind.DATA_SOURCE,
        data_source_id,
        body.label,
        parent_item_id=body.parent_item_id,
    )
    values = {
        "id": data_source_id,
        "workspace_id": actor.workspace_id,
        "item_id": item_id,
        "key": await reserve_key(work, data_source, actor.workspace_id, body.key, body.label),
        "kind": body.kind.value,
        "config": config,
        "target_database_id": target_id,
        "created_by_user_id": actor.person,
        "created_at": work.now,
        "updated_at": work.now,
    }
    settings = _columns(body, queries.CreateDataSource.model_fields.keys())
    await work.execute(sa.insert(data_source).values({**settings, **values}))
    await follow(work, DATA_SOURCE_SCHEDULES, data_source_id)
    return await queries.find_data_source(work, actor.workspace_id, data_source_id)


async def update_data_source(
    work: UnitOfWork,
    actor: Actor,
    data_source_id: Id,
    body: queries.UpdateDataSource,
    expected_updated_at: datetime | None = None,
) -> queries.DataSourceRow:
    """Change what the body names; `expected_updated_at` is the `updatedAt` last read.

    Raises what `create_data_source` raises, and `ConflictError` when the data source is no longer
    the one that was read.
    """
    await share_field_keys(work, actor.workspace_id)
    row = await queries.find_data_source(work, actor.workspace_id, data_source_id)
    if "target_database_id" in body.model_fields_set and body.target_database_id is None:
        raise errors.ValidationError.at("targetDatabaseId", "A data source always has a target.")
    await _check_target(work, actor, body.target_database_id)
    if body.target_database_id is None and body.model_fields_set & _WRITING:
        # Its schedule writes in the name of who created it, not of who changes what is written.
        await _check_target(work, actor, row.target_database_id)
    values = _columns(body, body.model_fields_set)
    if body.target_database_id is not None:
        values["target_database_id"] = body.target_database_id
    if "config" in body.model_fields_set:
        kind = rules.DataSourceKind(row.kind)
        values["config"] = await checked_config(work, actor, kind, body.config, row.config)
    fields = [rules.FieldMapping.model_validate(one) for one in values.get("fields", row.fields)]
    check_fields(fields, values.get("key_fields", row.key_fields))
    if "key" in body.model_fields_set and body.key != row.key:
        key = await reserve_key(work, data_source, actor.workspace_id, body.key, body.key)
        values["key"] = key
    this = (data_source.c.workspace_id == actor.workspace_id, data_source.c.id == data_source_id)
    moment = next_updated_at(data_source.c.updated_at, work.now)
    statement = sa.update(data_source).where(*this).values(**values, updated_at=moment)
    if expected_updated_at is not None:
        statement = statement.where(data_source.c.updated_at == expected_updated_at)
    written = await work.execute(statement)
    if written.rowcount == 0:
        raise errors.ConflictError("The data source changed since you read it. Read it again.")
    if "label" in body.model_fields_set:
        await item_commands.rename_item(work, actor, row.item_id, body.label)
    if body.model_fields_set & _SCHEDULING:
        had_one = "schedule" in body.model_fields_set
        await follow(work, DATA_SOURCE_SCHEDULES, data_source_id, had_one=had_one)
    return await queries.find_data_source(work, actor.workspace_id, data_source_id)


async def delete_data_source(
    work: UnitOfWork, actor: Actor, data_source_id: Id
) -> queries.DataSourceRow:
    """Put a data source into the trash and return it as it was; its target stays.

    Raises `NotFoundError`.
    """
    found = await queries.find_data_source(work, actor.workspace_id, data_source_id)
    await item_commands.trash_item(work, actor, found.item_id)
    return found


async def copy_data_source(
    work: UnitOfWork, actor: Actor, data_source_id: Id, title: str, parent_item_id: Id | None
) -> queries.DataSourceRow:
    """A second data source that would fill the same database; it is disabled.

    Raises what `create_data_source` raises.
    """
    found = await queries.find_data_source(work, actor.workspace_id, data_source_id)
    kept = {to_camel(name): getattr(found, name) for name in _COPIED}
    given = {**kept, "label": title, "enabled": False}
    if parent_item_id is not None:
        given["parentItemId"] = str(parent_item_id)
    return await create_data_source(
        work, actor, read_part(queries.CreateDataSource, given, "dataSource")
    )


_COPIED = (
    "kind",
    "config",
    "fields",
    "target_database_id",
    "key_fields",
    "write_mode",
    "removed_rows",
    "removal_guard_percent",
    "schedule",
)

_WRITING = frozenset(
    {"config", "fields", "key_fields", "write_mode", "removed_rows", "removal_guard_percent"}
)
"""Columns from which follows what a refresh writes."""

_SCHEDULING = frozenset({"schedule", "enabled", "label"})
"""Columns from which the schedule in Temporal follows."""

_SETTINGS = frozenset(
    {"key_fields", "write_mode", "removed_rows", "removal_guard_percent", "enabled"}
)


def _columns(
    body: queries.CreateDataSource | queries.UpdateDataSource, names: Set[str]
) -> JsonObject:
    """The columns for the given names of a body; columns that need a look-up are left out."""
    values: JsonObject = body.model_dump(mode="json", include=set(_SETTINGS & names))
    if "fields" in names:
        values["fields"] = [one.to_json() for one in body.fields]
    if "schedule" in names:
        values["schedule"] = None if body.schedule is None else body.schedule.to_json()
    return values


async def checked_config(
    work: UnitOfWork,
    actor: Actor,
    kind: rules.DataSourceKind,
    config: JsonObject,
    before: JsonObject | None = None,
) -> JsonObject:
    """The config as it is stored, in place of the one that is. Raises `NotFoundError`."""
    place, named = rules.named_connection(config)
    connection_id = _id_of(named)
    if connection_id is not None:
        found = await get_connection(work, actor, connection_id)
        rules.check_use(kind, config, place, found)
    file_id = _id_of(config.get("fileId")) if kind is rules.DataSourceKind.FILE else None
    if file_id is not None:
        await readable_file(work, actor, file_id)
    read = read_part(rules.CONFIGS[kind], config, "config")
    return rules.restored_config(
        read.model_dump(mode="json", by_alias=True, exclude_none=True), before
    )


def _id_of(value: object) -> Id | None:
    return parse_id(value) if isinstance(value, str) else None


async def _check_target(work: UnitOfWork, actor: Actor, database_id: Id | None) -> None:
    if database_id is not None:
        await require_edit(work, actor, database_id, "You need edit access to the target database.")


def check_fields(fields: Sequence[rules.FieldMapping], key_fields: Iterable[str]) -> None:
    """Refuse a field that two columns fill, and a key that none fills.

    Without fields, the columns suggest them, and only a run knows which.
    """
    keys = [mapping.field_key for mapping in fields]
    labels = {mapping.field_key: mapping.label for mapping in fields}
    for place, (key, mapping) in enumerate(zip(keys, fields, strict=True)):
        if key in keys[:place]:
            raise errors.ValidationError.at(
                f"fields.{place}.fieldKey", "Another column fills this field."
            )
        _check_new_field(mapping, f"fields.{place}")
    for place, key in enumerate(key_fields):
        if keys and key not in keys:
            reason = f"No column fills this field; {nearest_known(key, keys, labels)}."
            raise errors.ValidationError.at(f"keyFields.{place}", reason)
        if not re.match(PATTERN, key):
            reason = "Invalid field key. Use `suggestedKey` of the preview."
            raise errors.ValidationError.at(f"keyFields.{place}", reason)


def _check_new_field(mapping: rules.FieldMapping, path: str) -> None:
    """Refuse options and settings that no field of the kind has."""
    problems: list[errors.Detail] = []
    if mapping.options is not None and mapping.kind not in OPTION_KINDS:
        problems.append(
            errors.Detail(f"{path}.options", f"A {mapping.kind.value} field has no options.")
        )
    options = new_options(mapping.options or (), new_id, f"{path}.options", problems)
    keys = [option.key for option in options]
    read = read_settings(mapping.kind, mapping.settings or {}, keys, f"{path}.settings")
    refuse([*problems, *read.problems])


async def _new_target(work: UnitOfWork, actor: Actor, body: queries.CreateDataSource) -> Id:
    """A database with the fields that the columns fill, beside the data source."""
    item_commands.check_scopes(actor, {ItemKind.DATABASE.value})
    fields = [
        CreateField.model_validate(mapping.new_field())
        for mapping in body.fields
        if mapping.field_key != TITLE_KEY
    ]
    wanted = {"label": body.label, "parentItemId": body.parent_item_id, "fields": fields}
    return (await create_database(work, actor, CreateDatabase.model_validate(wanted))).id


async def count_joined(work: UnitOfWork, data_source_id: Id, due: datetime) -> None:
    """Count a due time that found another refresh open, once."""
    columns = data_source.c
    await work.execute(
        sa.update(data_source)
        .where(columns.id == data_source_id)
        .where(sa.or_(columns.last_joined_at.is_(None), columns.last_joined_at < due))
        .values(joined_fires=columns.joined_fires + 1, last_joined_at=due)
    )


MAX_ROWS = 50
LIFETIME = timedelta(hours=1)
"""The time for which a page can be read again that shows a preview."""


async def accept_preview(
    work: UnitOfWork,
    actor: Actor,
    preview_id: Id,
    body: queries.PreviewDataSource,
    draft: JsonObject | None = None,
) -> None:
    """Accept the job that reads the first rows. Raises what creating a data source raises."""
    config = await checked_config(work, actor, body.kind, body.config)
    target = await checked_target(work, actor, body.fields, body.target_database_id)
    await accept_reading(
        work, actor, preview_id, Read(body.kind, config, body.limit, target), draft
    )


class Target(NamedTuple):
    """The fields that the rows of a preview are checked against; by default the suggested ones."""

    fields: Sequence[rules.FieldMapping] = ()
    database_id: Id | None = None
    key_fields: Sequence[str] = ()


class Read(NamedTuple):
    """A source whose config was checked, and what a preview of it reads."""

    kind: rules.DataSourceKind
    config: JsonObject
    limit: int
    target: Target = Target()


async def checked_target(
    work: UnitOfWork,
    actor: Actor,
    fields: Sequence[rules.FieldMapping],
    database_id: Id | None,
    key_fields: Sequence[str] = (),
) -> Target:
    """The target of a preview. Raises `NotFoundError`, `DeniedError`, `ValidationError`."""
    check_fields(fields, key_fields)
    if database_id is not None:
        await require_edit(work, actor, database_id, "You can't add records here.")
    return Target(fields, database_id, key_fields)


async def accept_reading(
    work: UnitOfWork, actor: Actor, preview_id: Id, read: Read, draft: JsonObject | None
) -> None:
    """Accept the job that reads the first rows of a source.

    A page finds its `draft`, what it was filled in with, beside the rows.
    """
    kind, config, limit, target = read
    await accept_job(
        work,
        actor,
        WorkflowKind.DATA_SOURCE_PREVIEW,
        preview_id,
        preview_id,
        summary=f"Preview · {kind}",
        input={
            "kind": kind.value,
            "config": config,
            "limit": min(limit, MAX_ROWS),
            "fields": [one.to_json() for one in target.fields],
            "targetDatabaseId": None if target.database_id is None else str(target.database_id),
            "keyFields": [*target.key_fields],
            "draft": draft or {},
        },
    )


async def preview_outcome(
    work: UnitOfWork, actor: Actor, preview_id: Id, *, last: bool
) -> queries.DataSourcePreview | None:
    """The findings of a preview; None while it is read.

    Raises `ValidationError` for what cannot be fetched or read, `InProgressError` when this is the
    last time to ask.
    """
    job = await find_job(work, actor.workspace_id, WorkflowKind.DATA_SOURCE_PREVIEW, preview_id)
    if job.status == JobStatus.SUCCEEDED:
        return queries.DataSourcePreview.model_validate(job.result)
    if job.status not in OPEN_JOB:
        if job.error is None or job.error_code == errors.InternalError.code:
            raise errors.UpstreamError(job.error or "The source could not be read. Try again.")
        raise errors.ValidationError.at("config", job.error)
    if last:
        raise errors.InProgressError("The source is slow to respond. Try again.")
    return None


async def forget_preview(work: UnitOfWork, actor: Actor, preview_id: Id) -> None:
    """Remove what a preview read."""
    await forget_job(work, actor.workspace_id, preview_id)


async def purge_previews(work: UnitOfWork) -> int:
    """Remove a batch of previews that ended an hour ago. Returns the number of removed rows."""
    return await purge_jobs(
        work, work.now - LIFETIME, workflow_kind=WorkflowKind.DATA_SOURCE_PREVIEW
    )


async def rewrite_fields(
    work: UnitOfWork,
    workspace_id: Id,
    data_source_id: Id,
    fields: list[JsonObject],
    key_fields: list[str],
) -> None:
    """Store the mapping of a data source in which a field has another key."""
    source = data_source.c
    await work.execute(
        sa.update(data_source)
        .where(source.workspace_id == workspace_id, source.id == data_source_id)
        .values(
            fields=fields,
            key_fields=key_fields,
            updated_at=next_updated_at(source.updated_at, work.now),
        )
    )
