"""Inserting new fields, the inverse fields of relations and the result kinds of derived fields."""

from collections.abc import Callable, Iterator, Sequence

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.commands.formula_trials import refuse_endless
from models.data.databases.commands.layouts import add_to_layout
from models.data.databases.rules.plan import refuse
from models.data.fields.commands import insert_fields
from models.data.fields.queries import load_catalog, removed_keys
from models.data.fields.rules.buttons import button_problems
from models.data.fields.rules.field_keys import FieldHints
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.relations import Pairs, pair
from models.data.formulas.rules.derived_fields import DerivedFields, FieldRef, resolve_derived
from runtime.database import UnitOfWork
from runtime.errors import Detail
from runtime.ids import new_id


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
    pairs = Pairs()
    if any(spec.relation or spec.derived for spec in specs):
        targets = {spec.target_id for spec in specs if spec.relation}
        catalog = await load_catalog(work, actor.workspace_id, {database_id, *targets})
        catalog[database_id] = fields
        taken_keys = await removed_keys(work, actor.workspace_id, list(targets))
        relations = [spec for spec in specs if spec.relation]
        pairs = pair(database_id, label, relations, catalog, taken_keys, new_id)
        derived = resolve_derived(catalog)
        refuse(_problems(database_id, specs, pairs, derived, path_of))
        stored_specs = _completed(database_id, specs, pairs, derived)
        await refuse_endless(stored_specs, catalog[database_id], path_of)
    await insert_fields(work, actor.workspace_id, database_id, stored_specs)
    for target_id, inverses in pairs.inverses.items():
        await insert_fields(work, actor.workspace_id, target_id, inverses)
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
    database_id: Id, specs: Sequence[FieldSpec], pairs: Pairs, derived: DerivedFields
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
    pairs: Pairs,
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
