"""The places that name a thing, found in the definitions of its workspace when they are asked for.

Each resource says what its definitions name; here all of them are asked. Places that the caller may
not see are counted without being named.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from models.automation.actions.store import action_definitions
from models.automation.alert_rules.queries import rule_definitions
from models.automation.automation_runs.open_runs import immovable_runs
from models.automation.automation_runs.queries import run_definitions
from models.automation.automations.references import graph_definitions
from models.automation.waits.queries import wait_definitions
from models.content.items.queries import seen_items
from models.content.surfaces.queries import block_definitions
from models.core.access.rules import Actor, Scope
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Shape, example
from models.core.references import rules as reference_rules
from models.data.fields.queries import field_definitions
from models.data.forms.queries import form_definitions
from models.data.record_templates import template_definitions
from models.data.views.queries import view_definitions
from models.sources.data_sources.queries import data_source_definitions
from models.sources.mounts.queries import mount_definitions
from models.workspace.impact.things import Found, find_thing
from models.workspace.share_links.links import link_definitions
from runtime.database import UnitOfWork
from runtime.errors import DeniedError

MAX_PLACES = 500
"""Places of one answer."""
MAX_RUNS = 20
"""Runs of one answer that cannot be moved."""


class Change(StrEnum):
    """The change whose impact is asked for."""

    DELETE = "delete"
    RENAME = "rename"
    CONVERT = "convert"


_BY_KEY = frozenset(
    {
        reference_rules.SubjectKind.FIELD,
        reference_rules.SubjectKind.OPTION,
        reference_rules.SubjectKind.SECRET,
    }
)


class ImpactQuestion(Input):
    """Body of get impact: a thing, and the change that is planned.

    `id` is that of the thing; of an option it is the id of its field, of a form that of its item.
    `key` is the key of the option, or the name of the secret. `rename` is a change of the key of a
    field or an option, or of the name of a secret; `convert` is for fields.
    """

    model_config = example({"kind": "field", "id": EXAMPLE_ID, "change": "delete"})

    kind: Annotated[reference_rules.SubjectKind, Field(strict=False)]
    id: InputId | None = None
    key: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    change: Annotated[Change, Field(strict=False)] = Change.DELETE

    @model_validator(mode="after")
    def _names_a_thing(self) -> Self:
        named = self.kind in (
            reference_rules.SubjectKind.SECRET,
            reference_rules.SubjectKind.OPTION,
        )
        if (self.key is not None) is not named:
            raise ValueError("takes key for an option or a secret, and only there")
        if (self.id is None) is not (self.kind is reference_rules.SubjectKind.SECRET):
            raise ValueError("takes id for everything but a secret")
        if self.change is Change.RENAME and self.kind not in _BY_KEY:
            raise ValueError("can be renamed without any impact: it is named by its id")
        if self.change is Change.CONVERT and self.kind is not reference_rules.SubjectKind.FIELD:
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
    access: reference_rules.Access
    breaks: bool
    node_id: str | None = None
    version: int | None = None
    state: str | None = None
    runs: int | None = None
    item_id: Id | None = None
    database_id: Id | None = None


class ImpactRun(Shape):
    """An open run that keeps a field from being renamed, with the reason."""

    id: Id
    automation_id: Id
    label: str
    reason: str


class ImpactAnswer(Shape):
    """The places that name a thing, the breaking ones first, at most 500.

    `total` counts all places, `breaking` the ones that break. Places that the caller may not see
    are in `total` and counted by `hidden`, and are not listed. `immovableRuns` are the first 20
    open runs that a `rename` of a field cannot move, and that refuse it until they end.
    """

    kind: reference_rules.SubjectKind
    label: str
    change: Change
    places: list[ImpactPlace]
    total: int
    breaking: int
    hidden: int
    immovable_runs: list[ImpactRun]

    @property
    def is_listed_in_part(self) -> bool:
        """True when there are more places to show than are listed."""
        return self.total - self.hidden > len(self.places)


Definitions = Callable[
    [UnitOfWork, Actor, reference_rules.Sought], Awaitable[Sequence[reference_rules.Definition]]
]

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

_BATCHED: Sequence[Definitions] = (
    graph_definitions,
    run_definitions,
    action_definitions,
    block_definitions,
    data_source_definitions,
    link_definitions,
)
"""Queries that are asked once for many things which are deleted together."""
_AT_ONCE = 500
_REMAINING = frozenset({"automation_run", "share_link"})
"""Kinds of definitions of an item that its deletion breaks: open runs continue, links fail."""

_SCOPES: Mapping[reference_rules.SubjectKind, Scope] = {
    reference_rules.SubjectKind.FIELD: Scope.DATABASES_READ,
    reference_rules.SubjectKind.OPTION: Scope.DATABASES_READ,
    reference_rules.SubjectKind.DATABASE: Scope.DATABASES_READ,
    reference_rules.SubjectKind.VIEW: Scope.VIEWS_READ,
    reference_rules.SubjectKind.FORM: Scope.RESOURCES_READ,
    reference_rules.SubjectKind.CONNECTION: Scope.INTEGRATIONS_READ,
    reference_rules.SubjectKind.WEBHOOK_ENDPOINT: Scope.WEBHOOKS_READ,
    reference_rules.SubjectKind.SECRET: Scope.AUTOMATIONS_READ,
    reference_rules.SubjectKind.ACTION: Scope.ACTIONS_READ,
    reference_rules.SubjectKind.AUTOMATION: Scope.AUTOMATIONS_READ,
    reference_rules.SubjectKind.DATA_SOURCE: Scope.DATA_SOURCES_READ,
    reference_rules.SubjectKind.MEMBER: Scope.MEMBERS_READ,
    reference_rules.SubjectKind.FILE: Scope.FILES_READ,
    reference_rules.SubjectKind.ITEM: Scope.RESOURCES_READ,
}
"""The scope by which a caller sees a thing of a kind."""


@dataclass(frozen=True, slots=True)
class Naming:
    """A reference, and the definition it is in; `seen` if the caller may see that."""

    definition: reference_rules.Definition
    reference: reference_rules.Reference
    seen: bool


async def impact(work: UnitOfWork, actor: Actor, body: ImpactQuestion) -> ImpactAnswer:
    """The places that name a thing.

    Raises `DeniedError` without the scope to read such things, `NotFoundError` for one that the
    caller does not see.
    """
    scope = _SCOPES[body.kind]
    if scope not in actor.scopes:
        raise DeniedError(f"The credential lacks the scope {scope}.")
    thing = await find_thing(work, actor, body.kind, body.id, body.key)
    return await impact_of(work, actor, body, thing)


async def impact_of(
    work: UnitOfWork, actor: Actor, body: ImpactQuestion, thing: Found
) -> ImpactAnswer:
    """The places that name a thing that was found, as far as there are any now."""
    sought = thing.sought if body.change is Change.DELETE else thing.sought[:1]
    namings = _places(await _remaining(work, actor, sought))
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
        immovable_runs=await _immovable_runs(work, actor, body, sought[0], namings),
    )


async def _immovable_runs(
    work: UnitOfWork,
    actor: Actor,
    body: ImpactQuestion,
    sought: reference_rules.Sought,
    namings: Sequence[Naming],
) -> list[ImpactRun]:
    """The runs of automations that the caller sees."""
    automation_ids = {one.definition.id for one in namings if one.definition.runs and one.seen}
    is_rename = body.kind is reference_rules.SubjectKind.FIELD and body.change is Change.RENAME
    if not is_rename or not automation_ids:
        return []
    runs = await immovable_runs(work, actor, sought, automation_ids, MAX_RUNS)
    return [ImpactRun(**asdict(run)) for run in runs]


async def namings_of(
    work: UnitOfWork, actor: Actor, sought: reference_rules.Sought
) -> Sequence[Naming]:
    """The references to a thing, except in parts that a database is deleted with."""
    return await _remaining(work, actor, [sought])


async def _remaining(
    work: UnitOfWork, actor: Actor, sought: Sequence[reference_rules.Sought]
) -> Sequence[Naming]:
    """The references to things that are changed together, except in what is deleted with them."""
    pairs: list[tuple[reference_rules.Definition, reference_rules.Sought]] = []
    for start in range(0, len(sought), _AT_ONCE):
        first, *others = sought[start : start + _AT_ONCE]
        batch = replace(first, also=frozenset().union(*(other.subjects for other in others)))
        for of_kind in _BATCHED:
            pairs += [(naming, batch) for naming in await of_kind(work, actor, batch)]
    for thing in sought:
        for of_kind in DEFINITIONS:
            if of_kind not in _BATCHED:
                pairs += [(naming, thing) for naming in await of_kind(work, actor, thing)]
    open_items = await _open_items(work, actor, [definition for definition, _ in pairs])
    items = {thing.item_id for thing in sought if thing.item_id is not None}
    databases = {
        Id(thing.subject.id)
        for thing in sought
        if thing.kind is reference_rules.SubjectKind.DATABASE
    }
    return [
        Naming(definition, reference, _sees(actor, definition, open_items))
        for definition, thing in pairs
        if _remains(definition, items, databases)
        for reference in dict.fromkeys(definition.references)
        if thing.matches(reference.subject)
    ]


def _remains(
    definition: reference_rules.Definition, items: Collection[Id], databases: Collection[Id]
) -> bool:
    """False for what is deleted with these items and databases."""
    return definition.kind in _REMAINING or (
        (definition.item_id is None or definition.item_id not in items)
        and (definition.database_id is None or definition.database_id not in databases)
    )


def _places(namings: Sequence[Naming]) -> Sequence[Naming]:
    """One naming for each place of a definition: a text may name a thing several times."""
    places = {}
    for one in namings:
        reference = one.reference
        where = reference.subject, reference.place, reference.path, reference.access
        places[id(one.definition), where] = one
    return list(places.values())


async def _open_items(
    work: UnitOfWork, actor: Actor, definitions: Sequence[reference_rules.Definition]
) -> Collection[Id]:
    ids = {one.item_id for one in definitions if one.item_id is not None}
    rows = await work.rows(seen_items(actor, sorted(ids))) if ids else ()
    return {row.id for row in rows}


def _sees(actor: Actor, definition: reference_rules.Definition, open_items: Collection[Id]) -> bool:
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


def breaks(reference: reference_rules.Reference, change: Change) -> bool:
    """True when a change breaks what is at a reference."""
    if change is Change.RENAME:
        return not reference.by_id
    return not reference.cleared
