"""A query as its parts: conditions, order and the fields to show, all checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from models.databases.rules.fields import FieldSpecs
from models.databases.rules.settings import zone
from models.databases.rules.values import FieldValueError, text
from models.records.rules.extraction import Expression
from models.records.rules.filters import read_filter
from models.records.rules.ordering import Order, read_order
from models.records.rules.predicates import condition, search_condition
from models.records.shapes import RecordQuery
from models.records.tables import record
from runtime.errors import UnsupportedError, ValidationError


@dataclass(frozen=True, slots=True)
class Query:
    """What to select: `shown_fields` are the ones each record shows."""

    conditions: tuple[Expression, ...]
    order: Order
    shown_fields: FieldSpecs


def read_query(body: RecordQuery, fields: FieldSpecs, now: datetime) -> Query:
    """The query a client described.

    Raises `ValidationError` at the place that is wrong, `UnsupportedError` for what queries cannot
    do yet.
    """
    _check_timezone(body.timezone)
    conditions: list[Expression] = []
    if not body.include_archived:
        conditions.append(record.c.archived.is_(False))
    if body.filter is not None:
        conditions.append(condition(read_filter(body.filter, fields, now, body.timezone)))
    if body.search:
        conditions.append(search_condition(_searched(body.search), fields))
    order = read_order(body.sorts or (), fields)
    shown = fields if body.fields is None else _chosen(body.fields, fields)
    _refuse_unsupported(body)
    return Query(tuple(conditions), order, shown)


def _check_timezone(name: str | None) -> None:
    if name is None:
        return
    try:
        zone(name)
    except ValueError as error:
        raise ValidationError.at("timezone", str(error)) from error


def _searched(search: str) -> str:
    try:
        return text(search)
    except FieldValueError as problem:
        raise ValidationError.at("search", str(problem)) from problem


def _chosen(keys: Sequence[str], fields: FieldSpecs) -> FieldSpecs:
    for place, key in enumerate(keys):
        if key not in fields:
            raise ValidationError.at(
                f"fields.{place}", "is not the key of a field of this database"
            )
    return {key: spec for key, spec in fields.items() if key in set(keys)}


def _refuse_unsupported(body: RecordQuery) -> None:
    asked = {"groupBy": body.group_by, "aggregates": body.aggregates, "viewId": body.view_id}
    for name, value in asked.items():
        if value:
            raise UnsupportedError(f"{name}: queries cannot do this yet. Leave it out.")
