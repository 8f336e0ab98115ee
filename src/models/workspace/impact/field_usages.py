"""The places that name each field of a database, which a person looks at before they delete it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.references import rules as reference_rules
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import load_catalog, seen_labels
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.workspace.impact.queries import Naming, namings_of
from runtime.database import UnitOfWork

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
