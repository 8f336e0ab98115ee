"""Checks of what a node writes to a database, or queries, against its fields (decisions C5, C8)."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pydantic

from models.automation.automations.rules.graph.catalog import Noun, ReferenceCatalog
from models.automation.automations.rules.graph.kinds import NodeKind, shorten
from models.automation.automations.rules.language.bindings import holds_binding, is_binding
from models.core.base import JsonObject
from models.data.fields.rules.field_keys import no_field
from models.data.fields.rules.fields import FieldSpecs
from models.data.fields.rules.kinds import TITLE_KEY
from models.data.records.rules.link.written_relations import read_relations
from models.data.records.rules.query.filters import read_filter
from models.data.records.rules.query.query import read_query
from models.data.records.rules.write.data import DataCheck, with_title
from models.data.records.rules.write.matching import meant_values
from models.data.records.rules.write.options import may_grow
from models.data.records.shapes import RecordQuery
from runtime.errors import Detail, ValidationError
from runtime.ids import parse_id

_KINDS = (
    NodeKind.QUERY_RECORDS,
    NodeKind.CREATE_RECORD,
    NodeKind.UPDATE_RECORD,
    NodeKind.DELETE_RECORD,
)
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""Any day will do: which days a filter means does not decide whether it is valid."""


def record_problems(
    kind: NodeKind, value: JsonObject, catalog: ReferenceCatalog
) -> Iterator[tuple[str, str]]:
    """The problems of a node's parameters for any values of its bindings, as path and message.

    What has the wrong shape is left to the kind's own model.
    """
    database_id = value.get("databaseId")
    if kind not in _KINDS or not isinstance(database_id, str) or parse_id(database_id) is None:
        return
    fields = catalog.databases.get(database_id.lower())
    if fields is None:
        yield "databaseId", f'There is no database "{shorten(database_id)}".'
    elif kind is NodeKind.QUERY_RECORDS:
        query = _plain(value.get("query"))
        for problem in (*_asked(query, fields), *_view_problems(query, catalog)):
            yield f"query.{problem.path}", problem.message
    else:
        new = kind is NodeKind.CREATE_RECORD and not value.get("upsertBy")
        for problem in (*_written(value, fields, new=new), *_linked(value, fields)):
            yield problem.path, problem.message


def _plain(value: object) -> JsonObject:
    """An object whose keys are known, empty for anything else."""
    return value if isinstance(value, dict) and not is_binding(value) else {}


def _written(value: JsonObject, fields: FieldSpecs, *, new: bool) -> Iterator[Detail]:
    check, data, title = DataCheck(fields), _plain(value.get("data")), value.get("title")
    dynamic_keys = {
        key for key, one in data.items() if holds_binding(one) or may_grow(fields.get(key))
    }
    constants = {key: one for key, one in data.items() if key not in dynamic_keys}
    if isinstance(title, str) and TITLE_KEY not in dynamic_keys:
        try:
            constants = with_title(constants, title)
        except ValidationError as error:
            yield from error.details
            return
    elif title is not None:
        dynamic_keys.add(TITLE_KEY)
    _, problems = check.new(constants) if new else check.patch(constants)
    upsert_by = value.get("upsertBy")
    if upsert_by and isinstance(upsert_by, list) and not holds_binding(upsert_by):
        problems += meant_values(fields, [str(key) for key in upsert_by], constants)[1]
    places = {f"data.{key}" for key in dynamic_keys}
    whole = is_binding(value.get("data"))
    for problem in problems:
        if not (problem.path in places or (whole and problem.path.startswith("data."))):
            yield problem
    for key in sorted(dynamic_keys):
        if (reason := check.unwritable(key)) is not None:
            yield Detail(f"data.{key}", reason)


def _linked(value: JsonObject, fields: FieldSpecs) -> Iterator[Detail]:
    relations = _plain(value.get("relations"))
    known = {key: None if holds_binding(one) else one for key, one in relations.items()}
    yield from read_relations(fields, known)[1]


def _view_problems(query: JsonObject, catalog: ReferenceCatalog) -> Iterator[Detail]:
    view_id = query.get("viewId")
    if isinstance(view_id, str) and parse_id(view_id) and not catalog.has(Noun.VIEW, view_id):
        yield Detail("viewId", f'There is no view "{shorten(view_id)}".')


def _asked(query: JsonObject, fields: FieldSpecs) -> Iterator[Detail]:
    constants = {key: value for key, value in query.items() if not holds_binding(value)}
    try:
        read_query(RecordQuery.model_validate(constants), fields, _ANY_TIME)
    except pydantic.ValidationError:
        pass  # the config's model says so
    except ValidationError as error:
        yield from error.details
    for part in sorted(query.keys() - constants.keys()):
        if part == "filter":
            yield from _tested(query[part], fields, part)
        elif part in _NAMING:
            yield from _named(query[part], fields, part)


_NAMING = ("fields", "sorts", "groupBy", "aggregates")


def _named(value: object, fields: FieldSpecs, path: str) -> Iterator[Detail]:
    """The fields that a part of a query names beside its bindings."""
    if isinstance(value, list):
        for place, entry in enumerate(value):
            yield from _named(entry, fields, f"{path}.{place}")
    elif isinstance(value, dict) and not is_binding(value):
        yield from _named(value.get("field"), fields, f"{path}.field")
    elif isinstance(value, str) and value not in fields:
        yield Detail(path, no_field(value, fields))


def _tested(tree: object, fields: FieldSpecs, path: str) -> Iterator[Detail]:
    """The problems of a filter, its bound operands aside."""
    if is_binding(tree):
        return
    if not (isinstance(tree, dict) and holds_binding(tree)):
        yield from _refused(tree, fields, path)
        return
    key, inner = next(iter(tree.items()))
    if len(tree) == 1 and is_binding(inner):
        return
    if len(tree) == 1 and key == "not":
        yield from _tested(inner, fields, f"{path}.not")
    elif len(tree) == 1 and key in ("and", "or") and isinstance(inner, list):
        for place, part in enumerate(inner):
            yield from _tested(part, fields, f"{path}.{key}.{place}")
    elif not (is_binding(tree.get("field")) or is_binding(tree.get("op"))):
        known = {key: None if holds_binding(value) else value for key, value in tree.items()}
        bound = {f"{path}.{key}" for key in ("value", "timezone") if holds_binding(tree.get(key))}
        yield from (one for one in _refused(known, fields, path) if one.path not in bound)


def _refused(tree: object, fields: FieldSpecs, path: str) -> Iterator[Detail]:
    try:
        read_filter(tree, fields, _ANY_TIME)
    except ValidationError as error:
        for problem in error.details:
            yield Detail(f"{path}{problem.path.removeprefix('filter')}", problem.message)
