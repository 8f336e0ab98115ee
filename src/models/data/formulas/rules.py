"""Formulas, and the fields derived from others by them, by rollups and by lookups. Pure.

A chain of derived fields is at most 10 levels deep and has no cycle.

In a formula `record.<key>` is the value of a field, typed by its kind: text, double, bool, list,
and for dates a timestamp (a day begins at midnight UTC). An empty value is null, an empty list
`[]`, an unset checkbox false; null in arithmetic gives null: `record.price == null ? 0.0 :
record.price`. Whole numbers in the text count as doubles where the formula has no meaning
otherwise: `record.price * 2`.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from decimal import Decimal
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, cast

from models.core import values as core_values
from models.core.base import Id
from models.core.expressions.rules import cel_text
from models.core.expressions.rules.errors import ExpressionError, ExpressionLimitError
from models.core.expressions.rules.programs import Program, Type, environment
from models.core.filters.grammar import ValueForm
from models.core.problems import an
from models.data.fields.rules.fields import (
    FieldKind,
    FieldSpec,
    FieldSpecs,
    FieldValue,
    no_field,
    no_relation,
)
from models.data.fields.rules.settings import Aggregate, aggregate_result, usable_aggregates
from models.data.fields.rules.values import MAX_JSON_DEPTH, ResultKind, value_form
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
        message = f"depends on itself: {shown}"
        derived.problems.update(dict.fromkeys(round_trip, Detail("settings", message)))
        return derived
    _resolve(catalog, order, sources, derived)
    return derived


def dependents(catalog: Catalog, ref: FieldRef) -> list[FieldRef]:
    """The derived fields whose settings name this one, as their source or as their relation."""
    return dependents_by_source(catalog)[ref]


def dependents_by_source(catalog: Catalog) -> Mapping[FieldRef, list[FieldRef]]:
    """The `dependents` of every field; a field without any has an empty list."""
    refs: defaultdict[FieldRef, list[FieldRef]] = defaultdict(list)
    for derived_ref, spec in _derived_fields(catalog):
        try:
            sources = _sources(catalog, derived_ref, spec)
        except _ProblemError:
            continue
        by_way_of = FieldRef(derived_ref.database_id, spec.settings.get("relationFieldKey", ""))
        for ref in {*sources, by_way_of}:
            refs[ref].append(derived_ref)
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
        raise _ProblemError(name, f"depends on others over {MAX_DEPTH} levels deep")


def _sources(catalog: Catalog, ref: FieldRef, spec: FieldSpec) -> frozenset[FieldRef]:
    if spec.kind is FieldKind.FORMULA:
        fields = catalog[ref.database_id]
        try:
            keys = compile_formula(spec.settings["expression"], fields).dependencies
        except core_values.InvalidValueError as problem:
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
    except core_values.InvalidValueError:
        # Its types may fit for some records all the same; `_fits` decides.
        return
    except ExpressionError as problem:
        raise _ProblemError("expression", f"is not a formula: {problem.message}") from problem


def _fits(expression: str, fields: FieldSpecs, result: ResultKind, *, must: bool = False) -> bool:
    try:
        compile_formula(expression, fields, result)
    except core_values.InvalidValueError as problem:
        if must:
            raise _ProblemError("expression", str(problem)) from problem
        return False
    return True


_KEYWORDS = frozenset({"false", "in", "null", "true"})
"""CEL keywords that can also be field keys; in a formula such a key is spelled in capitals."""

_NULLABLE = re.compile(r"wrapper\((\w+)\)")
_TYPES: dict[ValueForm, Type] = {
    ValueForm.NUMBER: Type.NUMBER,
    ValueForm.BOOLEAN: Type.BOOLEAN,
    ValueForm.DAY: Type.MOMENT,
    ValueForm.MOMENT: Type.MOMENT,
    ValueForm.OPTIONS: Type.TEXTS,
    ValueForm.USERS: Type.TEXTS,
    ValueForm.FILES: Type.TEXTS,
    ValueForm.VALUES: Type.LIST,
    ValueForm.OPAQUE: Type.ANY,
}
"""Any other form is text."""

_LISTS = frozenset({ValueForm.OPTIONS, ValueForm.USERS, ValueForm.FILES, ValueForm.VALUES})
_UNREADABLE = frozenset({FieldKind.RELATION, FieldKind.BUTTON})
_GIVEN: dict[ResultKind, frozenset[str]] = {
    ResultKind.TEXT: frozenset({"STRING", "DYN"}),
    ResultKind.NUMBER: frozenset({"INT", "UINT", "DOUBLE", "DURATION", "DYN"}),
    ResultKind.CHECKBOX: frozenset({"BOOL", "DYN"}),
    ResultKind.DATE: frozenset({"TIMESTAMP", "STRING", "DYN"}),
    ResultKind.DATETIME: frozenset({"TIMESTAMP", "STRING", "DYN"}),
}


@dataclass(frozen=True, slots=True)
class _Input:
    """A field a formula reads."""

    key: str
    form: ValueForm
    checkbox: bool

    @property
    def name(self) -> str:
        """The variable."""
        return f"record.{_spelled(self.key)}"

    @property
    def type(self) -> Type:
        return _TYPES.get(self.form, Type.TEXT)

    def read(self, value: object) -> object:
        """A stored value as the formula sees it; one of another form than its field's is empty."""
        reader = _READERS.get(self.form, _text)
        try:
            return reader(value)
        except core_values.InvalidValueError:
            return self._nothing

    @property
    def _nothing(self) -> list[object] | bool | None:
        """The value that a formula sees of an empty field."""
        if self.form in _LISTS:
            return []
        return False if self.checkbox else None


@dataclass(frozen=True, slots=True)
class CompiledFormula:
    """A formula that fits the fields of its database."""

    text: str
    inputs: tuple[_Input, ...]
    result: ResultKind

    @property
    def dependencies(self) -> frozenset[str]:
        """The keys of the fields it reads."""
        return frozenset(each.key for each in self.inputs)

    def require_value(self) -> None:
        """Raises ExpressionError for a formula that has no value for any record."""
        _program(self.text, self.inputs, frozenset()).require_value()

    def evaluate(self, values: Mapping[str, Any]) -> FieldValue:
        """The value for a record's values by field key, in its stored form.

        None when an empty value leads to none, when a number has more digits than a double holds,
        when the evaluation fails, and when the result is not of the expected kind. Raises
        ExpressionLimitError for one that takes too much, and WouldBlockError as `Program.run`.
        """
        try:
            data = {each.name: each.read(values.get(each.key)) for each in self.inputs}
            missing = frozenset(
                each.name
                for each in self.inputs
                if each.type is Type.MOMENT and not data[each.name]
            )
            return _RESULTS[self.result](_program(self.text, self.inputs, missing).run(data))
        except (ExpressionError, core_values.InvalidValueError) as error:
            if isinstance(error, ExpressionLimitError):
                raise
            return None


def compile_formula(
    expression: str, fields: FieldSpecs, result: ResultKind = ResultKind.JSON
) -> CompiledFormula:
    """Check a formula against the fields of its database.

    Raises `InvalidValueError` with the sentence that says what is wrong.
    """
    _refuse_questions(expression)
    source = cel_text.dotted(expression, "record", _spelled)
    keys = cel_text.selections(source, "record")
    if keys is None:
        raise core_values.InvalidValueError("must name each field it reads, as record.<key>")
    inputs = tuple(_input(fields, key) for key in sorted(keys))
    try:
        return _compiled(source, inputs, result)
    except core_values.InvalidValueError as problem:
        raise core_values.InvalidValueError(f"{problem}{_bare_field(source, fields)}") from None


def _bare_field(text_: str, fields: FieldSpecs) -> str:
    """The correction for a field that is named without `record`, by its key or its label."""
    bare = {name.lower() for name in cel_text.free_names(text_)} - _KEYWORDS
    found = (key for key, spec in fields.items() if bare & {key.lower(), spec.label.lower()})
    key = next(found, None)
    return "" if key is None else f". The field is read as record.{key}"


def _refuse_questions(expression: str) -> None:
    read = [token.text for token in cel_text.tokens(expression)]
    for place, word in enumerate(read):
        if read[place : place + 3] == ["has", "(", "record"] or (
            word == "record" and "?" in read[place + 1 : place + 3] and read[place + 1] in ".["
        ):
            raise core_values.InvalidValueError(
                "cannot ask with has(…) or ? for a field: compare it with null, or write "
                "coalesce(record.price, 0)"
            )


def _spelled(key: str) -> str:
    return key.upper() if key in _KEYWORDS else key


def _input(fields: FieldSpecs, name: str) -> _Input:
    spec = fields.get(name.lower() if name.lower() in _KEYWORDS else name)
    if spec is None:
        raise core_values.InvalidValueError(f'reads "{name[:100]}", which {no_field(name, fields)}')
    if spec.kind in _UNREADABLE:
        raise core_values.InvalidValueError(
            f'reads "{spec.key}", {an(spec.kind)} field, which a formula cannot'
        )
    return _Input(spec.key, value_form(spec), checkbox=spec.kind is FieldKind.CHECKBOX)


@lru_cache(maxsize=4_096)
def _compiled(source: str, inputs: tuple[_Input, ...], result: ResultKind) -> CompiledFormula:
    try:
        program, checked_source = _checked(source, inputs)
    except ExpressionError as problem:
        raise core_values.InvalidValueError(_sentence(problem.message)) from None
    if program.type not in _GIVEN.get(result, {program.type}):
        raise core_values.InvalidValueError(
            f"gives {program.type.lower()} where resultKind is {result}"
        )
    return CompiledFormula(checked_source, inputs, result)


def _checked(source: str, inputs: tuple[_Input, ...]) -> tuple[Program, str]:
    surrounding = environment({each.name: each.type for each in inputs})
    spellings = [source, cel_text.with_doubles(source)]
    if cel_text.COALESCE in cel_text.names(source):
        # The type is known only with data, and then the numbers of fields are doubles.
        spellings.reverse()
    problems: dict[str, ExpressionError] = {}
    for spelling in spellings:
        try:
            return Program(surrounding, spelling), spelling
        except ExpressionError as problem:
            problems[spelling] = problem
    raise problems[source]


def _sentence(message: str) -> str:
    message = _NULLABLE.sub(r"\1", message)
    if "overload" in message and "int" in message:
        message += ". Numbers of fields are doubles: write 2.0 for 2, double(…) around an int"
    return f"is not a formula: {message}"


@lru_cache(maxsize=4_096)
def _program(text_: str, inputs: tuple[_Input, ...], missing: frozenset[str]) -> Program:
    """The program that runs: it accepts null wherever a value may be missing."""
    present = {
        each.name: each.type if each.type is Type.MOMENT and each.name not in missing else Type.ANY
        for each in inputs
    }
    return Program(environment(present), text_)


def _text(value: object) -> str:
    return core_values.text(value, longest=core_values.MAX_LONG_TEXT)


def _double(value: object) -> float:
    operand = core_values.number(value)
    if abs(operand) < core_values.EXACT or isinstance(operand, float):
        return float(operand)
    try:
        return float(core_values.exact_number(Decimal(operand)))
    except core_values.InvalidValueError as error:
        raise ExpressionError(f"The number {operand} {error}.") from None


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise core_values.InvalidValueError("must be true or false")
    return value


def _midnight(value: object) -> datetime:
    return datetime.combine(core_values.day(value), time(), UTC)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise core_values.InvalidValueError("must be a list")
    return [
        _double(each) if isinstance(each, int) and not isinstance(each, bool) else each
        for each in value
    ]


_READERS: dict[ValueForm, Callable[[object], object]] = {
    ValueForm.NUMBER: _double,
    ValueForm.BOOLEAN: _boolean,
    ValueForm.DAY: _midnight,
    ValueForm.MOMENT: core_values.moment,
    **dict.fromkeys(_LISTS, _list),
    ValueForm.OPAQUE: lambda value: value,
}


def _finite(value: object) -> int | float:
    """A number; a whole one without a fraction, as JSON has one kind of number."""
    given = core_values.number(value)
    return int(given) if given == int(given) and abs(given) < core_values.EXACT else given


def _day(value: object) -> str:
    if isinstance(value, str) and len(value) > 10:
        return core_values.moment(value).date().isoformat()
    return core_values.day(value).isoformat()


def _json(value: object) -> FieldValue:
    core_values.check_storable(value, MAX_JSON_DEPTH)
    if len(json.dumps(value)) > core_values.MAX_LONG_TEXT:
        raise core_values.InvalidValueError("is too large")
    return cast("FieldValue", value)


_RESULTS: dict[ResultKind, Callable[[object], FieldValue]] = {
    ResultKind.TEXT: _text,
    ResultKind.NUMBER: _finite,
    ResultKind.CHECKBOX: _boolean,
    ResultKind.DATE: _day,
    ResultKind.DATETIME: lambda value: core_values.stored_moment(core_values.moment(value)),
    ResultKind.JSON: _json,
}
