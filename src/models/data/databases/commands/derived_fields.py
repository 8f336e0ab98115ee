"""Changes of a field that other fields are derived from."""

from collections.abc import Collection

from sqlalchemy import func

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.commands.formula_trials import refuse_endless
from models.data.databases.rules.plan import refuse
from models.data.fields.commands import write_field
from models.data.fields.joins import DATABASE, open_databases
from models.data.fields.queries import load_catalog
from models.data.fields.rules.fields import FieldSpec
from models.data.formulas.rules.derived_fields import (
    Catalog,
    DerivedFields,
    FieldRef,
    dependents,
    resolve_derived,
)
from models.data.records.commands.recomputation_jobs import request_recomputation
from models.data.records.rules.write.computed_order import Stale
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

_SHOWN = 5


async def check_change(
    work: UnitOfWork, workspace_id: Id, ref: FieldRef, new_spec: FieldSpec, actor: Actor | None
) -> DerivedFields:
    """The derived fields whose settings change when a field does, the field itself among them.

    Raises `ValidationError` for problems of the field itself, `ConflictError` when another could no
    longer be derived from it; the message names only databases that the actor sees.
    """
    catalog = await load_catalog(work, workspace_id, [ref.database_id])
    broken = resolve_derived(catalog).problems
    catalog[ref.database_id][ref.key] = new_spec
    derived = resolve_derived(catalog)
    if ref in derived.problems:
        refuse([derived.problems[ref]])
    await refuse_endless(
        [derived.fields.get(ref, new_spec)], catalog[ref.database_id], lambda _: ""
    )
    problems = {
        other_ref: what for other_ref, what in derived.problems.items() if other_ref not in broken
    }
    if problems:
        named = await _named(work, actor, catalog, problems)
        raise ConflictError(f"Fields that follow from it would no longer work: {named}.")
    changed_fields = {
        other_ref: spec
        for other_ref, spec in derived.fields.items()
        if other_ref == ref
        or spec.settings != catalog[other_ref.database_id][other_ref.key].settings
    }
    return DerivedFields(changed_fields)


async def write_derived(
    work: UnitOfWork,
    workspace_id: Id,
    ref: FieldRef,
    new_spec: FieldSpec,
    actor: Actor | None = None,
) -> FieldSpec:
    """Write the derived fields that change with a field; gives the field with its own settings.

    Raises what `check_change` raises.
    """
    derived = await check_change(work, workspace_id, ref, new_spec, actor)
    for other_ref, spec in derived.fields.items():
        if other_ref != ref:
            await write_field(work, workspace_id, spec, values_change=True)
    return derived.fields.get(ref, new_spec)


async def recompute_dependents(
    work: UnitOfWork, workspace_id: Id, ref: FieldRef, user_id: Id
) -> None:
    """Request the recomputation of what is derived from a field all of whose values changed."""
    catalog = await load_catalog(work, workspace_id, [ref.database_id])
    for other in dependents(catalog, ref):
        stale = Stale(other.database_id, (), [other.key])
        await request_recomputation(work, workspace_id, stale, user_id=user_id)


async def refuse_dependents(
    work: UnitOfWork, actor: Actor, catalog: Catalog, refs: Collection[FieldRef]
) -> None:
    """Raise `ConflictError` while other fields are derived from those to be removed."""
    derived_refs = {derived for ref in refs for derived in dependents(catalog, ref)} - set(refs)
    if derived_refs:
        named = await _named(work, actor, catalog, derived_refs)
        raise ConflictError(f"Other fields follow from it: {named}. Change or delete them first.")


async def _named(
    work: UnitOfWork,
    actor: Actor | None,
    catalog: Catalog,
    refs: Collection[FieldRef],
) -> str:
    """A list of fields by their labels; fields of databases the actor does not see are counted."""
    labels = {}
    if actor is not None:
        rows = await work.rows(
            open_databases(actor, DATABASE.id, DATABASE.label).where(
                DATABASE.id == func.any([ref.database_id for ref in refs])
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
