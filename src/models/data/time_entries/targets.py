"""The targets that time is spent on: found where the caller sees them."""

from dataclasses import dataclass

from models.content.items import queries as items
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.data.fields.queries import get_field
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.shapes import FieldShape
from models.data.records.queries import records
from models.data.time_entries.rules.kinds import TargetKind
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target, and the timer field of the record if one is meant.

    The title is None for the workspace, whose name is read by the statement that writes the entry.
    """

    kind: TargetKind
    id: Id
    title: str | None = None
    item_id: Id | None = None
    database_id: Id | None = None
    field: FieldShape | None = None


async def find_target(
    work: UnitOfWork, actor: Actor, kind: TargetKind, target_id: Id | None, field_id: Id | None
) -> Target:
    """The target, and its field.

    Raises `NotFoundError` for what the actor does not see, `ValidationError` for a target without
    an id, and for a field of something else than a record or of another kind than timer.
    """
    if field_id is not None and kind is not TargetKind.DATABASE_RECORD:
        raise ValidationError.at("fieldId", "is for time spent on a record")
    if kind is TargetKind.WORKSPACE:
        return _workspace(actor, target_id)
    if target_id is None:
        raise ValidationError.at("targetId", f"must name the {kind.value.replace('_', ' ')}")
    if kind is TargetKind.ITEM:
        return await _item(work, actor, target_id)
    return await _record(work, actor, target_id, field_id)


def _workspace(actor: Actor, target_id: Id | None) -> Target:
    if target_id not in {None, actor.workspace_id}:
        raise NotFoundError("workspace")
    return Target(kind=TargetKind.WORKSPACE, id=actor.workspace_id)


async def _item(work: UnitOfWork, actor: Actor, item_id: Id) -> Target:
    if await items.placement.level(work, actor, item_id) < Level.VIEW:
        raise NotFoundError
    row = await items.find_item(work, actor.workspace_id, item_id)
    return Target(kind=TargetKind.ITEM, id=item_id, title=row.title, item_id=item_id)


async def _record(work: UnitOfWork, actor: Actor, record_id: Id, field_id: Id | None) -> Target:
    place = await records.visible(work, [actor.workspace_id], record_id, actor.user_id)
    if place is None or level_on(place, actor.role) < Level.VIEW:
        raise NotFoundError("record")
    row = await records.record_subject(work, actor.workspace_id, record_id)
    field = None
    if field_id is not None:
        field = await get_field(work, actor.workspace_id, row.database_id, field_id)
        if field.kind is not FieldKind.TIMER:
            raise ValidationError.at("fieldId", "must be a timer field")
    return Target(
        kind=TargetKind.DATABASE_RECORD,
        id=record_id,
        title=row.title,
        item_id=place.item_id,
        database_id=row.database_id,
        field=field,
    )


def check_by_hand(field: FieldShape | None) -> None:
    """Raise `ValidationError` for a field whose time is taken by its clock alone."""
    if field is not None and not field.settings.get("allowManual", True):
        raise ValidationError.at("fieldId", "takes time from its timer alone")
