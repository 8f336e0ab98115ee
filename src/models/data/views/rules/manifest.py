"""Checking a manifest against the fields of its database, and removing a field from it. Pure.

The filter, order and groups of a view are written as in a query, so the rules of queries check
them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError as ShapeError

from models.core.base import JsonObject
from models.core.filters.grammar import ValueForm
from models.core.problems import an, refuse, sentence
from models.core.values import InvalidValueError, check_storable
from models.data.fields.rules import fields as field_specs
from models.data.fields.rules.values import value_form
from models.data.records.rules.query.filters import read_filter
from models.data.records.rules.query.plan import read_query
from models.data.records.shapes import RecordQuery
from models.data.views.rules.kinds import NEEDED, ChartType, ViewKind
from models.data.views.shapes import Chart, FormLayout, Manifest
from runtime.errors import Detail, ValidationError

MAX_BYTES = 65_536
MAX_DEPTH = 32

_QUERY_KEYS = {"filter", "sorts", "search", "group_by", "aggregates", "colors"}
_DATES = frozenset({ValueForm.DAY, ValueForm.MOMENT})
_COVERS = frozenset({field_specs.FieldKind.FILE, field_specs.FieldKind.URL})
_STACKS = field_specs.OPTION_KINDS | {
    field_specs.FieldKind.PERSON,
    field_specs.FieldKind.CHECKBOX,
}

_SERVES: dict[str, tuple[Callable[[field_specs.FieldSpec], bool], str]] = {
    "stack_field_key": (
        lambda spec: spec.kind in _STACKS,
        "an option, person or checkbox field",
    ),
    "order_field_key": (lambda spec: spec.kind is field_specs.FieldKind.NUMBER, "a number field"),
    "date_field_key": (lambda spec: value_form(spec) in _DATES, "a field with dates"),
    "end_date_field_key": (lambda spec: value_form(spec) in _DATES, "a field with dates"),
    "cover_field_key": (lambda spec: spec.kind in _COVERS, "a file or url field"),
}
_SINGLE_KEYS = frozenset(Manifest.model_fields[name].alias or name for name in _SERVES)


def serving(spec: field_specs.FieldSpec) -> list[str]:
    """The keys of a manifest that may name a field, as they are on the wire."""
    return [
        Manifest.model_fields[name].alias or name
        for name, (serves, _) in _SERVES.items()
        if serves(spec)
    ]


def read_manifest(
    kind: ViewKind,
    manifest: Manifest,
    fields: field_specs.FieldSpecs,
    now: datetime,
    path: str = "manifest",
) -> JsonObject:
    """The manifest as it is stored, with the keys that were given and no others.

    Raises `ValidationError` with every problem at its place below `path`.
    """
    content: JsonObject = manifest.model_dump(by_alias=True, exclude_unset=True, mode="json")
    problems = [
        Detail(f"{path}.{problem.path}" if problem.path else path, problem.message)
        for problem in _problems(kind, manifest, content, fields, now)
    ]
    refuse(problems)
    return content


def _problems(
    kind: ViewKind,
    manifest: Manifest,
    content: JsonObject,
    fields: field_specs.FieldSpecs,
    now: datetime,
) -> Iterator[Detail]:
    yield from _size_problems(content)
    for name in NEEDED.get(kind, ()):
        if content.get(name) is None:
            yield Detail(name, f"is required for {an(kind)} view")
    asked = manifest.model_dump(by_alias=True, include=_QUERY_KEYS, exclude_unset=True)
    yield from _query_problems(asked, fields, now)
    yield from _single_key_problems(manifest, fields)
    shown = [field.key for field in manifest.fields or ()]
    yield from _key_problems(shown, fields, lambda place: f"fields.{place}.key")
    yield from _key_problems(manifest.card_fields or (), fields, lambda n: f"cardFields.{n}")
    if manifest.chart is not None:
        yield from _chart_problems(manifest.chart, fields, now)
    if manifest.form is not None:
        yield from _form_problems(manifest.form, fields, now)


def _size_problems(content: JsonObject) -> Iterator[Detail]:
    try:
        check_storable(content, MAX_DEPTH)
    except InvalidValueError as problem:
        yield Detail("", str(problem))
    if len(json.dumps(content, ensure_ascii=False).encode()) > MAX_BYTES:
        yield Detail("", "is larger than 64 KiB")


def _query_problems(
    query: JsonObject, fields: field_specs.FieldSpecs, now: datetime
) -> Iterator[Detail]:
    try:
        read_query(RecordQuery.model_validate(query), fields, now)
    except ShapeError as error:
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            yield Detail(".".join(map(str, problem["loc"])), sentence(problem))
    except ValidationError as error:
        yield from error.details


def _single_key_problems(manifest: Manifest, fields: field_specs.FieldSpecs) -> Iterator[Detail]:
    for name, (serves, wanted) in _SERVES.items():
        key = getattr(manifest, name)
        if key is not None and not (key in fields and serves(fields[key])):
            alias = Manifest.model_fields[name].alias or name
            yield Detail(alias, f"must be the key of {wanted} of this database")


def _key_problems(
    keys: Sequence[str], fields: field_specs.FieldSpecs, path: Callable[[int], str]
) -> Iterator[Detail]:
    hints = field_specs.FieldHints(fields)
    for place, key in enumerate(keys):
        if key not in fields:
            yield Detail(path(place), hints.no_field(key))
        elif key in keys[:place]:
            yield Detail(path(place), "is named twice")


def _chart_problems(
    chart: Chart, fields: field_specs.FieldSpecs, now: datetime
) -> Iterator[Detail]:
    if chart.x_field_key is None:
        if chart.type is not ChartType.NUMBER:
            yield Detail("chart.xFieldKey", f"is required for {an(chart.type)} chart")
    elif chart.x_field_key not in fields:
        yield Detail("chart.xFieldKey", field_specs.no_field(chart.x_field_key, fields))
    else:
        group = {"field": chart.x_field_key, "granularity": chart.granularity}
        for problem in _query_problems({"groupBy": group}, fields, now):
            is_period = problem.path.endswith("granularity")
            place = "granularity" if is_period else "xFieldKey"
            yield Detail(f"chart.{place}", problem.message)
    if chart.aggregate is not None:
        for problem in _query_problems({"aggregates": [chart.aggregate]}, fields, now):
            inside = problem.path.removeprefix("aggregates.0")
            yield Detail(f"chart.aggregate{inside}", problem.message)


def _form_problems(
    form: FormLayout, fields: field_specs.FieldSpecs, now: datetime
) -> Iterator[Detail]:
    keys = [question.key for question in form.fields]
    yield from _key_problems(keys, fields, lambda place: f"form.fields.{place}.key")
    for place, question in enumerate(form.fields):
        path = f"form.fields.{place}"
        spec = fields.get(question.key)
        if spec is not None and not (spec.stored or spec.relation):
            yield Detail(f"{path}.key", f"is {an(spec.kind)} field, which forms cannot ask for")
        if question.visible_if is not None:
            yield from _filter_problems(question.visible_if, f"{path}.visibleIf", fields, now)


def _filter_problems(
    tree: JsonObject, path: str, fields: field_specs.FieldSpecs, now: datetime
) -> Iterator[Detail]:
    """The problems of a filter that is at `path` of the manifest."""
    try:
        read_filter(tree, fields, now)
    except ValidationError as error:
        for problem in error.details:
            yield Detail(f"{path}{problem.path.removeprefix('filter')}", problem.message)


def without_field(kind: ViewKind, manifest: JsonObject, key: str) -> tuple[ViewKind, JsonObject]:
    """The kind and manifest without the field `key`; a kind that needs it becomes a table."""
    kept = {name: _without(name, value, key) for name, value in manifest.items()}
    left = {name: value for name, value in kept.items() if value is not None}
    needed = all(left.get(name) is not None for name in NEEDED.get(kind, ()))
    return (kind if needed else ViewKind.TABLE), left


def _without(name: str, value: Any, key: str) -> Any:
    """One part of a manifest without a field; None when nothing is left."""
    match name:
        case "filter":
            return _pruned(value, key)
        case "sorts" | "aggregates":
            return [entry for entry in value or () if entry.get("field") != key]
        case "fields":
            return [entry for entry in value or () if entry["key"] != key]
        case "cardFields":
            return [entry for entry in value or () if entry != key]
        case "groupBy":
            return _levels_without(value, key)
        case (
            "stackFieldKey" | "orderFieldKey" | "dateFieldKey" | "endDateFieldKey" | "coverFieldKey"
        ):
            return None if value == key else value
        case "colors":
            rules = [{**rule, "filter": _pruned(rule["filter"], key)} for rule in value or ()]
            return [rule for rule in rules if rule["filter"] is not None] or None
        case "chart":
            aggregate = (value or {}).get("aggregate") or {}
            gone = (value or {}).get("xFieldKey") == key or aggregate.get("field") == key
            return None if gone else value
        case "form":
            return _form_without(value, key)
        case _:
            return value


def _pruned(tree: object, key: str) -> JsonObject | None:
    """A filter without the conditions on a field; None when no condition is left."""
    if not isinstance(tree, dict):
        return None
    if "field" in tree:
        return None if tree["field"] == key else tree
    if "not" in tree:
        inner = _pruned(tree["not"], key)
        return None if inner is None else {"not": inner}
    connective, parts = next(iter(tree.items()))
    kept = [left for part in parts if (left := _pruned(part, key)) is not None]
    return {connective: kept} if kept else None


def _form_without(form: JsonObject | None, key: str) -> JsonObject | None:
    if form is None:
        return None
    questions = [
        {**question, "visibleIf": _pruned(question.get("visibleIf"), key)}
        if question.get("visibleIf")
        else question
        for question in form.get("fields", ())
        if question["key"] != key
    ]
    return {**form, "fields": questions} if questions else None


def _levels_without(
    levels: list[JsonObject] | JsonObject | None, key: str
) -> list[JsonObject] | JsonObject | None:
    """One level of groups, or a list of them, without a field."""
    if isinstance(levels, list):
        return [level for level in levels if level["field"] != key] or None
    return None if (levels or {}).get("field") == key else levels
