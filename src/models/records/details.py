"""From a row of the record table to the record on the wire."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from models.databases.rules.fields import FieldSpecs
from models.databases.rules.kinds import FieldKind
from models.records.shapes import RecordDetail
from runtime.clock import wire_timestamp


def record_detail(row: Row[Any], fields: FieldSpecs) -> RecordDetail:
    """The record with the values of these fields; values of fields that are gone stay hidden.

    The row comes from our own typed columns, so the shape is built without checking it again.
    """
    return RecordDetail.model_construct(
        id=row.id,
        workspace_id=row.workspace_id,
        database_id=row.database_id,
        content_surface_id=row.content_surface_id,
        title=row.title,
        data=_data(row.title, row.data, fields),
        relations={},
        computed={},
        system=_system(row, fields),
        related={},
        archived=row.archived,
        created_by_user_id=row.created_by_user_id,
        updated_by_user_id=row.updated_by_user_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _data(title: str, stored: Mapping[str, Any], fields: FieldSpecs) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, spec in fields.items():
        if spec.title:
            data[key] = title
        elif key in stored:
            data[key] = stored[key]
    return data


def _system(row: Row[Any], fields: FieldSpecs) -> dict[str, Any]:
    return {key: _written(row, spec.kind) for key, spec in fields.items() if spec.system}


def _written(row: Row[Any], kind: FieldKind) -> Any:
    """The value the platform wrote for a field of a system kind."""
    match kind:
        case FieldKind.AUTO_NUMBER:
            return row.number
        case FieldKind.CREATED_AT:
            return wire_timestamp(row.created_at)
        case FieldKind.UPDATED_AT:
            return wire_timestamp(row.updated_at)
        case FieldKind.CREATED_BY:
            return None if row.created_by_user_id is None else str(row.created_by_user_id)
        case _:
            return None if row.updated_by_user_id is None else str(row.updated_by_user_id)
