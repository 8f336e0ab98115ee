"""The fields that rollups, lookups and formulas are derived from, across relations (decisions C5).

A chain of derived fields is at most 10 levels deep and has no cycle.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from models.core.base import Id
from models.core.expressions.rules.errors import ExpressionError
from models.core.problems import an
from models.core.values import InvalidValueError
from models.data.fields.rules.aggregates import Aggregate, aggregate_result, usable_aggregates
from models.data.fields.rules.field_keys import no_relation
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.registry import ResultKind, value_form
from models.data.formulas.rules.formulas import compile_formula
from runtime.errors import Detail

MAX_DEPTH = 10


class FieldRef(NamedTuple):
    """One field of one database."""

    database_id: Id
    key: str


Catalog = Mapping[Id, FieldSpecs]
"""Databases that relations connect, with their fields."""


@dataclass(frozen=True, slots=True)
class DerivedFields:
    """The derived fields with their result kinds in their settings, and the problems of some."""

    fields: dict[FieldRef, FieldSpec] = field(default_factory=dict)
    problems: dict[FieldRef, Detail] = field(default_factory=dict)


def resolve_derived(catalog: Catalog) -> DerivedFields:
    """Check every derived field and find its result kind."""
    derived = DerivedFields()
    sources: dict[FieldRef, frozenset[FieldRef]] = {}
    for ref, spec in _derived_fields(catalog):
        try:
            sources[ref] = _sources(catalog, ref, spec)
        except _ProblemError as problem:
            derived.problems[ref] = problem.detail
    try:
        order = list(TopologicalSorter(sources).static_order())
    except CycleError as cycle:
        round_trip = list(reversed(cycle.args[1]))
        shown = " → ".join(ref.key for ref in round_trip)
        message = f"follows from itself: {shown}"
        derived.problems.update(dict.fromkeys(round_trip, Detail("settings", message)))
        return derived
    _resolve(catalog, order, sources, derived)
    return derived


def dependents(catalog: Catalog, ref: FieldRef) -> list[FieldRef]:
    """The derived fields whose settings name this one, as their source or as their relation."""
    refs = []
    for derived_ref, spec in _derived_fields(catalog):
        try:
            named = _sources(catalog, derived_ref, spec)
        except _ProblemError:
            continue
        by_way_of = FieldRef(derived_ref.database_id, spec.settings.get("relationFieldKey", ""))
        if ref in named or ref == by_way_of:
            refs.append(derived_ref)
    return refs


class _ProblemError(Exception):
    retryable = False

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.detail = Detail(f"settings.{path}", message)


def _derived_fields(catalog: Catalog) -> Iterator[tuple[FieldRef, FieldSpec]]:
    for database_id, fields in catalog.items():
        for key, spec in fields.items():
            if spec.derived:
                yield FieldRef(database_id, key), spec


def _resolve(
    catalog: Catalog,
    order: list[FieldRef],
    sources: Mapping[FieldRef, frozenset[FieldRef]],
    derived: DerivedFields,
) -> None:
    """Resolve the fields in topological order: each after all of its sources."""
    resolved = {database_id: dict(fields) for database_id, fields in catalog.items()}
    depths: dict[FieldRef, int] = defaultdict(int)
    for ref in order:
        if ref not in sources:
            continue
        depths[ref] = 1 + max((depths[source] for source in sources[ref]), default=0)
        spec = resolved[ref.database_id][ref.key]
        try:
            _check_depth(spec, depths[ref])
            settings = {**spec.settings, **_result(resolved, ref, spec)}
        except _ProblemError as problem:
            derived.problems[ref] = problem.detail
            continue
        derived.fields[ref] = replace(spec, settings=settings)
        resolved[ref.database_id][ref.key] = derived.fields[ref]


def _check_depth(spec: FieldSpec, depth: int) -> None:
    if depth > MAX_DEPTH:
        name = "expression" if spec.kind is FieldKind.FORMULA else "targetFieldKey"
        raise _ProblemError(name, f"follows from others over {MAX_DEPTH} levels deep")


def _sources(catalog: Catalog, ref: FieldRef, spec: FieldSpec) -> frozenset[FieldRef]:
    if spec.kind is FieldKind.FORMULA:
        fields = catalog[ref.database_id]
        try:
            keys = compile_formula(spec.settings["expression"], fields).dependencies
        except InvalidValueError as problem:
            raise _ProblemError("expression", str(problem)) from problem
        return frozenset(FieldRef(ref.database_id, key) for key in keys)
    return frozenset({_target(catalog, ref, spec)})


def _target(catalog: Catalog, ref: FieldRef, spec: FieldSpec) -> FieldRef:
    """The field that a rollup or lookup reads at the other end of its relation."""
    fields, key = catalog[ref.database_id], spec.settings["relationFieldKey"]
    way = fields.get(key)
    if way is None or not way.relation:
        raise _ProblemError("relationFieldKey", no_relation(key, fields))
    target = catalog.get(way.target_id, {}).get(spec.settings["targetFieldKey"])
    if target is None:
        # The keys there are stay unsaid: who writes here need not see the related database.
        raise _ProblemError("targetFieldKey", "is not the key of a field of the related database")
    if target.relation or target.kind is FieldKind.BUTTON:
        raise _ProblemError(
            "targetFieldKey", f"is {an(target.kind)} field, which has no value to read"
        )
    return FieldRef(way.target_id, target.key)


def _result(catalog: Catalog, ref: FieldRef, spec: FieldSpec) -> dict[str, str]:
    """The settings of a derived field that follow from its resolved sources."""
    if spec.kind is FieldKind.FORMULA:
        return {"resultKind": _formula_result(spec, catalog[ref.database_id]).value}
    if spec.kind is FieldKind.LOOKUP:
        return {}
    target = _target(catalog, ref, spec)
    form = value_form(catalog[target.database_id][target.key])
    result = aggregate_result(Aggregate(spec.settings["aggregate"]), form)
    if result is None:
        usable = ", ".join(usable_aggregates(form))
        raise _ProblemError("aggregate", f"must be an aggregate that {target.key} takes: {usable}")
    return {"resultKind": result.value}


def _formula_result(spec: FieldSpec, fields: FieldSpecs) -> ResultKind:
    """The kind asked for, or the only one the formula can give; `json` when the data decides."""
    expression, wanted = spec.settings["expression"], spec.settings.get("resultKind")
    _require_value(expression, fields)
    if wanted is not None:
        _fits(expression, fields, ResultKind(wanted), must=True)
        return ResultKind(wanted)
    likely = (ResultKind.CHECKBOX, ResultKind.NUMBER, ResultKind.TEXT, ResultKind.DATETIME)
    fitting = [result for result in likely if _fits(expression, fields, result)]
    anything = len(fitting) == len(likely)
    return fitting[0] if fitting and not anything else ResultKind.JSON


def _require_value(expression: str, fields: FieldSpecs) -> None:
    try:
        compile_formula(expression, fields).require_value()
    except InvalidValueError:
        # Its types may fit for some records all the same; `_fits` decides.
        return
    except ExpressionError as problem:
        raise _ProblemError("expression", f"is not a formula: {problem.message}") from problem


def _fits(expression: str, fields: FieldSpecs, result: ResultKind, *, must: bool = False) -> bool:
    try:
        compile_formula(expression, fields, result)
    except InvalidValueError as problem:
        if must:
            raise _ProblemError("expression", str(problem)) from problem
        return False
    return True
