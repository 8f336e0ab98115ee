"""Relation fields in conditions of the record table: links are kept beside it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    FromClause,
    Select,
    Uuid,
    any_,
    distinct,
    func,
    literal,
    select,
    union_all,
)

from models.core.base import Id
from models.data.fields.rules.fields import FieldSpec
from models.data.records.rules.link.sides import side_of
from models.data.records.rules.query.extraction import Expression
from models.data.records.tables import record, record_link

_OTHER = record.alias("linked")


def linked(field: FieldSpec) -> Select[Any]:
    """Ids of the records a relation field of the record points at, those in the trash left out."""
    side = side_of(field)
    ends = [(record_link.c.record_id, record_link.c.target_id, side.forward)]
    ends.append((record_link.c.target_id, record_link.c.record_id, side.backward))
    ways = [
        select(other_end.label("id"))
        .join(_OTHER, _OTHER.c.id == other_end)
        .where(
            record_link.c.workspace_id == record.c.workspace_id,
            record_link.c.field_id == side.field_id,
            own_end == record.c.id,
            _OTHER.c.workspace_id == record.c.workspace_id,
            _OTHER.c.deleted_at.is_(None),
        )
        .correlate(record)
        for own_end, other_end, shown in ends
        if shown
    ]
    ids = union_all(*ways).subquery("ends") if len(ways) > 1 else ways[0].subquery("ends")
    return select(ids.c.id).correlate(record)


def links_any(field: FieldSpec, targets: Sequence[str]) -> Expression:
    """True when the field points at one of these records."""
    found = linked(field)
    return found.where(found.selected_columns.id == any_(_ids(targets))).exists()


def links_all(field: FieldSpec, targets: Sequence[str]) -> Expression:
    """True when the field points at every one of these records."""
    ids = linked(field).subquery("linked_ids")
    found = select(func.count(distinct(ids.c.id))).where(ids.c.id == any_(_ids(targets)))
    return found.scalar_subquery() == len(set(targets))


def links_none(field: FieldSpec) -> Expression:
    """True when the field points at nothing."""
    return ~linked(field).exists()


def linked_rows(field: FieldSpec) -> FromClause:
    """One row `id` for each record the field points at, to be joined to the record."""
    return linked(field).correlate(record).distinct().lateral(f"linked_by_{field.id.hex}")


def _ids(targets: Sequence[str]) -> Expression:
    return literal([Id(target) for target in targets], ARRAY(Uuid))
