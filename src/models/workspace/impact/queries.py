"""The places that name a thing, found in the definitions of its workspace when they are asked for.

Each resource says what its definitions name; here all of them are asked. Places that the caller may
not see are counted without being named. What names each field of a database is at the end: a person
looks at it before they delete one.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from models.automation.actions.store import action_definitions
from models.automation.alert_rules.queries import rule_definitions
from models.automation.automation_runs.queries import run_definitions
from models.automation.automations.references import graph_definitions
from models.automation.secrets.store import existing_names
from models.automation.waits.queries import wait_definitions
from models.content.items.queries import find_item, item_of_target, seen_items
from models.content.items.rules import ItemKind
from models.content.surfaces.queries import block_definitions
from models.core.access.rules import Actor, Scope
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Shape, example
from models.core.references.rules import (
    Access,
    Definition,
    Reference,
    Sought,
    Subject,
    SubjectKind,
    field_subject,
)
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import inverse_of, load_catalog, seen_field, seen_labels
from models.data.fields.references import field_definitions
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs
from models.data.fields.shapes import FieldShape
from models.data.forms.queries import form_definitions
from models.data.record_templates import template_definitions
from models.data.views.queries import seen_view
from models.data.views.references import view_definitions
from models.messages.webhook_endpoints.queries import get_endpoint
from models.people.members import get_member
from models.sources.connections.queries import get_connection
from models.sources.data_sources.queries import data_source_definitions
from models.sources.mounts.queries import mount_definitions
from models.workspace.share_links.links import link_definitions
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError

MAX_PLACES = 500
"""Places of one answer."""


class Change(StrEnum):
    """The change whose impact is asked for."""

    DELETE = "delete"
    RENAME = "rename"
    CONVERT = "convert"


_BY_KEY = frozenset({SubjectKind.FIELD, SubjectKind.OPTION, SubjectKind.SECRET})


class ImpactQuestion(Input):
    """Body of get impact: a thing, and the change that is planned.

    `id` is that of the thing; of an option it is the id of its field, of a form that of its item.
    `key` is the key of the option, or the name of the secret. `rename` is a change of the key of a
    field or an option, or of the name of a secret; `convert` is for fields.
    """

    model_config = example({"kind": "field", "id": EXAMPLE_ID, "change": "delete"})

    kind: Annotated[SubjectKind, Field(strict=False)]
    id: InputId | None = None
    key: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    change: Annotated[Change, Field(strict=False)] = Change.DELETE

    @model_validator(mode="after")
    def _names_a_thing(self) -> Self:
        named = self.kind in (SubjectKind.SECRET, SubjectKind.OPTION)
        if (self.key is not None) is not named:
            raise ValueError("takes key for an option or a secret, and only there")
        if (self.id is None) is not (self.kind is SubjectKind.SECRET):
            raise ValueError("takes id for everything but a secret")
        if self.change is Change.RENAME and self.kind not in _BY_KEY:
            raise ValueError("can be renamed without any impact: it is named by its id")
        if self.change is Change.CONVERT and self.kind is not SubjectKind.FIELD:
            raise ValueError("cannot be converted: only fields can")
        return self


class ImpactPlace(Shape):
    """A place that names the thing.

    `kind` and `id` name the definition: an automation, a view, a field, a form by its item.
    `path` leads to the place in it; `nodeId`, `version` and `state` say where in an automation. An
    `automation_run` means the `runs` open runs of that version. With `breaks` the place fails after
    the change; otherwise the platform changes it, too, or it keeps working.
    """

    kind: str
    id: Id
    label: str
    path: str
    access: Access
    breaks: bool
    node_id: str | None = None
    version: int | None = None
    state: str | None = None
    runs: int | None = None
    item_id: Id | None = None
    database_id: Id | None = None


class ImpactAnswer(Shape):
    """The places that name a thing, the breaking ones first, at most 500.

    `total` counts all places, `breaking` the ones that break. Places that the caller may not see
    are in `total` and counted by `hidden`, and are not listed.
    """

    kind: SubjectKind
    label: str
    change: Change
    places: list[ImpactPlace]
    total: int
    breaking: int
    hidden: int

    @property
    def is_listed_in_part(self) -> bool:
        """True when there are more places to show than are listed."""
        return self.total - self.hidden > len(self.places)


Definitions = Callable[[UnitOfWork, Actor, Sought], Awaitable[Sequence[Definition]]]

DEFINITIONS: Sequence[Definitions] = (
    graph_definitions,
    run_definitions,
    wait_definitions,
    action_definitions,
    field_definitions,
    view_definitions,
    form_definitions,
    template_definitions,
    block_definitions,
    data_source_definitions,
    mount_definitions,
    rule_definitions,
    link_definitions,
)
"""Queries for the definitions that may name a thing. A resource whose definitions name others adds
its line here."""

_SCOPES: Mapping[SubjectKind, Scope] = {
    SubjectKind.FIELD: Scope.DATABASES_READ,
    SubjectKind.OPTION: Scope.DATABASES_READ,
    SubjectKind.DATABASE: Scope.DATABASES_READ,
    SubjectKind.VIEW: Scope.VIEWS_READ,
    SubjectKind.FORM: Scope.RESOURCES_READ,
    SubjectKind.CONNECTION: Scope.INTEGRATIONS_READ,
    SubjectKind.WEBHOOK_ENDPOINT: Scope.WEBHOOKS_READ,
    SubjectKind.SECRET: Scope.AUTOMATIONS_READ,
    SubjectKind.ACTION: Scope.ACTIONS_READ,
    SubjectKind.AUTOMATION: Scope.AUTOMATIONS_READ,
    SubjectKind.DATA_SOURCE: Scope.DATA_SOURCES_READ,
    SubjectKind.MEMBER: Scope.MEMBERS_READ,
    SubjectKind.ITEM: Scope.RESOURCES_READ,
}
"""The scope by which a caller sees a thing of a kind."""

_PLACED = {
    SubjectKind.DATABASE: ItemKind.DATABASE,
    SubjectKind.ACTION: ItemKind.ACTION,
    SubjectKind.AUTOMATION: ItemKind.AUTOMATION,
    SubjectKind.DATA_SOURCE: ItemKind.DATA_SOURCE,
}
"""Things that items place, by the kinds of these."""


@dataclass(frozen=True, slots=True)
class Naming:
    """A reference, and the definition it is in; `seen` if the caller may see that."""

    definition: Definition
    reference: Reference
    seen: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A thing that the caller sees: its label, and what is deleted with it."""

    label: str
    sought: Sequence[Sought]


async def impact(work: UnitOfWork, actor: Actor, body: ImpactQuestion) -> ImpactAnswer:
    """The places that name a thing.

    Raises `DeniedError` without the scope to read such things, `NotFoundError` for one that the
    caller does not see.
    """
    thing = await _resolved(work, actor, body)
    sought = thing.sought if body.change is Change.DELETE else thing.sought[:1]
    namings = [one for each in sought for one in await namings_of(work, actor, each)]
    places = [_place(one, body.change) for one in namings]
    listed = [place for place, one in zip(places, namings, strict=True) if one.seen]
    listed.sort(key=lambda place: not place.breaks)
    return ImpactAnswer(
        kind=body.kind,
        label=thing.label,
        change=body.change,
        places=listed[:MAX_PLACES],
        total=len(places),
        breaking=sum(place.breaks for place in places),
        hidden=len(places) - len(listed),
    )


async def namings_of(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Naming]:
    """The references to a thing, except in parts that a database is deleted with."""
    definitions = [
        definition for of_kind in DEFINITIONS for definition in await of_kind(work, actor, sought)
    ]
    open_items = await _open_items(work, actor, definitions)
    own = sought.database_id if sought.kind is SubjectKind.DATABASE else None
    return [
        Naming(definition, reference, _sees(actor, definition, open_items))
        for definition in definitions
        if own is None or definition.database_id != own
        for reference in _distinct(
            each for each in definition.references if sought.matches(each.subject)
        )
    ]


def _distinct(references: Iterable[Reference]) -> Iterable[Reference]:
    """One reference for each subject, path and access: a text may name a thing several times."""
    return {(one.subject, one.path, one.access): one for one in references}.values()


async def _open_items(
    work: UnitOfWork, actor: Actor, definitions: Sequence[Definition]
) -> Collection[Id]:
    ids = {one.item_id for one in definitions if one.item_id is not None}
    rows = await work.rows(seen_items(actor, sorted(ids))) if ids else ()
    return {row.id for row in rows}


def _sees(actor: Actor, definition: Definition, open_items: Collection[Id]) -> bool:
    return (
        not definition.hidden
        and definition.scope in actor.scopes
        and (definition.item_id is None or definition.item_id in open_items)
        and definition.owner_user_id in (None, actor.user_id)
    )


def _place(naming: Naming, change: Change) -> ImpactPlace:
    definition, reference = naming.definition, naming.reference
    return ImpactPlace(
        kind=definition.kind,
        id=definition.id,
        label=definition.label,
        path=reference.path,
        access=reference.access,
        breaks=breaks(reference, change),
        node_id=reference.node or None,
        version=definition.version,
        state=definition.state,
        runs=definition.runs or None,
        item_id=definition.item_id,
        database_id=definition.database_id,
    )


def breaks(reference: Reference, change: Change) -> bool:
    """True when a change breaks what is at a reference."""
    if change is Change.RENAME:
        return not reference.by_id
    return not reference.cleared


async def _resolved(work: UnitOfWork, actor: Actor, body: ImpactQuestion) -> Found:
    """The thing that is asked for, and its label."""
    scope = _SCOPES[body.kind]
    if scope not in actor.scopes:
        raise DeniedError(f"The credential lacks the scope {scope}.")
    if body.id is None:
        return await _secret(work, actor, str(body.key))
    if body.kind in _PLACED:
        return await _placed(work, actor, body.kind, body.id)
    return await _FINDERS[body.kind](work, actor, body.id, body.key)


async def _secret(work: UnitOfWork, actor: Actor, name: str) -> Found:
    if not await existing_names(work, actor.workspace_id, [name]):
        raise NotFoundError("secret")
    return Found(name, [Sought(subject=Subject(SubjectKind.SECRET, name))])


async def _placed(work: UnitOfWork, actor: Actor, kind: SubjectKind, target_id: Id) -> Found:
    row = await item_of_target(work, actor.workspace_id, None, target_id)
    if row is None or row.kind != _PLACED[kind] or not await _sees_item(work, actor, row.id):
        raise NotFoundError(kind.replace("_", " "))
    return Found(row.title, [Sought(subject=Subject(kind, str(target_id)), item_id=row.id)])


async def _sees_item(work: UnitOfWork, actor: Actor, item_id: Id) -> bool:
    return bool(await work.rows(seen_items(actor, [item_id])))


async def _form(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    if not await _sees_item(work, actor, id_):
        raise NotFoundError("form")
    row = await find_item(work, actor.workspace_id, id_)
    if row.kind != ItemKind.FORM:
        raise NotFoundError("form")
    return Found(row.title, [Sought(subject=Subject(SubjectKind.FORM, str(id_)), item_id=id_)])


async def _item(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    if not await _sees_item(work, actor, id_):
        raise NotFoundError
    row = await find_item(work, actor.workspace_id, id_)
    return Found(row.title, [Sought(subject=Subject(SubjectKind.ITEM, str(id_)), item_id=id_)])


async def _field(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await _seen_field(work, actor, id_)
    sought = [Sought(subject=_field_subject(found))]
    if found.kind is FieldKind.RELATION and (inverse := await inverse_of(work, actor, found)):
        sought.append(Sought(subject=_field_subject(inverse)))
    return Found(found.label, sought)


async def _option(work: UnitOfWork, actor: Actor, id_: Id, key: str | None) -> Found:
    found = await _seen_field(work, actor, id_)
    for option in found.options:
        if option.key == key:
            subject = _field_subject(found)._replace(kind=SubjectKind.OPTION, option=option.key)
            return Found(option.name, [Sought(subject=subject)])
    raise NotFoundError("option")


async def _seen_field(work: UnitOfWork, actor: Actor, field_id: Id) -> FieldShape:
    found = await seen_field(work, actor, field_id)
    if found is None:
        raise NotFoundError("field")
    return found


def _field_subject(found: FieldShape) -> Subject:
    return Subject(SubjectKind.FIELD, str(found.database_id), found.key)


async def _view(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    row = await seen_view(work, actor, id_)
    sought = Sought(subject=Subject(SubjectKind.VIEW, str(id_)), item_id=row.item_id)
    return Found(row.label, [sought])


async def _connection(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await get_connection(work, actor, id_)
    return Found(found.label, [Sought(subject=Subject(SubjectKind.CONNECTION, str(id_)))])


async def _endpoint(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await get_endpoint(work, actor, id_)
    return Found(found.url, [Sought(subject=Subject(SubjectKind.WEBHOOK_ENDPOINT, str(id_)))])


async def _member(work: UnitOfWork, actor: Actor, id_: Id, _: str | None) -> Found:
    found = await get_member(work, actor.workspace_id, id_)
    label = found.name or found.email or str(id_)
    return Found(label, [Sought(subject=Subject(SubjectKind.MEMBER, str(id_)))])


_Finder = Callable[[UnitOfWork, Actor, Id, str | None], Awaitable[Found]]

_FINDERS: Mapping[SubjectKind, _Finder] = {
    SubjectKind.FIELD: _field,
    SubjectKind.OPTION: _option,
    SubjectKind.VIEW: _view,
    SubjectKind.FORM: _form,
    SubjectKind.ITEM: _item,
    SubjectKind.CONNECTION: _connection,
    SubjectKind.WEBHOOK_ENDPOINT: _endpoint,
    SubjectKind.MEMBER: _member,
}


_REMOVED_FROM = ("view", "record_template", "form")
"""Kinds of definitions that lose a deleted field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldUsages:
    """The places that name a field, by their labels.

    While `fields` are computed from it, among them `unseen` of databases that the reader does not
    see, it cannot be deleted. What is in `removed_from` loses it, and what is in `broken` fails
    without it; `hidden` places are neither listed in the one nor in the other.
    """

    fields: Sequence[str]
    unseen: int
    removed_from: Sequence[str]
    broken: Sequence[str]
    hidden: int
    inverse: str | None
    """The database whose side of the relation is deleted with it, if the reader sees it."""

    @property
    def is_needed(self) -> bool:
        """True while other fields are computed from it."""
        return bool(self.fields or self.unseen)


async def field_usages(
    work: UnitOfWork, actor: Actor, database: DatabaseDetail
) -> dict[str, FieldUsages]:
    """The usages of each field of a database, by its key."""
    catalog = await load_catalog(work, actor.workspace_id, [database.id])
    labels = await seen_labels(work, actor, catalog.keys())
    own = str(database.id)
    by_key: dict[str, list[Naming]] = {}
    for naming in await namings_of(work, actor, Sought(subject=Subject(SubjectKind.FIELD, own))):
        by_key.setdefault(naming.reference.subject.key, []).append(naming)
    usages = {}
    for key, spec in catalog[database.id].items():
        inverse = next(_inverse(catalog, spec), None)
        namings = by_key.get(key, [])
        if inverse is not None:
            of_inverse = Sought(subject=field_subject(str(spec.target_id), inverse.key))
            namings = [*namings, *await namings_of(work, actor, of_inverse)]
        sides = {spec.id} if inverse is None else {spec.id, inverse.id}
        label = labels.get(spec.target_id) if inverse is not None else None
        usages[key] = _usages(namings, sides, label)
    return usages


def _inverse(catalog: Mapping[Id, FieldSpecs], spec: FieldSpec) -> Iterator[FieldSpec]:
    """The other side of a relation; none of a symmetric one, which is its own."""
    if spec.relation and spec.inverse_id != spec.id:
        others = catalog.get(spec.target_id, {}).values()
        yield from (other for other in others if other.id == spec.inverse_id)


def _usages(namings: Sequence[Naming], sides: set[Id], inverse: str | None) -> FieldUsages:
    """The usages in these namings; what names one side of a relation in the other is nnaming."""
    others = [naming for naming in namings if naming.definition.id not in sides]
    computed = [naming for naming in others if naming.definition.kind == "field"]
    places = [
        naming for naming in others if naming.definition.kind not in ("field", "record_layout")
    ]
    visible = [naming for naming in places if naming.seen]
    return FieldUsages(
        fields=_distinct_labels(naming.definition.label for naming in computed if naming.seen),
        unseen=len({naming.definition.id for naming in computed if not naming.seen}),
        removed_from=_distinct_labels(
            _named(naming) for naming in visible if naming.reference.cleared
        ),
        broken=_distinct_labels(
            _named(naming) for naming in visible if not naming.reference.cleared
        ),
        hidden=len({naming.definition.id for naming in places if not naming.seen}),
        inverse=inverse,
    )


def _distinct_labels(labels: Iterator[str]) -> Sequence[str]:
    return list(dict.fromkeys(labels))


def _named(naming: Naming) -> str:
    """A definition as a list of places shows it: `Automation “Ship orders”, node pack, draft`."""
    definition, reference = naming.definition, naming.reference
    noun = definition.kind.replace("_", " ").capitalize()
    parts = [f"{noun} “{definition.label}”"]
    if reference.node:
        parts.append(f"node {reference.node}")
    if definition.state is not None:
        parts.append(f"version {definition.version}, {definition.state}")
    return ", ".join(parts)
