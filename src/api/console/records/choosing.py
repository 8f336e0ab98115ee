"""People and records in forms: held by a field, or named by a typed text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.console.records.entry import (
    PREFIX,
    Choice,
    Entry,
    Typed,
    entry_of,
    is_typed,
    read_typed,
    retyped,
)
from api.kernel.request import ApiRequest
from models.core.base import Id, JsonObject
from models.core.pagination import MAX_LIMIT
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.kinds import FieldKind
from models.data.record_exports.queries import names_of
from models.data.records.queries.execution import QueryTooSlowError
from models.data.records.queries.search import seen_titles, titled
from models.data.records.shapes import RecordDetail
from models.people.members.queries import list_members, members_called
from runtime.errors import Detail
from runtime.ids import parse_id

MOST_LINKS = 100
"""Records that a form lists of a relation; one of more is changed from its other side."""
BEFORE_ID = " · "
"""Stands before the id of a record where its title does not tell which one is meant."""


@dataclass(frozen=True, slots=True)
class _Unknown:
    """The reason that a text names nothing."""

    message: str


def is_chosen(spec: FieldSpec) -> bool:
    """True for a field of people or of related records."""
    return spec.relation or spec.kind is FieldKind.PERSON


def entered(specs: Sequence[FieldSpec], record: RecordDetail | None) -> list[FieldSpec]:
    """The fields that a form has, which a person types or chooses."""
    return [
        spec
        for spec in specs
        if is_typed(spec) or (is_chosen(spec) and len(_held(spec, record)) <= MOST_LINKS)
    ]


async def entries_of(
    request: ApiRequest, specs: Sequence[FieldSpec], record: RecordDetail | None
) -> list[Entry]:
    """The fields of a form as a record has them."""
    held = {spec.key: _held(spec, record) for spec in specs if is_chosen(spec)}
    names = await _names(request, specs, held)
    return [
        _entry(spec, held[spec.key], names) if spec.key in held else entry_of(spec, record)
        for spec in specs
    ]


async def again(
    request: ApiRequest,
    specs: Sequence[FieldSpec],
    fields: Mapping[str, Any],
    problems: Mapping[str, str],
) -> list[Entry]:
    """The fields of a form as it was sent, and what is wrong with each."""
    ticked_ids = {spec.key: _ticked(spec, fields) for spec in specs if is_chosen(spec)}
    names = await _names(request, specs, ticked_ids)
    return [
        replace(
            _entry(spec, ticked_ids[spec.key], names),
            text=str(fields.get(f"{PREFIX}{spec.key}") or ""),
            problem=problems.get(spec.label) or _problem(spec, problems),
        )
        if spec.key in ticked_ids
        else retyped(entry_of(spec, None), fields, problems)
        for spec in specs
    ]


async def read_fields(
    request: ApiRequest, specs: Sequence[FieldSpec], fields: Mapping[str, Any]
) -> Typed:
    """The values of a form, and the people and records that its texts name."""
    typed = read_typed([spec for spec in specs if is_typed(spec)], fields)
    data, relations, problems = dict(typed.data), dict(typed.relations), list(typed.problems)
    for spec in filter(is_chosen, specs):
        chosen = await _read(request, spec, fields)
        if isinstance(chosen, _Unknown):
            problems.append(Detail(spec.label, chosen.message))
        else:
            values: JsonObject = relations if spec.relation else data
            values[spec.key] = chosen
    return Typed(data, problems, relations)


async def people(request: ApiRequest, entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """The members that a form suggests: what is typed for each, and their name."""
    if not any(entry.control == "people" for entry in entries):
        return []
    page = request.page("members", MAX_LIMIT, None)
    listed = await list_members(request.work, request.actor, page)
    return [(one.email or str(one.user_id), one.name or "") for one in listed.members]


def _held(spec: FieldSpec, record: RecordDetail | None) -> Sequence[str]:
    """The ids that a record holds in a field."""
    if record is None:
        return []
    if spec.relation:
        return [str(one.id) for one in record.related.get(spec.key, ())]
    ids: Sequence[str] = record.data.get(spec.key) or []
    return ids


def _ticked(spec: FieldSpec, fields: Mapping[str, Any]) -> Sequence[str]:
    start = f"{PREFIX}{spec.key}."
    names = (name.removeprefix(start) for name in fields if name.startswith(start))
    return [name for name in names if parse_id(name) is not None][:MOST_LINKS]


async def _names(
    request: ApiRequest, specs: Sequence[FieldSpec], held: Mapping[str, Sequence[str]]
) -> Mapping[str, str]:
    """The names of people and the titles of records, as far as the reader sees them."""
    work, actor = request.work, request.actor
    linked = {one for spec in specs if spec.relation for one in held[spec.key]}
    members = {
        one for spec in specs if spec.key in held and not spec.relation for one in held[spec.key]
    }
    titles = await seen_titles(work, actor, [Id(one) for one in linked]) if linked else {}
    names = await names_of(work, actor.workspace_id, members)
    return {str(record_id): title or "Untitled" for record_id, title in titles.items()} | names


def _entry(spec: FieldSpec, ids: Sequence[str], names: Mapping[str, str]) -> Entry:
    control = "records" if spec.relation else "people"
    return Entry(spec, control, choices=[Choice(one, names.get(one, one)) for one in ids])


def _problem(spec: FieldSpec, problems: Mapping[str, str]) -> str:
    starts = (f"data.{spec.key}", f"relations.{spec.key}")
    return " ".join(text for path, text in problems.items() if path.startswith(starts))


async def _read(
    request: ApiRequest, spec: FieldSpec, fields: Mapping[str, Any]
) -> list[str] | _Unknown:
    """The ids that a form gives a field: the ticked ones, and the one that its text names."""
    ids = list(_ticked(spec, fields))
    text = str(fields.get(f"{PREFIX}{spec.key}") or "").strip()
    for one in [text] if spec.relation else text.split(","):
        if not one.strip():
            continue
        named = await (_record if spec.relation else _person)(request, spec, one.strip())
        if isinstance(named, _Unknown):
            return named
        ids = [named] if spec.settings.get("cardinality") == "one" else [*ids, named]
    return list(dict.fromkeys(ids))


async def _record(request: ApiRequest, spec: FieldSpec, text: str) -> str | _Unknown:
    record_id = parse_id(text.rpartition(BEFORE_ID)[2])
    if record_id is not None:
        seen = await seen_titles(request.work, request.actor, [record_id])
        return str(record_id) if seen else _Unknown(f"No record has the id {record_id}.")
    try:
        ids = await titled(request.work, request.actor, spec.target_id, text)
    except QueryTooSlowError:
        return _Unknown("There are too many records to find one by its title: type its id.")
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        return _Unknown(f"Several records are called “{text}”: choose one, or type its id.")
    return _Unknown(f"No record is called “{text}”. Type a whole title, or an id.")


async def _person(request: ApiRequest, _: FieldSpec, text: str) -> str | _Unknown:
    user_id = parse_id(text)
    if user_id is not None:
        return str(user_id)
    ids = await members_called(request.work, request.actor.workspace_id, text)
    if len(ids) == 1:
        return str(ids[0])
    if ids:
        return _Unknown(f"Several members are called “{text}”: type an e-mail address.")
    return _Unknown(f"No member has the address or the name “{text}”.")
