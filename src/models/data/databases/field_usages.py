"""The places that use a field, which a person looks at before they delete it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import load_catalog, seen_labels
from models.data.fields.rules.fields import FieldSpec
from models.data.formulas.rules import Catalog, FieldRef, dependents_by_source
from models.data.record_templates import templates_by_field
from models.data.views.rules.manifest import without_field
from models.data.views.shapes import ViewShape
from runtime.database import UnitOfWork

_NO_FIELD = ""
"""The key of no field: what is left of a manifest without it is all of the manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldUsages:
    """The places that use a field, by their labels.

    While `fields` are computed from it, among them `unseen` of databases that the reader does not
    see, it cannot be deleted. Views and record templates lose it.
    """

    fields: Sequence[str]
    unseen: int
    views: Sequence[str]
    templates: Sequence[str]
    inverse: str | None
    """The database whose side of the relation is deleted with it, if the reader sees it."""

    @property
    def is_needed(self) -> bool:
        """True while other fields are computed from it."""
        return bool(self.fields or self.unseen)


async def field_usages(
    work: UnitOfWork, actor: Actor, database: DatabaseDetail
) -> dict[str, FieldUsages]:
    """The usages of each field of a database, by its key; the views are the ones in `database`."""
    catalog = await load_catalog(work, actor.workspace_id, [database.id])
    by_source = dependents_by_source(catalog)
    labels = await seen_labels(work, actor, catalog.keys())
    templates = await templates_by_field(work, actor.workspace_id, database.id)
    views = _views_by_field(database.views)
    usages = {}
    for key, spec in catalog[database.id].items():
        refs = {FieldRef(database.id, key), *_inverse(catalog, spec)}
        derived = {one for ref in refs for one in by_source.get(ref, ())} - refs
        shown = [ref for ref in sorted(derived) if ref.database_id in labels]
        usages[key] = FieldUsages(
            fields=[_name(catalog, labels, ref) for ref in shown],
            unseen=len(derived) - len(shown),
            views=views.get(key, ()),
            templates=templates.get(key, ()),
            inverse=labels.get(spec.target_id) if len(refs) > 1 else None,
        )
    return usages


def _inverse(catalog: Catalog, spec: FieldSpec) -> Iterator[FieldRef]:
    """The other side of a relation; none of a symmetric one, which is its own."""
    if not spec.relation or spec.inverse_id == spec.id:
        return
    for key, other in catalog.get(spec.target_id, {}).items():
        if other.id == spec.inverse_id:
            yield FieldRef(spec.target_id, key)


def _name(catalog: Catalog, labels: Mapping[Id, str], ref: FieldRef) -> str:
    return f"{catalog[ref.database_id][ref.key].label} of {labels[ref.database_id]}"


def _views_by_field(views: Collection[ViewShape]) -> Mapping[str, Sequence[str]]:
    """The labels of the views that would change without a field, by its key."""
    labels: dict[str, list[str]] = {}
    for view in views:
        manifest = without_field(view.kind, view.manifest, _NO_FIELD)
        listed = {entry["key"] for entry in view.manifest.get("fields") or ()}
        # A view may list 500 fields: only what else it names is compared one by one.
        for key in listed | {
            text
            for text in _texts(view.manifest) - listed
            if without_field(view.kind, view.manifest, text) != manifest
        }:
            labels.setdefault(key, []).append(view.label)
    return labels


def _texts(value: object) -> set[str]:
    """The texts in a JSON value, among them the keys of all fields that it names."""
    if isinstance(value, str):
        return {value}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for part in parts for text in _texts(part)}
