"""Adding, changing and removing fields, with what is derived from them or names them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionLimitError
from models.core.problems import an, refuse
from models.data import record_templates
from models.data.databases.rules import layout_with, layout_without, plan_change, plan_field
from models.data.fields import commands, queries
from models.data.fields.rows import DATABASE
from models.data.fields.rules.fields import FieldHints, FieldKind, FieldSpec, FieldSpecs, Schema
from models.data.fields.rules.new_fields import PairedRelations, button_problems, pair_relations
from models.data.fields.shapes import MAX_FIELDS, CreateField, FieldShape, UpdateField
from models.data.formulas.rules import Catalog, DerivedFields, FieldRef, dependents, resolve_derived
from models.data.records import bulk
from models.data.records.computed_values import recompute, recompute_field, request_recomputation
from models.data.records.queries import number_of_records
from models.data.records.rules.computed_order import Stale, formula_of
from models.data.records.side_index import index_records
from models.data.views import commands as views
from models.messages.jobs.store import JobRow, accept_job
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, Detail, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.temporal.workflow_kinds import WorkflowKind


async def create_field(
    work: UnitOfWork, actor: Actor, database_id: Id, body: CreateField
) -> FieldShape:
    """A new field, and for a relation its inverse in the database it points into.

    Raises `NotFoundError` or `DeniedError` for what the settings name, `ValidationError` for what
    is wrong with the field, `ConflictError` for a key in use or too many fields.
    """
    await queries.check_references(work, actor, [(body.kind, body.settings)])
    schema = await _lock_and_load(work, actor, database_id)
    removed = await queries.removed_keys(work, actor.workspace_id, [database_id])
    spec = _planned(schema.fields, body, removed[database_id])
    held = await commands.hold_database(work, actor.workspace_id, database_id)
    (spec,) = await add_fields(
        work, actor, database_id, held.label, schema.fields, [spec], lambda _: ""
    )
    fields = (await queries.load_schema(work, actor.workspace_id, database_id)).fields
    await add_to_layout(work, actor.workspace_id, database_id, fields, [spec.key])
    if spec.kind is FieldKind.AUTO_NUMBER:
        await bulk.number_records(work, actor.workspace_id, database_id)
    if spec.derived:
        now = Schema(actor.workspace_id, database_id, fields)
        await recompute_field(work, actor, now, spec.key)
    return await queries.get_field(work, actor.workspace_id, database_id, spec.id)


async def update_field(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    body: UpdateField,
    expected_updated_at: datetime | None = None,
) -> FieldShape:
    """Change what the body names; `expected_updated_at` is as last read.

    An option that the list leaves out is removed from the records that chose it. Raises what
    `create_field` raises, and `ConflictError` when the field is no longer the one that was read.
    """
    schema = await _lock_and_load(work, actor, database_id)
    before = held_field(schema, field_id)
    await expected_field(work, actor, database_id, field_id, expected_updated_at)
    if body.settings is not None:
        await queries.check_references(work, actor, [(before.kind, body.settings)])
    after = plan_change(before, body, new_id)
    refuse(button_problems(after, schema.fields, FieldHints(schema.fields)))
    if after.relation and after.settings["cardinality"] != before.settings["cardinality"]:
        await commands.own_schema(work, after.target_id)
        if after.settings["cardinality"] == "one":
            await bulk.refuse_several(work, actor.workspace_id, after)
    derived_anew = after.derived and after.settings != before.settings
    if derived_anew:
        ref = FieldRef(database_id, after.key)
        after = await write_derived(work, actor.workspace_id, ref, after, actor)
    await commands.write_field(work, actor.workspace_id, after, values_change=derived_anew)
    await commands.write_database(work, actor.workspace_id, database_id)
    now = replace(schema, fields={**schema.fields, after.key: after})
    if derived_anew:
        await recompute_field(work, actor, now, after.key)
    removed = before.option_keys.keys() - after.option_keys.keys()
    if removed:
        await remove_invalid_usages(work, now, after.key)
        cleared = await bulk.clear_options(work, schema, after, removed)
        await recompute(work, now, cleared, [after.key])
        await index_records(work, now, cleared, [after.key])
    return await queries.get_field(work, actor.workspace_id, database_id, field_id)


async def delete_field(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    job_id: Id,
    expected_updated_at: datetime | None = None,
) -> FieldShape:
    """Delete a field for good, with the inverse of a relation; gives it as it was.

    Its values are no longer visible. Where there are many, a job removes them from the records, and
    no other field gets the key until it is done. Raises `NotFoundError`, and `ConflictError` for
    the title, while other fields are derived from this one, and when it was changed since it was
    read.
    """
    schema = await _lock_and_load(work, actor, database_id)
    spec = held_field(schema, field_id)
    shape = await expected_field(work, actor, database_id, field_id, expected_updated_at)
    if spec.title:
        raise ConflictError("The title field cannot be deleted: every record has a title.")
    specs = {FieldRef(database_id, spec.key): spec}
    catalog = await queries.load_catalog(work, actor.workspace_id, [database_id])
    if spec.relation and spec.inverse_id != spec.id:
        await commands.own_schema(work, spec.target_id)
        inverse = _inverse(catalog[spec.target_id], spec)
        specs[FieldRef(spec.target_id, inverse.key)] = inverse
    await refuse_dependents(work, actor, catalog, specs)
    for ref, removed_spec in specs.items():
        await remove_field(work, actor, ref, removed_spec, job_id)
    return shape


async def expected_field(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    expected_updated_at: datetime | None,
) -> FieldShape:
    """The field. Raises `ConflictError` when it was changed since it was read."""
    shape = await queries.get_field(work, actor.workspace_id, database_id, field_id)
    if expected_updated_at is not None and shape.updated_at != expected_updated_at:
        raise ConflictError("The field was changed since it was read. Read it again.")
    return shape


def held_field(schema: Schema, field_id: Id) -> FieldSpec:
    """The field of this id. Raises `NotFoundError`."""
    found = next((spec for spec in schema.fields.values() if spec.id == field_id), None)
    if found is None:
        raise NotFoundError("field")
    return found


async def _lock_and_load(work: UnitOfWork, actor: Actor, database_id: Id) -> Schema:
    """The fields of a database, locked against other changes and against writers of records."""
    await commands.own_fields(work, actor.workspace_id)
    await commands.own_schema(work, database_id)
    return await queries.load_schema(work, actor.workspace_id, database_id)


def _planned(
    present_fields: FieldSpecs, body: CreateField, taken_keys: Collection[str]
) -> FieldSpec:
    if len(present_fields) >= MAX_FIELDS:
        raise ConflictError(f"A database has at most {MAX_FIELDS} fields. Delete one first.")
    if body.key in present_fields:
        raise ConflictError(f"The key {body.key} is in use. Choose another key.")
    if body.key in taken_keys:
        raise ConflictError(
            f"The values of a deleted field with the key {body.key} are still being removed."
            " Choose another key, or try again later."
        )
    position = 1 + max(spec.position for spec in present_fields.values())
    return plan_field(body, new_id, {*present_fields, *taken_keys}, position)


def _inverse(fields: FieldSpecs, relation: FieldSpec) -> FieldSpec:
    return next(spec for spec in fields.values() if spec.id == relation.inverse_id)


async def add_fields(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    label: str,
    present_fields: FieldSpecs,
    specs: Sequence[FieldSpec],
    path_of: Callable[[str], str],
) -> list[FieldSpec]:
    """Insert planned fields into a database; gives them as they are stored.

    `label` is that of the database, `present_fields` are the fields it has; `path_of` gives the
    path in the request of the field with a key. The caller holds the lock `own_fields` when a
    relation or a derived field is added. Raises `ValidationError`.
    """
    fields = {**present_fields, **{spec.key: spec for spec in specs}}
    refuse(list(_button_problems(specs, fields, path_of)))
    stored_specs = list(specs)
    pairs = PairedRelations()
    if any(spec.relation or spec.derived for spec in specs):
        targets = {spec.target_id for spec in specs if spec.relation}
        catalog = await queries.load_catalog(work, actor.workspace_id, {database_id, *targets})
        catalog[database_id] = fields
        taken_keys = await queries.removed_keys(work, actor.workspace_id, list(targets))
        relations = [spec for spec in specs if spec.relation]
        pairs = pair_relations(database_id, label, relations, catalog, taken_keys, new_id)
        derived = resolve_derived(catalog)
        refuse(_problems(database_id, specs, pairs, derived, path_of))
        stored_specs = _completed(database_id, specs, pairs, derived)
        await refuse_endless(stored_specs, catalog[database_id], path_of)
    await commands.insert_fields(work, actor.workspace_id, database_id, stored_specs)
    for target_id, inverses in pairs.inverses.items():
        await commands.insert_fields(work, actor.workspace_id, target_id, inverses)
        shown = {**catalog[target_id], **{spec.key: spec for spec in inverses}}
        new_keys = [spec.key for spec in inverses]
        await add_to_layout(work, actor.workspace_id, target_id, shown, new_keys)
    return stored_specs


def _button_problems(
    specs: Sequence[FieldSpec], fields: FieldSpecs, path_of: Callable[[str], str]
) -> Iterator[Detail]:
    hints = FieldHints(fields)
    for spec in specs:
        for problem in button_problems(spec, fields, hints):
            yield Detail(f"{path_of(spec.key)}{problem.path}", problem.message)


def _completed(
    database_id: Id, specs: Sequence[FieldSpec], pairs: PairedRelations, derived: DerivedFields
) -> list[FieldSpec]:
    """The added fields: relations with their inverse, derived ones with their result kind."""
    known = {
        ref.key: spec for ref, spec in derived.fields.items() if ref.database_id == database_id
    }
    known |= {relation.key: relation for relation in pairs.relations}
    return [known.get(spec.key, spec) for spec in specs]


def _problems(
    database_id: Id,
    specs: Sequence[FieldSpec],
    pairs: PairedRelations,
    found: DerivedFields,
    path_of: Callable[[str], str],
) -> list[Detail]:
    """The problems of the added fields; problems of other fields are not for this request."""
    problems = []
    for spec in specs:
        derived = found.problems.get(FieldRef(database_id, spec.key))
        problem = pairs.problems.get(spec.key) or derived
        if problem is not None:
            problems.append(Detail(f"{path_of(spec.key)}{problem.path}", problem.message))
    return problems


_SHOWN = 5


async def check_change(
    work: UnitOfWork, workspace_id: Id, ref: FieldRef, new_spec: FieldSpec, actor: Actor | None
) -> DerivedFields:
    """The derived fields whose settings change when a field does, the field itself among them.

    Raises `ValidationError` for problems of the field itself, `ConflictError` when another could no
    longer be derived from it; the message names only databases that the actor sees.
    """
    catalog = await queries.load_catalog(work, workspace_id, [ref.database_id])
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
        raise ConflictError(f"Fields that depend on it would stop working: {named}.")
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
            await commands.write_field(work, workspace_id, spec, values_change=True)
    return derived.fields.get(ref, new_spec)


async def recompute_dependents(
    work: UnitOfWork, workspace_id: Id, ref: FieldRef, user_id: Id
) -> None:
    """Request the recomputation of what is derived from a field all of whose values changed."""
    catalog = await queries.load_catalog(work, workspace_id, [ref.database_id])
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
        raise ConflictError(f"Other fields depend on it: {named}. Change or delete them first.")


async def _named(
    work: UnitOfWork,
    actor: Actor | None,
    catalog: Catalog,
    refs: Collection[FieldRef],
) -> str:
    """A list of fields by their labels; fields of databases the actor does not see are counted."""
    labels = {}
    if actor is not None:
        labels = await queries.seen_labels(work, actor, {ref.database_id for ref in refs})
    seen = [ref for ref in sorted(refs) if ref.database_id in labels]
    names = [
        f"{catalog[ref.database_id][ref.key].label} of {labels[ref.database_id]}"
        for ref in seen[:_SHOWN]
    ]
    more = len(refs) - len(names)
    if not names:
        return f"{more} fields"
    return ", ".join([*names, f"{more} more"] if more else names)


async def refuse_endless(
    specs: Iterable[FieldSpec], fields: FieldSpecs, path_of: Callable[[str], str]
) -> None:
    """Raise `ValidationError` for a formula that goes over the limit of one evaluation.

    `path_of` gives the path in the request of the field with a key.
    """
    problems = []
    for spec in specs:
        formula = formula_of(spec, fields) if spec.kind is FieldKind.FORMULA else None
        if formula is None:
            continue
        try:
            await evaluate_bounded(partial(formula.evaluate, {}))
        except ExpressionLimitError as error:
            problems.append(Detail(f"{path_of(spec.key)}settings.expression", error.message))
    refuse(problems)


async def add_to_layout(
    work: UnitOfWork, workspace_id: Id, database_id: Id, fields: FieldSpecs, new_keys: list[str]
) -> None:
    """Add new fields to the layout of a database; `fields` has them already."""
    row = await commands.hold_database(work, workspace_id, database_id)
    layout = layout_with(row.record_layout, fields, new_keys)
    await commands.write_database(work, workspace_id, database_id, record_layout=layout)


async def remove_from_layout(work: UnitOfWork, workspace_id: Id, database_id: Id, key: str) -> None:
    """Take a field out of the layout of its database."""
    held = await commands.hold_database(work, workspace_id, database_id)
    layout = layout_without(held.record_layout, key)
    await commands.write_database(work, workspace_id, database_id, record_layout=layout)


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


async def remove_field(
    work: UnitOfWork, actor: Actor, ref: FieldRef, spec: FieldSpec, job_id: Id
) -> None:
    """Remove a field and its values, many values by a job; the caller holds the schema lock."""
    workspace_id, database_id = actor.workspace_id, ref.database_id
    await remove_usages(work, workspace_id, database_id, spec.key)
    await remove_from_layout(work, workspace_id, database_id, spec.key)
    await commands.delete_field_row(work, workspace_id, spec.id)
    if not (spec.stored or spec.computed):
        return
    last = await bulk.strip_values(
        work, workspace_id, database_id, spec.key, None, computed=spec.computed
    )
    if last is None:
        return
    await commands.remember_removed(work, workspace_id, database_id, spec)
    await accept_job(
        work,
        actor,
        WorkflowKind.FIELD_REMOVAL,
        job_id,
        spec.id,
        summary=f"Remove the values of {an(spec.kind)} field",
        input={"computed": spec.computed, "after": str(last)},
    )


async def remove_chunk(work: UnitOfWork, job: JobRow) -> JsonObject | None:
    """Remove the values from more records; gives the progress to continue from, None at the end."""
    row = await queries.find_removed(work, job.workspace_id, job.subject_id)
    if row is None:
        return None
    after = Id(job.progress.get("after", job.input["after"]))
    last = await bulk.strip_values(
        work,
        job.workspace_id,
        row.database_id,
        row.key,
        after,
        computed=job.input["computed"],
    )
    if last is not None:
        return {"after": str(last)}
    await commands.forget_removed(work, job.workspace_id, job.subject_id)
    return None


MOST_RECORDS = 50_000
"""Records whose values one transaction keeps under another key."""

KEYWORDS = frozenset({"false", "in", "null", "true"})
"""Keys that expressions cannot name behind a dot."""


async def hold_field(work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id) -> FieldSpec:
    """A field, locked with its database against writers of records. Raises `NotFoundError`."""
    return held_field(await _lock_and_load(work, actor, database_id), field_id)


async def rename_key(
    work: UnitOfWork, actor: Actor, database_id: Id, spec: FieldSpec, key: str
) -> None:
    """Give a field that is held another key, and keep its values under it.

    The history of records keeps the key that a field had. Raises ConflictError for the title, a key
    in use and too many records, ValidationError for a key that expressions cannot name.
    """
    if spec.title:
        raise ConflictError("The title field has a fixed key.")
    if key in KEYWORDS:
        raise ValidationError.at("key", "is a keyword of expressions: choose another key")
    schema = await queries.load_schema(work, actor.workspace_id, database_id)
    removed = await queries.removed_keys(work, actor.workspace_id, [database_id])
    if key in schema.fields or key in removed[database_id]:
        raise ConflictError(f"The key {key} is in use. Choose another key.")
    if spec.stored or spec.computed:
        counted = number_of_records(actor.workspace_id).where(DATABASE.id == database_id)
        number = int(await work.scalar(counted))
        if number > MOST_RECORDS:
            raise ConflictError(
                f"The database has {number:,} records. A field can be renamed in a database of up"
                f" to {MOST_RECORDS:,} records."
            )
        place = (actor.workspace_id, database_id, spec.key, key)
        await bulk.rename_values(work, *place, computed=spec.computed)
    await commands.write_key(work, actor.workspace_id, spec.id, key)
    await commands.write_database(work, actor.workspace_id, database_id)
