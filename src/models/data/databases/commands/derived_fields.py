"""What a change of one field means for the fields that follow from it."""

from collections.abc import Collection

from sqlalchemy import func, select

from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.commands.rows import write_field
from models.data.databases.queries import load_catalog
from models.data.databases.rules.derived_fields import (
    Catalog,
    DerivedFields,
    FieldRef,
    dependents,
    resolve_derived,
)
from models.data.databases.rules.fields import FieldSpec
from models.data.databases.rules.plan import refuse
from models.data.databases.tables import database
from models.data.records.recomputation import request_recomputation
from models.data.records.rules.write.dependencies import Stale
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

_SHOWN = 5


async def check_change(
    work: UnitOfWork, workspace_id: Id, ref: FieldRef, changed: FieldSpec, actor: Actor | None
) -> DerivedFields:
    """What the derived fields around a changed one give then; those that change alone.

    Raises `ValidationError` for what is wrong with the field itself, `ConflictError` when another
    could no longer follow from it. The actor is told the names they may see.
    """
    catalog = await load_catalog(work, workspace_id, [ref.database_id])
    broken = resolve_derived(catalog).problems
    catalog[ref.database_id][ref.key] = changed
    found = resolve_derived(catalog)
    if ref in found.problems:
        refuse([found.problems[ref]])
    problems = {other: what for other, what in found.problems.items() if other not in broken}
    if problems:
        named = await _named(work, workspace_id, actor, catalog, problems)
        raise ConflictError(f"Fields that follow from it would no longer work: {named}.")
    others = {
        other: spec
        for other, spec in found.fields.items()
        if other == ref or spec.settings != catalog[other.database_id][other.key].settings
    }
    return DerivedFields(others)


async def write_derived(
    work: UnitOfWork,
    workspace_id: Id,
    ref: FieldRef,
    changed: FieldSpec,
    actor: Actor | None = None,
) -> FieldSpec:
    """A changed field with what it gives now; what others give now is written.

    Raises what `check_change` raises.
    """
    found = await check_change(work, workspace_id, ref, changed, actor)
    for other, spec in found.fields.items():
        if other != ref:
            await write_field(work, workspace_id, spec, values_change=True)
    return found.fields.get(ref, changed)


async def recompute_dependents(
    work: UnitOfWork, workspace_id: Id, ref: FieldRef, user_id: Id
) -> None:
    """Have what follows from a field computed anew, all of whose values are others now."""
    catalog = await load_catalog(work, workspace_id, [ref.database_id])
    for other in dependents(catalog, ref):
        stale = Stale(other.database_id, (), [other.key])
        await request_recomputation(work, workspace_id, stale, user_id=user_id)


async def refuse_dependents(
    work: UnitOfWork, actor: Actor, catalog: Catalog, gone: Collection[FieldRef]
) -> None:
    """Raise `ConflictError` while other fields follow from those that are to go."""
    found = {other for ref in gone for other in dependents(catalog, ref)} - set(gone)
    if found:
        named = await _named(work, actor.workspace_id, actor, catalog, found)
        raise ConflictError(f"Other fields follow from it: {named}. Change or delete them first.")


async def _named(
    work: UnitOfWork,
    workspace_id: Id,
    actor: Actor | None,
    catalog: Catalog,
    refs: Collection[FieldRef],
) -> str:
    """The fields by their labels, and those of databases the actor does not see by no name."""
    labels = {}
    if actor is not None:
        rows = await work.rows(
            select(database.c.id, database.c.label).where(
                database.c.workspace_id == workspace_id,
                database.c.id == func.any([ref.database_id for ref in refs]),
                database.c.item_id.not_in(select(closed_items(actor).c.id)),
            )
        )
        labels = {row.id: row.label for row in rows}
    seen = [ref for ref in sorted(refs) if ref.database_id in labels]
    names = [
        f"{catalog[ref.database_id][ref.key].label} of {labels[ref.database_id]}"
        for ref in seen[:_SHOWN]
    ]
    more = len(refs) - len(names)
    if not names:
        return f"{more} fields"
    return ", ".join([*names, f"{more} more"] if more else names)
