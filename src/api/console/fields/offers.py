"""Choices of settings that name something, and the numbers of records by option."""

from collections.abc import Collection, Mapping, Sequence

from api.console.controls import Offers
from api.console.entered import read_as
from api.kernel.routing import ApiRequest
from models.automation.actions.store import list_actions
from models.core.access.rules import Scope
from models.core.base import Id
from models.core.pagination import MAX_LIMIT
from models.data.databases.queries import list_databases
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import load_schema, seen_labels
from models.data.fields.rules.fields import OPTION_KINDS, FieldKind
from models.data.fields.shapes import FieldShape
from models.data.records.queries import ask_records
from models.data.records.shapes import RecordQuery

Choices = Sequence[tuple[str, str]]


async def offers_of(request: ApiRequest, database: DatabaseDetail, kind: FieldKind) -> Offers:
    """The choices of the settings of a kind that name something, by their keys."""
    match kind:
        case FieldKind.RELATION:
            return {"databaseId": await _databases(request)}
        case FieldKind.ROLLUP | FieldKind.LOOKUP:
            relations = relations_of(database.fields)
            return {
                "relationFieldKey": [(one.key, one.label) for one in relations],
                "targetFieldKey": await _fields_behind(request, relations),
            }
        case FieldKind.BUTTON:
            return {"actionId": await _actions(request)}
        case _:
            return {}


def relations_of(fields: Collection[FieldShape]) -> list[FieldShape]:
    """The relations among some fields."""
    return [one for one in fields if one.kind is FieldKind.RELATION]


def target_of(relation: FieldShape) -> Id:
    """The database that a relation points into."""
    return Id(relation.settings["databaseId"])


async def targets_of(request: ApiRequest, fields: Collection[FieldShape]) -> Mapping[Id, str]:
    """The labels of the databases that relations point into, as far as the reader sees them."""
    targets = {target_of(one) for one in relations_of(fields)}
    return await seen_labels(request.work, request.actor, targets)


async def counts_of(request: ApiRequest, field: FieldShape) -> Mapping[str, int]:
    """The records of each option by its key, if they can be counted soon."""
    if field.kind not in OPTION_KINDS or Scope.RECORDS_READ not in request.actor.scopes:
        return {}
    query = read_as(RecordQuery, {"limit": 1, "groupBy": {"field": field.key}})
    keys = request.services.keys
    answer = await ask_records(request.work, request.actor, field.database_id, query, keys)
    groups = (answer.groups if answer is not None else None) or ()
    return {str(one.value): one.count for one in groups}


async def _databases(request: ApiRequest) -> Choices:
    listed = await list_databases(
        request.work, request.actor, request.page("databases", MAX_LIMIT, None)
    )
    return [(str(one.id), one.label) for one in listed.databases]


async def _fields_behind(request: ApiRequest, relations: Collection[FieldShape]) -> Choices:
    """The fields of the related databases; a key that several have names all of them."""
    names: dict[str, list[str]] = {}
    for database_id, label in (await targets_of(request, relations)).items():
        schema = await load_schema(request.work, request.actor.workspace_id, database_id)
        for key, spec in schema.fields.items():
            names.setdefault(key, []).append(f"{spec.label} ({label})")
    return [(key, ", ".join(labels)) for key, labels in names.items()]


async def _actions(request: ApiRequest) -> Choices:
    if Scope.ACTIONS_READ not in request.actor.scopes:
        return []
    listed = await list_actions(
        request.work, request.actor, request.page("console actions", MAX_LIMIT, None)
    )
    return [(str(one.id), one.label) for one in listed.actions]
