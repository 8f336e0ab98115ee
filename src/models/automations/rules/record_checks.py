"""What a node writes to a database, or asks of it, held against its fields (decisions C5, C8)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pydantic

from models.automations.rules.bindings import holds_binding, is_binding
from models.automations.rules.facts import ReferenceFacts
from models.automations.rules.kinds import NodeKind, shorten
from models.base import JsonObject
from models.databases.rules.fields import FieldSpecs
from models.databases.rules.kinds import TITLE_KEY
from models.records.rules.data import DataCheck, with_title
from models.records.rules.matching import meant_values
from models.records.rules.query import read_query
from models.records.shapes import RecordQuery
from runtime.errors import Detail, ValidationError
from runtime.ids import parse_id

_KINDS = (
    NodeKind.QUERY_RECORDS,
    NodeKind.CREATE_RECORD,
    NodeKind.UPDATE_RECORD,
    NodeKind.DELETE_RECORD,
)
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""What days a filter means makes none of them wrong."""


def record_problems(
    kind: NodeKind, value: JsonObject, facts: ReferenceFacts
) -> Iterator[tuple[str, str]]:
    """What cannot work whatever the bindings of a node's parameters give, as path and sentence.

    What has the wrong shape is left to the kind's own model.
    """
    database_id = value.get("databaseId")
    if kind not in _KINDS or not isinstance(database_id, str) or parse_id(database_id) is None:
        return
    fields = facts.databases.get(database_id.lower())
    if fields is None:
        yield "databaseId", f'There is no database "{shorten(database_id)}".'
    elif kind is NodeKind.QUERY_RECORDS:
        query = value.get("query")
        if isinstance(query, dict) and not is_binding(query):
            for problem in _asked(query, fields):
                yield f"query.{problem.path}", problem.message
    elif isinstance(data := value.get("data", {}), dict) and not is_binding(data):
        for problem in _written(kind, value, data, fields):
            yield problem.path, problem.message


def _asked(query: JsonObject, fields: FieldSpecs) -> Iterator[Detail]:
    if holds_binding(query):
        yield from _unknown_fields(query, fields)
        return
    try:
        read_query(RecordQuery.model_validate(query), fields, _ANY_TIME)
    except pydantic.ValidationError:
        yield from _unknown_fields(query, fields)
    except ValidationError as error:
        yield from error.details


def _written(
    kind: NodeKind, value: JsonObject, data: JsonObject, fields: FieldSpecs
) -> Iterator[Detail]:
    check, upsert_by = DataCheck(fields), value.get("upsertBy")
    title = value.get("title")
    bound = {key for key, one in data.items() if holds_binding(one)}
    known = {key: one for key, one in data.items() if key not in bound}
    if isinstance(title, str) and TITLE_KEY not in bound:
        try:
            known = with_title(known, title)
        except ValidationError as error:
            yield from error.details
            return
    elif title is not None:
        bound.add(TITLE_KEY)
    always_new = kind is NodeKind.CREATE_RECORD and not upsert_by
    _, problems = check.new(known) if always_new else check.patch(known)
    if isinstance(upsert_by, list) and all(isinstance(key, str) for key in upsert_by) and upsert_by:
        problems += meant_values(fields, upsert_by, known)[1]
    given = {f"data.{key}" for key in bound}
    yield from (problem for problem in problems if problem.path not in given)
    for key in sorted(bound):
        if (reason := check.unwritable(key)) is not None:
            yield Detail(f"data.{key}", reason)


def _unknown_fields(query: JsonObject, fields: FieldSpecs) -> Iterator[Detail]:
    for path, key in _named_fields(query):
        if key not in fields:
            yield Detail(path, "is not the key of a field of this database")


def _named_fields(query: JsonObject) -> Iterator[tuple[str, str]]:
    shown = query.get("fields")
    if isinstance(shown, list):
        yield from ((f"fields.{at}", one) for at, one in enumerate(shown) if isinstance(one, str))
    for part in ("filter", "sorts", "groupBy", "aggregates"):
        yield from _compared(part, query.get(part))


def _compared(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The `field` of every condition in a filter tree or list of sorts."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _compared(f"{path}.{index}", item)
    elif isinstance(value, dict):
        if isinstance(value.get("field"), str):
            yield f"{path}.field", value["field"]
        else:
            for key in ("and", "or", "not"):
                if key in value:
                    yield from _compared(f"{path}.{key}", value[key])
