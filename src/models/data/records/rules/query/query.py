"""A query as its parts: conditions, order, groups, figures and the fields to show, all checked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from models.core.filters.grammar import AllOf
from models.core.values import InvalidValueError, text
from models.data.fields.rules.field_keys import no_field
from models.data.fields.rules.fields import FieldSpecs
from models.data.fields.rules.settings_shapes import zone
from models.data.records.rules.query.aggregation import Figure, read_aggregates
from models.data.records.rules.query.extraction import Expression
from models.data.records.rules.query.filters import Leaf, RecordFilter, read_filter
from models.data.records.rules.query.grouping import Level, read_groups
from models.data.records.rules.query.ordering import Order, read_order
from models.data.records.rules.query.predicates import filter_condition, search_condition
from models.data.records.shapes import RecordQuery
from runtime.errors import ValidationError


@dataclass(frozen=True, slots=True)
class Query:
    """A selection of records: `shown_fields` are the ones each record shows.

    Every record must pass the `required` tests and satisfy the `further` conditions.
    """

    required: tuple[Leaf, ...]
    further: tuple[Expression, ...]
    with_archived: bool
    order: Order
    levels: tuple[Level, ...]
    figures: tuple[Figure, ...]
    shown_fields: FieldSpecs


def read_query(
    body: RecordQuery, fields: FieldSpecs, now: datetime, unseen: Collection[str] = ()
) -> Query:
    """The query a client described, which must not speak of `unseen` fields.

    Raises `ValidationError` at the place that is wrong.
    """
    _check_timezone(body.timezone)
    visible_fields = {key: spec for key, spec in fields.items() if key not in unseen}
    parts: list[RecordFilter] = []
    if body.filter is not None:
        parts = _parts(read_filter(body.filter, visible_fields, now, body.timezone))
    further = [filter_condition(part) for part in parts if not isinstance(part, Leaf)]
    if body.search:
        further.append(search_condition(_searched(body.search), visible_fields))
    return Query(
        required=tuple(part for part in parts if isinstance(part, Leaf)),
        further=tuple(further),
        with_archived=body.include_archived,
        order=read_order(body.sorts or (), visible_fields),
        levels=read_groups(body.group_by or (), visible_fields, body.timezone),
        figures=read_aggregates(body.aggregates or (), visible_fields),
        shown_fields=fields if body.fields is None else _chosen(body.fields, fields),
    )


def _parts(tree: RecordFilter) -> list[RecordFilter]:
    """The parts of a filter that must hold at once."""
    if isinstance(tree, AllOf):
        return [part for each in tree.parts for part in _parts(each)]
    return [tree]


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
    except InvalidValueError as problem:
        raise ValidationError.at("search", str(problem)) from problem


def _chosen(keys: Sequence[str], fields: FieldSpecs) -> FieldSpecs:
    for place, key in enumerate(keys):
        if key not in fields:
            raise ValidationError.at(f"fields.{place}", no_field(key, fields))
    return {key: spec for key, spec in fields.items() if key in set(keys)}
