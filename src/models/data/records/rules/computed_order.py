"""Computed values of a record that follow from others of it, and their order."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from models.core.base import Id
from models.core.values import InvalidValueError
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs
from models.data.fields.rules.values import ResultKind
from models.data.formulas.rules import CompiledFormula, compile_formula

FOLLOWING = frozenset({FieldKind.ROLLUP, FieldKind.LOOKUP})
"""Kinds whose value is read from related records."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Computed fields of some records of a database that no longer hold what they should."""

    database_id: Id
    record_ids: Collection[Id]
    keys: Collection[str]


def merged(parts: Iterable[Stale]) -> list[Stale]:
    """The same, each database once, in the order of their ids."""
    ids: dict[Id, set[Id]] = defaultdict(set)
    keys: dict[Id, set[str]] = defaultdict(set)
    for part in parts:
        if part.keys and part.record_ids:
            ids[part.database_id].update(part.record_ids)
            keys[part.database_id].update(part.keys)
    return [Stale(each, ids[each], keys[each]) for each in sorted(ids)]


def followers_of(fields: FieldSpecs) -> dict[str, list[str]]:
    """Key of a relation field → keys of the rollups and lookups that follow it."""
    followers: dict[str, list[str]] = defaultdict(list)
    for key, spec in fields.items():
        if spec.kind in FOLLOWING:
            followers[spec.settings["relationFieldKey"]].append(key)
    return followers


def formula_of(spec: FieldSpec, fields: FieldSpecs) -> CompiledFormula | None:
    """A field's formula; None when it does not fit the fields of its database."""
    result = ResultKind(spec.settings.get("resultKind") or ResultKind.JSON)
    try:
        return compile_formula(spec.settings["expression"], fields, result)
    except InvalidValueError:
        return None


def stale_after(
    fields: FieldSpecs, changed_keys: Collection[str] | None, stale: Collection[str] = ()
) -> list[FieldSpec]:
    """The computed fields of a record to compute after these changes, in that order.

    `changed_keys` name the written fields, None all of them; `stale` are computed fields that are
    known to need it.
    """
    touched = {*(fields if changed_keys is None else changed_keys), *stale}
    specs = [
        spec
        for key, spec in fields.items()
        if spec.kind in FOLLOWING
        and (key in touched or spec.settings["relationFieldKey"] in touched)
    ]
    touched.update(spec.key for spec in specs)
    for spec, formula in formulas_in_order(fields):
        if spec.key in touched or (formula is not None and formula.dependencies & touched):
            specs.append(spec)
            touched.add(spec.key)
    return specs


def formulas_in_order(fields: FieldSpecs) -> Iterator[tuple[FieldSpec, CompiledFormula | None]]:
    """The formulas of a database, each after those it reads."""
    waiting = {
        key: (spec, formula_of(spec, fields))
        for key, spec in fields.items()
        if spec.kind is FieldKind.FORMULA
    }
    while waiting:
        ready = [
            key
            for key, (_, formula) in waiting.items()
            if formula is None or not formula.dependencies & waiting.keys()
        ]
        # Fields are refused when they follow from themselves; were one stored, this still ends.
        for key in ready or list(waiting):
            yield waiting.pop(key)


def with_formulas(fields: FieldSpecs, keys: Collection[str]) -> set[str]:
    """These keys, and the keys of the formulas that follow from them."""
    found = set(keys)
    for spec, formula in formulas_in_order(fields):
        if formula is not None and formula.dependencies & found:
            found.add(spec.key)
    return found
