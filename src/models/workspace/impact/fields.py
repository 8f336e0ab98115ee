"""The places that name each field of a database, and renaming a key with all that names it."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.automation.actions.store import rewrite_config
from models.automation.automation_runs.open_runs import NotWaitingError, move_waiting_runs
from models.automation.automations.commands import rewrite_version
from models.automation.triggers.subscribers import rename_in_queue
from models.content.surfaces.commands import rewrite_block
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.keys import own_field_keys
from models.core.references import rules as reference_rules
from models.data.databases.field_changes import hold_field, rename_key
from models.data.databases.shapes import DatabaseDetail, RenameField
from models.data.fields.commands import rewrite_settings, write_database
from models.data.fields.queries import get_field, load_catalog, seen_labels
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.shapes import FieldShape
from models.data.forms.commands import rewrite_questions
from models.data.record_templates import rewrite_values
from models.data.views.commands import rewrite_manifest
from models.sources.data_sources.commands import rewrite_fields
from models.workspace.impact.queries import Naming, namings_of
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

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
    for naming in await namings_of(
        work,
        actor,
        reference_rules.Sought(
            subject=reference_rules.Subject(reference_rules.SubjectKind.FIELD, own)
        ),
    ):
        by_key.setdefault(naming.reference.subject.key, []).append(naming)
    usages = {}
    for key, spec in catalog[database.id].items():
        inverse = next(_inverse(catalog, spec), None)
        namings = by_key.get(key, [])
        if inverse is not None:
            of_inverse = reference_rules.Sought(
                subject=reference_rules.field_subject(str(spec.target_id), inverse.key)
            )
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
    """The usages in these namings; what names one side of a relation in the other is none."""
    others = [naming for naming in namings if naming.definition.id not in sides]
    computed = [naming for naming in others if naming.definition.kind == "field"]
    places = [
        naming for naming in others if naming.definition.kind not in ("field", "record_layout")
    ]
    visible = [naming for naming in places if naming.seen]
    return FieldUsages(
        fields=_distinct(naming.definition.label for naming in computed if naming.seen),
        unseen=len({naming.definition.id for naming in computed if not naming.seen}),
        removed_from=_distinct(_named(naming) for naming in visible if naming.reference.cleared),
        broken=_distinct(_named(naming) for naming in visible if not naming.reference.cleared),
        hidden=len({naming.definition.id for naming in places if not naming.seen}),
        inverse=inverse,
    )


def _distinct(labels: Iterator[str]) -> Sequence[str]:
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


_SHOWN = 5
"""Definitions that a refusal names."""


def _listed(namings: Sequence[Naming]) -> str:
    """The definitions by their labels, the first of them; hidden ones are counted."""
    labels = list(
        dict.fromkeys(
            f"{one.definition.kind.replace('_', ' ')} {one.definition.label}"
            for one in namings
            if one.seen
        )
    )
    hidden = len({one.definition.id for one in namings if not one.seen})
    more = len(labels[_SHOWN:]) + hidden
    return ", ".join([*labels[:_SHOWN], *([f"{more} more"] if more else [])])


async def rename_field(
    work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id, body: RenameField
) -> FieldShape:
    """Rename the key of a field, in its records and, with `rewrite`, in all that names it.

    Runs that wait continue with the new key. Raises NotFoundError, what `rename_key` raises, and
    ConflictError while a canary or other open runs name it, and without `rewrite` while anything
    does.
    """
    await own_field_keys(work, actor.workspace_id)
    spec = await hold_field(work, actor, database_id, field_id)
    if spec.key != body.key:
        sought = reference_rules.Sought(
            subject=reference_rules.field_subject(str(database_id), spec.key)
        )
        namings = [one for one in await namings_of(work, actor, sought) if not one.reference.by_id]
        _check(namings, rewrite=body.rewrite)
        await rename_in_queue(work, sought.subject, actor.workspace_id, body.key)
        await rename_key(work, actor, database_id, spec, body.key)
        note = f"The field {spec.key} was renamed to {body.key}."
        for definition, references in _by_definition(namings):
            await _rewrite(work, actor, definition, references, body.key, note)
        await _move_runs(work, actor, sought, body.key, namings)
    return await get_field(work, actor.workspace_id, database_id, field_id)


async def _move_runs(
    work: UnitOfWork,
    actor: Actor,
    sought: reference_rules.Sought,
    key: str,
    namings: Sequence[Naming],
) -> None:
    """Move open runs that name the field. Raises ConflictError unless all of them wait."""
    try:
        await move_waiting_runs(work, actor, sought, key)
    except NotWaitingError as error:
        runs = [one for one in namings if one.definition.runs]
        raise ConflictError(
            f"Open runs use the field, and not all of them can be moved: {_listed(runs)}."
            f"{_refusing(error, runs)} Wait until they end, or cancel them."
        ) from None


def _refusing(error: NotWaitingError, runs: Sequence[Naming]) -> str:
    """The first run that cannot be moved and the reason, for a caller who sees its automation."""
    for one in runs:
        if one.seen and one.definition.id == error.automation_id:
            subject = one.definition.label if error.run_id is None else f"The run {error.run_id}"
            return f" {subject} {error.reason}."
    return ""


def _check(namings: Sequence[Naming], *, rewrite: bool) -> None:
    """Raise ConflictError for what the rename would break."""
    places = [one for one in namings if one.definition.kind != "record_layout"]
    if places and not rewrite:
        raise ConflictError(
            f"The field is used by: {_listed(places)}. Rename it with rewrite to change them, too."
        )
    canaries = [one for one in namings if one.definition.state == "canary"]
    if canaries:
        raise ConflictError(f"A canary uses the field: {_listed(canaries)}. Wait until it ends.")


def _by_definition(
    namings: Sequence[Naming],
) -> Sequence[tuple[reference_rules.Definition, Sequence[reference_rules.Reference]]]:
    """The definitions that name the field, each with its places; open runs are moved apart."""
    named = [one for one in namings if not one.definition.runs]
    definitions = {id(one.definition): one.definition for one in named}
    references: defaultdict[int, list[reference_rules.Reference]] = defaultdict(list)
    for one in named:
        references[id(one.definition)].append(one.reference)
    return [(definition, references[key]) for key, definition in definitions.items()]


async def _rewrite(
    work: UnitOfWork,
    actor: Actor,
    definition: reference_rules.Definition,
    references: Sequence[reference_rules.Reference],
    key: str,
    note: str,
) -> None:
    def rewrite(document: JsonObject) -> JsonObject:
        try:
            return reference_rules.rewritten(document, references, key)
        except reference_rules.UnknownPlaceError:
            raise ConflictError(
                f"An expression of the {definition.kind} {definition.label} cannot be rewritten."
            ) from None

    if definition.version_id is not None:
        place = (definition.id, definition.version_id)
        await rewrite_version(work, actor, *place, rewrite, note)
        return
    document = rewrite(definition.document)
    await _WRITERS[definition.kind](work, actor.workspace_id, definition.id, document)


Writer = Callable[[UnitOfWork, Id, Id, JsonObject], Awaitable[None]]


async def _layout(work: UnitOfWork, workspace_id: Id, id_: Id, document: JsonObject) -> None:
    await write_database(work, workspace_id, id_, record_layout=document["recordLayout"])


async def _block(work: UnitOfWork, workspace_id: Id, _: Id, document: JsonObject) -> None:
    ((block_id, content),) = document["blocks"].items()
    surface_id = Id(document["surfaceId"])
    await rewrite_block(work, workspace_id, surface_id, Id(block_id), content)


async def _template(work: UnitOfWork, workspace_id: Id, id_: Id, document: JsonObject) -> None:
    await rewrite_values(work, workspace_id, id_, document["data"], document["relations"])


async def _source(work: UnitOfWork, workspace_id: Id, id_: Id, document: JsonObject) -> None:
    await rewrite_fields(work, workspace_id, id_, document["fields"], document["keyFields"])


def _of(write: Callable[[UnitOfWork, Id, Id, Any], Awaitable[None]], name: str) -> Writer:
    """A writer of the part of a document that has this name."""

    async def write_part(work: UnitOfWork, workspace_id: Id, id_: Id, document: JsonObject) -> None:
        await write(work, workspace_id, id_, document[name])

    return write_part


_WRITERS: Mapping[str, Writer] = {
    "action": _of(rewrite_config, "config"),
    "data_source": _source,
    "field": _of(rewrite_settings, "settings"),
    "form": _of(rewrite_questions, "fields"),
    "record_layout": _layout,
    "record_template": _template,
    "view": _of(rewrite_manifest, "manifest"),
    "dashboard": _block,
}
"""The writer of each kind of definition that can name a field."""
